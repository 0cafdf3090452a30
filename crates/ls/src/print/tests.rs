//! Lines and objects.

use super::*;
use crate::gather::Gathered;
use clap::{Args, Command, FromArgMatches};
use hikyaku_console::Document;
use hikyaku_store::{Identity, Owner, Time};

fn args(line: &str) -> LsArgs {
    let command = LsArgs::augment_args(Command::new("ls"));
    let words = ["ls", "x"].into_iter().chain(line.split_whitespace());
    LsArgs::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
}

fn listed(kind: Kind, (size, mode): (u64, u32), hosts: &[(&str, bool)]) -> Listed {
    let found = Found {
        kind,
        size,
        allocated: size,
        mode,
        owner: Owner::default(),
        modified: Time { secs: 1_000_000_000, nanos: 500_000_000 },
        identity: Identity { device: 0, number: 0 },
        version: None,
    };
    let place = |(host, is_up): &(&str, bool)| Place { host: (*host).to_owned(), is_up: *is_up };
    let link = (kind == Kind::Link).then(|| b"to \x1b".to_vec());
    Listed { found, link, places: hosts.iter().map(place).collect() }
}

fn tree() -> Gathered {
    let mut gathered = Gathered::default();
    let mut add = |path: &[u8], listed| {
        gathered.names.insert(StorePath::new(path).unwrap(), listed);
    };
    add(b"", listed(Kind::Dir, (0, 0o755), &[]));
    add(b"a\n", listed(Kind::File, (1536, 0o644), &[("node1", true), ("n2", false)]));
    add(b"dir", listed(Kind::Dir, (0, 0o700), &[]));
    add(b"link", listed(Kind::Link, (4, 0o777), &[("n2", true)]));
    gathered
}

fn text(gathered: &Gathered, line: &str, names: Names) -> String {
    String::from_utf8(lines(("hikyaku://n/d", false), gathered, (&args(line), names))).unwrap()
}

#[test]
fn columns_stand_below_each_other() {
    let tree = tree();
    assert_eq!(text(&tree, "", Names::Raw), "a\n\ndir\nlink\n");
    assert_eq!(text(&tree, "", Names::Shown), "a\\n\ndir\nlink\n");
    let where_they_are = "node1,n2! a\\n\n-         dir\nn2        link\n";
    assert_eq!(text(&tree, "--where", Names::Shown), where_they_are);
    let long = text(&tree, "-lh", Names::Shown);
    let lines: Vec<&str> = long.lines().collect();
    assert!(lines[0].starts_with("-rw-r--r-- 1.5K Sep  9  2001 a"), "{long}");
    assert!(lines[1].starts_with("drwx------   0B Sep  9  2001 dir"), "{long}");
    assert!(lines[2].ends_with("link -> to \\u{1b}"), "{long}");
    let several = lines_of_several(&tree);
    assert!(several.starts_with("hikyaku://n/d:\n"), "{several}");
}

fn lines_of_several(gathered: &Gathered) -> String {
    let text = lines(("hikyaku://n/d", true), gathered, (&args(""), Names::Shown));
    String::from_utf8(text).unwrap()
}

#[test]
fn a_file_alone_has_the_name_that_was_typed() {
    let mut gathered = Gathered::default();
    gathered.names.insert(StorePath::ROOT, listed(Kind::File, (5, 0o600), &[]));
    assert_eq!(text(&gathered, "", Names::Shown), "hikyaku://n/d\n");
}

#[test]
fn a_program_gets_a_document_with_an_entry_for_each_name() {
    let mut entries = Entries::default();
    entries.add("s3://b", &tree(), &args("--where"));
    let document = serde_json::to_value(Document::new(entries)).unwrap();
    assert_eq!(document["format"], 1);
    let lines = document["entries"].as_array().unwrap();
    assert_eq!(lines.len(), 4);
    let wanted = serde_json::json!({
        "address": "s3://b", "path": "a\n", "kind": "file", "size": 1536,
        "modified": 1_000_000_000.5, "mode": "0644",
        "places": [{"host": "node1", "up": true}, {"host": "n2", "up": false}],
    });
    assert_eq!(lines[1], wanted);
    assert_eq!(lines[0]["kind"], "directory");
    assert_eq!(lines[3]["link"], "to \u{1b}");
}
