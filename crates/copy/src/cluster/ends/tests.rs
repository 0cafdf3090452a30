//! Which copies go between storages, and in which parts.

use super::*;
use std::ffi::OsStr;

fn transfer(sources: &[&str], target: &str) -> Result<Option<Transfer>> {
    let parse = |text: &str| Location::parse(OsStr::new(text)).unwrap();
    Transfer::of(sources.iter().map(|text| parse(text)).collect(), parse(target))
}

/// The parts of a transfer, and its ways.
fn shape(transfer: &Transfer) -> (Vec<(&'static str, usize)>, Vec<Way>) {
    let part = |part: &Part| {
        let kind = match part {
            Part::Here(_) => "here",
            Part::Daemons(_) => "daemons",
            Part::Gfarm(_) => "gfarm",
            Part::S3(_) => "s3",
        };
        (kind, part.sources())
    };
    (transfer.parts.iter().map(part).collect(), transfer.ways())
}

#[test]
fn any_storage_may_stand_on_either_side() {
    use Way::{FromBucket, FromDaemons, FromGfarm, ToBucket, ToDaemons, ToGfarm};
    type Case<'a> = (&'a [&'a str], &'a str, &'a [(&'a str, usize)], &'a [Way]);
    let table: [Case<'_>; 9] = [
        (&["a", "b"], "hikyaku://h/d", &[("here", 2)], &[ToDaemons]),
        (&["hikyaku://h/a", "hikyaku://h/b"], "d", &[("daemons", 2)], &[FromDaemons]),
        (
            &["hikyaku://h/a", "hikyaku://i/a"],
            "d",
            &[("daemons", 1), ("daemons", 1)],
            &[FromDaemons],
        ),
        (&["hikyaku://h/a"], "hikyaku://i/d", &[("daemons", 1)], &[FromDaemons, ToDaemons]),
        (&["hikyaku://h/a"], "s3://b/d", &[("daemons", 1)], &[FromDaemons, ToBucket]),
        (&["gfarm:///a"], "s3://b/d", &[("gfarm", 1)], &[FromGfarm, ToBucket]),
        (&["s3://b/a", "s3://c/a"], "s3://d/", &[("s3", 1), ("s3", 1)], &[FromBucket, ToBucket]),
        (&["s3://b/a", "s3://b/c"], "gfarm:///d", &[("s3", 2)], &[ToGfarm, FromBucket]),
        (
            &["a", "hikyaku://h/a", "b"],
            "d/",
            &[("here", 1), ("daemons", 1), ("here", 1)],
            &[FromDaemons],
        ),
    ];
    for (sources, target, parts, ways) in table {
        let transfer = transfer(sources, target).unwrap().unwrap();
        assert_eq!(shape(&transfer), (parts.to_vec(), ways.to_vec()), "{sources:?} {target}");
    }
}

#[test]
fn hosts_behind_ssh_and_standard_input_are_refused_before_anything_is_contacted() {
    for (sources, target, words) in [
        (&["h:a"][..], "hikyaku://d/b", "reached through ssh"),
        (&["hikyaku://d/b", "h:a"], ".", "'h:a'"),
        (&["gfarm:///b"], "h:a", "reached through ssh"),
        (&["/dev/stdin"], "s3://b/k", "standard input"),
        (&["s3://b/k"], "hikyaku://h,i/d", "go to one daemon"),
    ] {
        let error = transfer(sources, target).unwrap_err();
        assert!(error.to_string().contains(words), "{sources:?} {target}: {error}");
    }
    assert!(transfer(&["h:a", "b"], "c").unwrap().is_none());
}
