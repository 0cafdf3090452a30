//! Lists as wget and aria2c take them.

use super::*;
use crate::metalink::Expect;
use hikyaku_http::{NamedBy, Url};
use std::fs;

fn entries(text: &str) -> Vec<Result<Entry>> {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("hikyaku-urls-{}-{number}", std::process::id()));
    fs::write(&path, text).unwrap();
    let mut list = List::open(&path).unwrap();
    let mut all = Vec::new();
    while let Some(entry) = list.next(&|| true).transpose() {
        let is_wrong = entry.is_err();
        all.push(entry);
        assert!(!is_wrong || all.len() < 100, "the same line again and again");
    }
    fs::remove_file(path).unwrap();
    all
}

fn job(options: &[&str]) -> Result<Job> {
    let url = Url::parse("http://a.org/x").unwrap();
    let naming = Naming::Within(PathBuf::from("/d"), None);
    let job = Job { urls: vec![url], named_by: NamedBy::User, naming, expect: Expect::default() };
    let options = options.iter().map(|option| (*option).to_owned()).collect();
    Entry { place: String::new(), urls: Vec::new(), options }.apply(job, Path::new("/d"))
}

#[test]
fn a_list_has_urls_mirrors_comments_and_options() {
    let text = "# of today\n\nhttp://a.org/1\r\n http://not.an.option\nhttp://b.org/2\thttp://c.org/2 \n\
                \tout=x\n  dir=y\n\n# then\nhttp://d.org/3";
    let all: Vec<Entry> = entries(text).into_iter().map(Result::unwrap).collect();
    let words = |urls: &[&str]| urls.iter().map(OsString::from).collect::<Vec<_>>();
    assert_eq!(all[0].urls, words(&["http://a.org/1"]));
    assert_eq!(all[0].options, ["http://not.an.option"]);
    assert_eq!(all[1].urls, words(&["http://b.org/2", "http://c.org/2"]));
    assert_eq!(all[1].options, ["out=x", "dir=y"]);
    assert_eq!((all[2].urls.clone(), all.len()), (words(&["http://d.org/3"]), 3));
    assert!(all[2].place.ends_with(", line 10"), "{}", all[2].place);
    assert_eq!(entries("").len(), 0);
}

#[test]
fn an_option_needs_a_url_above_it() {
    let all = entries(" out=x\nhttp://a.org/1\n");
    assert!(all[0].as_ref().unwrap_err().to_string().contains("line 1"));
    assert_eq!(all[1].as_ref().unwrap().urls, [OsString::from("http://a.org/1")]);
}

#[test]
fn the_options_of_a_file_are_bounded() {
    let options = |count: usize| format!("http://a.org/1\n{}", " out=x\n".repeat(count));
    assert!(entries(&options(OPTIONS_MAX))[0].is_ok());
    assert!(entries(&options(OPTIONS_MAX + 1))[0].is_err());
}

#[test]
fn options_name_the_file_and_its_digest() {
    let place = |options: &[&str]| match job(options).unwrap().naming {
        Naming::Within(dir, name) => (dir, name.map(|name| name.shown().to_string())),
        _ => panic!("a name in a directory"),
    };
    assert_eq!(place(&[]), (PathBuf::from("/d"), None));
    assert_eq!(place(&["dir=/e"]), (PathBuf::from("/e"), None));
    assert_eq!(place(&["out=f"]), (PathBuf::from("/d"), Some("f".to_owned())));
    assert_eq!(place(&["out=g/h/f", "dir=/e"]), (PathBuf::from("/e/g/h"), Some("f".to_owned())));
    let hex = "0".repeat(64);
    assert_eq!(job(&[&format!("checksum=sha-256={hex}")]).unwrap().expect.digests.len(), 1);
    assert!(job(&["file-allocation=none", "summary-interval=5"]).is_ok(), "they change nothing");
    let sha1 = format!("checksum=sha-1={}", "0".repeat(40));
    for option in
        [&sha1, "out=../f", "out=/f", "out=", "checksum=md5=0", "header=A: b", "split=4", "x"]
    {
        let error = job(&[option]).map(|_| ()).unwrap_err();
        assert!(!format!("{error:#}").is_empty(), "{option}");
    }
}
