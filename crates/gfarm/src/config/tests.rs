//! Settings files.

use super::*;
use std::fs;

fn address(host: &str, port: u16) -> Address {
    Address { host: host.to_owned(), port }
}

#[test]
fn addresses_are_read() {
    let cases = [
        ("md", Some(address("md", 601))),
        ("md:10601", Some(address("md", 10601))),
        ("127.0.0.1:7", Some(address("127.0.0.1", 7))),
        ("[::1]:7", Some(address("::1", 7))),
        ("::1", Some(address("::1", 601))),
        ("", None),
        (":7", None),
        ("md:x", None),
        ("md:70000", None),
        ("[::1", None),
        ("[::1]7", None),
        ("[md]", Some(address("md", 601))),
        ("a]b:c:7", None),
        ("m d:7", None),
        ("md\0:7", None),
    ];
    for (text, wanted) in cases {
        assert_eq!(Address::parse(text), wanted, "{text:?}");
    }
    assert_eq!(address("::1", 7).to_string(), "[::1]:7");
}

#[test]
fn lines_have_quotes_and_comments() {
    let cases: [(&str, &[&str]); 6] = [
        ("", &[]),
        ("  # nothing", &[]),
        ("a\tb  c # d", &["a", "b", "c"]),
        (r#"a "b c" 'd "e'"#, &["a", "b c", "d \"e"]),
        (r#"a "x\"y\z" b\ c"#, &["a", "x\"y\\z", "b c"]),
        (r#"a """#, &["a", ""]),
    ];
    for (line, wanted) in cases {
        assert_eq!(words(line).unwrap(), wanted, "{line}");
    }
    assert!(words("a 'b").is_err());
    assert!(words("a \\").is_err());
}

/// A directory of files, removed at the end.
struct Files(PathBuf);

impl Files {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let dir = std::env::temp_dir().join(format!("gfarm-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        for (name, text) in files {
            fs::write(dir.join(name), text.replace("DIR", dir.to_str().unwrap())).unwrap();
        }
        Self(dir)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_first_line_that_sets_something_counts() {
    let files = Files::new(
        "first",
        &[
            ("own", "metadb_server_host own # mine\nlocal_user_map DIR/map\n"),
            ("more", "metadb_server_port 10601\nshared_key_file /keys/k\n"),
            ("machine", "include DIR/more\nmetadb_server_host other\nmetadb_server_port 7\n"),
            ("map", "root wheel\nglobal local\n"),
        ],
    );
    let mut found = Found::default();
    found.read(&files.0.join("own"), 0).unwrap();
    found.read(&files.0.join("machine"), 0).unwrap();
    let config = found.finish(None, Path::new("/dir/u"), "local").unwrap();
    assert_eq!(config.metadata, [address("own", 10601)]);
    assert_eq!(config.key_file, Path::new("/keys/k"));
    assert_eq!(config.user, "global");
}

#[test]
fn the_key_is_in_the_home_directory_and_the_user_keeps_the_name() {
    let mut found = Found::default();
    found.set("metadb_server_list", &["a:1".into(), "b".into()]).unwrap();
    let config = found.finish(None, Path::new("/dir/u"), "u").unwrap();
    assert_eq!(config.metadata, [address("a", 1), address("b", 601)]);
    assert_eq!(config.key_file, Path::new("/dir/u/.gfarm_shared_key"));
    assert_eq!(config.user, "u");
}

#[test]
fn what_cannot_be_understood_is_told_with_its_line() {
    let files = Files::new("bad", &[("a", "\nmetadb_server_port x\n"), ("b", "include DIR/b\n")]);
    let told = |name: &str| {
        let error = Found::default().read(&files.0.join(name), 0).unwrap_err();
        error.to_string()
    };
    assert!(told("a").ends_with("a, line 2: not a port"), "{}", told("a"));
    assert!(told("b").contains("include each other"), "{}", told("b"));
    assert!(told("c").ends_with("/c"), "{}", told("c"));
    let none = Found::default().finish(None, Path::new("/"), "u");
    assert!(matches!(none, Err(ConfigError::NoServer)));
}
