//! Which copies go between storages, and in which parts.

use super::*;
use hikyaku_crypto::Fingerprint;
use std::ffi::OsStr;

fn plan(sources: &[&str], target: &str) -> CopyPlan {
    let parse = |text: &str| Location::parse(OsStr::new(text)).unwrap();
    CopyPlan::new(sources.iter().map(|text| parse(text)).collect(), parse(target))
}

/// The parts of a copy.
fn shape(plan: &CopyPlan) -> Vec<(&'static str, usize)> {
    let part = |part: &[Location]| {
        let kind = match part.first() {
            Some(Location::Local(_)) => "here",
            Some(Location::Servers(_)) => "daemons",
            _ => "stored",
        };
        (kind, part.len())
    };
    parts(plan).map(part).collect()
}

#[test]
fn any_storage_may_stand_on_either_side() {
    use Way::{
        FromBucket, FromDaemons, FromFtp, FromGfarm, FromHost, FromWeb, ToBucket, ToDaemons, ToHost,
    };
    use Way::{ToFtp, ToGfarm, ToGridFtp};
    type Case<'a> = (&'a [&'a str], &'a str, &'a [(&'a str, usize)], &'a [Way]);
    let table: [Case<'_>; 16] = [
        (&["http://h/a", "https://i/b"], "d/", &[("stored", 2)], &[FromWeb]),
        (
            &["ftp://h/a", "ftp://h/b", "ftp://i/a"],
            "d/",
            &[("stored", 2), ("stored", 1)],
            &[FromFtp],
        ),
        (&["a"], "ftp://h/d", &[("here", 1)], &[ToFtp]),
        (&["http://h/a"], "gsiftp://h/d", &[("stored", 1)], &[FromWeb, ToGridFtp]),
        (
            &["h:a", "h:b", "i:a"],
            "hikyaku://h/d",
            &[("stored", 2), ("stored", 1)],
            &[ToDaemons, FromHost],
        ),
        (&["gfarm:///a"], "h:a", &[("stored", 1)], &[FromGfarm, ToHost]),
        (&["sftp://h/a"], "s3://b/", &[("stored", 1)], &[ToBucket, FromHost]),
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
        (&["gfarm:///a"], "s3://b/d", &[("stored", 1)], &[FromGfarm, ToBucket]),
        (
            &["s3://b/a", "s3://c/a"],
            "s3://d/",
            &[("stored", 1), ("stored", 1)],
            &[FromBucket, ToBucket],
        ),
        (&["s3://b/a", "s3://b/c"], "gfarm:///d", &[("stored", 2)], &[ToGfarm, FromBucket]),
        (
            &["a", "hikyaku://h/a", "b"],
            "d/",
            &[("here", 1), ("daemons", 1), ("here", 1)],
            &[FromDaemons],
        ),
    ];
    for (sources, target, parts, wanted) in table {
        let plan = plan(sources, target);
        let found = (shape(&plan), ways(&plan).unwrap());
        assert_eq!(found, (parts.to_vec(), wanted.to_vec()), "{sources:?} {target}");
    }
}

#[test]
fn ends_that_no_copy_can_have_are_refused_before_anything_is_contacted() {
    for (sources, target, words) in [
        (&["hikyaku://d/b"][..], "https://h/a", "can only be read"),
        (&["a"], "http://h/a", "can only be read"),
        (&["/dev/stdin"], "hikyaku://h,i/k", "standard input"),
    ] {
        let error = ways(&plan(sources, target)).unwrap_err();
        assert!(error.to_string().contains(words), "{sources:?} {target}: {error}");
    }
}

#[test]
fn daemons_whose_keys_are_named_are_other_ones_than_those_of_any_key() {
    let at = |keys: &[Fingerprint]| {
        let servers = Servers::parse(b"hikyaku://h/a").unwrap().unwrap();
        Location::Servers(Servers { keys: keys.to_vec(), ..servers })
    };
    let (any, pinned) = (at(&[]), at(&[Fingerprint::of(b"key")]));
    let sources = vec![any.clone(), pinned.clone(), pinned, any];
    let plan = CopyPlan::new(sources, Location::Local("d".into()));
    assert_eq!(shape(&plan), [("daemons", 1), ("daemons", 2), ("daemons", 1)]);
}
