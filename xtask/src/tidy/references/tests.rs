//! Names of files that do not exist are seen, in each form; names that are found in one of the places are not.

use super::*;

fn tree() -> Vec<TextFile> {
    [
        ("README.md", "# Start\n"),
        ("docs/copy.md", "# Copy\n\n## By SFTP\n\n**[ack-1]** A rule.\n"),
        ("crates/net/src/route.rs", "//! Routes.\n"),
        ("crates/net/src/driver/lane.rs", "//! Lanes.\n"),
        ("crates/copy/src/lane.rs", "//! Lanes.\n"),
        ("crates/copy/src/engine/far.rs", "//! Far sides.\n"),
        ("crates/copy/tests/ways.rs", "//! Ways.\n"),
        ("crates/perf/src/server/far.rs", "//! Far sides.\n"),
        ("bench/lab/src/lane.rs", "//! Lanes.\n"),
    ]
    .map(|(path, text)| TextFile { path: path.to_owned(), text: text.to_owned() })
    .into()
}

fn found(path: &str, text: &str) -> Vec<String> {
    let mut files = tree();
    files.push(TextFile { path: path.to_owned(), text: text.to_owned() });
    let sources = [Source::new(path, text)];
    let sources = if path.ends_with(".rs") { &sources[..] } else { &[] };
    check(&files, sources).iter().map(Finding::to_string).collect()
}

#[test]
fn names_of_files_are_found() {
    for text in [
        "[a](docs/copy.md) [b](docs/copy.md#by-sftp) [c](docs) [d](#own) [e](https://a.org/b.md)\n# Own",
        "`crates/net/src/route.rs`, `net/route.rs`, `driver/lane.rs`, `crates/net`, `crates/net/`",
        "`route.rs`, `lane.rs`, `docs/copy.md#ack-1`, docs/copy.md.",
        "`copy/tests/ways.rs`, `foo/bar.rs`, `crates/*/src`, `docs/<name>.md`, `cat crates/x`",
        "```\n`crates/nosuch`\n[a](nosuch.md)\n```",
    ] {
        assert_eq!(found("NEW.md", text), [""; 0], "{text}");
    }
    for text in ["//! `engine/far.rs`, `far.rs`, docs/copy.md", "//! `tests/ways.rs` and `lane.rs`"]
    {
        assert_eq!(found("crates/copy/src/new.rs", text), [""; 0], "{text}");
    }
}

#[test]
fn names_of_nothing_are_seen() {
    for (text, seen) in [
        ("a\n[a](docs/nosuch.md)", "NEW.md:2: names docs/nosuch.md, which does not exist"),
        (
            "[a](docs/copy.md#by-ssh)",
            "NEW.md:1: names docs/copy.md#by-ssh, a heading which does not exist",
        ),
        ("`net/path.rs`", "NEW.md:1: names net/path.rs, which does not exist"),
        ("`path.rs`", "NEW.md:1: names path.rs, which does not exist"),
        ("`crates/nosuch`", "NEW.md:1: names crates/nosuch, which does not exist"),
        ("see docs/nosuch.md.", "NEW.md:1: names docs/nosuch.md, which does not exist"),
        (
            "`a/far.rs` `server/far.rs` `src/lane.rs`",
            "NEW.md:1: names a/far.rs, which does not exist",
        ),
    ] {
        assert_eq!(found("NEW.md", text).first().map(String::as_str), Some(seen), "{text}");
    }
    let several = found("NEW.md", "`src/lane.rs`");
    assert_eq!(
        several,
        [
            "NEW.md:1: names src/lane.rs, which may be bench/lab/src/lane.rs or crates/copy/src/lane.rs"
        ]
    );
    let link = found("NEW.md", "[a](docs/nosuch.md)");
    assert_eq!(link, ["NEW.md:1: names docs/nosuch.md, which does not exist"]);
    let comment = "fn f() {}\n// See `engine/near.rs`.\n";
    let seen = found("crates/copy/src/new.rs", comment);
    assert_eq!(seen, ["crates/copy/src/new.rs:2: names engine/near.rs, which does not exist"]);
}
