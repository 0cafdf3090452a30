//! Tests of glob.

use super::*;

#[test]
fn a_pattern_matches_names() {
    let cases = [
        ("*", "abc", true),
        ("*", ".abc", false),
        (".*", ".abc", true),
        ("?bc", "abc", true),
        ("?", "", false),
        ("a*c*e", "abcde", true),
        ("a*c*e", "abcdef", false),
        ("*ab", "aab", true),
        ("[a-c]x", "bx", true),
        ("[!a-c]x", "bx", false),
        ("[^a-c]x", "dx", true),
        ("[]a]", "]", true),
        ("[a-]", "-", true),
        ("[a", "[a", true),
        (r"\*", "*", true),
        (r"\*", "a", false),
        (r"a\\*", r"a\b", true),
        (r"[\]]", "]", true),
        ("[?]", "?", true),
        ("[?]", "a", false),
    ];
    for (pattern, name, wanted) in cases {
        assert_eq!(
            Part::parse(pattern.as_bytes()).matches(name.as_bytes()),
            wanted,
            "{pattern} {name}"
        );
    }
}

/// Files whose metadata are all the same.
struct Files(&'static [&'static str]);

impl Tree for Files {
    type End = ();

    fn entries(&self, dir: &[u8]) -> Result<Vec<Vec<u8>>, ()> {
        let below = |path: &&str| path.as_bytes().strip_prefix(dir).map(<[u8]>::to_vec);
        let all = self.0.iter().filter_map(below);
        Ok(all.chain([b"..".to_vec(), b"a/../../x".to_vec()]).collect())
    }

    fn attributes(&self, path: &[u8]) -> Result<Option<Attributes>, ()> {
        let is_there = self.0.iter().any(|known| {
            let known = known.as_bytes();
            known == path || (path.ends_with(b"/") && known.starts_with(path))
        });
        Ok(is_there.then(Attributes::default))
    }
}

#[test]
fn paths_are_found_in_order_and_names_that_lead_elsewhere_are_not() {
    let files = Files(&["b", "a", "ab", "x/1", "x/2"]);
    let found = |pattern: &str| {
        let all = expand(&files, pattern.as_bytes()).unwrap_or_default();
        all.into_iter().map(|found| String::from_utf8(found.path).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(found("a*"), ["a", "ab"]);
    assert_eq!(found("*"), ["a", "ab", "b"]);
    assert_eq!(found(".*"), [""; 0]);
    assert_eq!(found("x/*"), ["x/1", "x/2"]);
    assert_eq!(found("x/1"), ["x/1"]);
    assert_eq!(found("no*"), [""; 0]);
    assert_eq!(found("no"), [""; 0]);
}
