//! Tests of line.

use super::*;

fn of(text: &str) -> Vec<String> {
    let words = words(text.as_bytes()).unwrap();
    words.into_iter().map(|word| String::from_utf8(word).unwrap()).collect()
}

#[test]
fn words_end_at_blanks_and_quotes_keep_them() {
    let cases: [(&str, &[&str]); 12] = [
        ("get a b", &["get", "a", "b"]),
        ("  get\t a  ", &["get", "a"]),
        (r#"get "a b"c 'd "e'"#, &["get", "a bc", "d \"e"]),
        (r#"get """#, &["get", ""]),
        (r#"get "a\"b" 'it\'s'"#, &["get", "a\"b", "it's"]),
        (r"get a\ b \a \*", &["get", "a b", "a", r"\*"]),
        (r#"get "*" '?[' *"#, &["get", r"\*", r"\?\[", "*"]),
        (r#"get "\*" \\"#, &["get", r"\\\*", r"\\"]),
        (r#"get "a\b" "\\""#, &["get", r"a\b", r"\\"]),
        ("get a # b", &["get", "a"]),
        ("get a#b '#'", &["get", "a"]),
        ("", &[]),
    ];
    for (text, wanted) in cases {
        assert_eq!(of(text), wanted, "{text}");
    }
}

#[test]
fn what_is_no_line_is_an_error() {
    for text in ["get \"a", "get 'a\\'", "'", r#"get "a\"#] {
        assert_eq!(words(text.as_bytes()), Err(BadLine::Unterminated), "{text}");
    }
    assert_eq!(words("a ".repeat(127).as_bytes()).map(|words| words.len()), Ok(127));
    assert_eq!(words("a ".repeat(129).as_bytes()), Err(BadLine::TooLong));
}

#[test]
fn prefixes_come_in_any_order() {
    let cases = [
        ("ls", OnFailure::Ends, Echo::Shown, "ls"),
        (" -ls a", OnFailure::GoesOn, Echo::Shown, "ls a"),
        ("@ls", OnFailure::Ends, Echo::Silent, "ls"),
        ("@- ls", OnFailure::GoesOn, Echo::Silent, "ls"),
        ("-@ls", OnFailure::GoesOn, Echo::Silent, "ls"),
        (" # ls", OnFailure::Ends, Echo::Shown, ""),
        ("", OnFailure::Ends, Echo::Shown, ""),
    ];
    for (line, on_failure, echo, text) in cases {
        let wanted = Line { on_failure, echo, text: text.as_bytes() };
        assert_eq!(Line::new(line.as_bytes()), wanted, "{line}");
    }
}

#[test]
fn a_word_without_a_pattern_says_its_text() {
    for (word, text) in [(r"a\*b", "a*b"), (r"\\", "\\"), (r"a\b\", r"a\b\"), ("é", "é")] {
        assert_eq!(unescaped(word.as_bytes()), text.as_bytes(), "{word}");
        assert_eq!(unescaped(&escaped(text.as_bytes())), text.as_bytes());
    }
}
