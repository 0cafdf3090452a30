//! Patterns of rsync: `*` and `?` match within a name, `**` matches slashes too, `[...]` is a set, a backslash protects.

/// A pattern, ready for use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Wild(Vec<Token>);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Token {
    Byte(u8),
    /// One character, and no slash.
    Any,
    /// Characters that are no slash.
    Star,
    /// Any characters.
    DoubleStar,
    Set {
        is_negated: bool,
        ranges: Vec<(u8, u8)>,
    },
}

impl Wild {
    /// A backslash protects only in a pattern that has a wildcard (rsync(1)).
    pub(super) fn new(text: &[u8]) -> Self {
        if !text.iter().any(|byte| b"*?[".contains(byte)) {
            return Self(text.iter().map(|&byte| Token::Byte(byte)).collect());
        }
        let (mut tokens, mut rest) = (Vec::new(), text);
        while let Some((&first, after)) = rest.split_first() {
            let (token, after) = match (first, after) {
                (b'\\', [byte, after @ ..]) => (Token::Byte(*byte), after),
                (b'*', [b'*', after @ ..]) => {
                    let stars = after.iter().take_while(|&&byte| byte == b'*').count();
                    (Token::DoubleStar, &after[stars..])
                }
                (b'*', after) => (Token::Star, after),
                (b'?', after) => (Token::Any, after),
                (b'[', after) => set(after).unwrap_or((Token::Byte(b'['), after)),
                (byte, after) => (Token::Byte(byte), after),
            };
            tokens.push(token);
            rest = after;
        }
        Self(tokens)
    }

    /// Whether all of `text` matches.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        // Where in the text the tokens so far may end.
        let mut ends = vec![false; text.len() + 1];
        ends[0] = true;
        for token in &self.0 {
            let mut next = vec![false; text.len() + 1];
            match token {
                Token::Star | Token::DoubleStar => {
                    let mut is_open = false;
                    for at in 0..=text.len() {
                        let is_barred = at > 0 && text[at - 1] == b'/' && *token == Token::Star;
                        is_open = ends[at] || (is_open && !is_barred);
                        next[at] = is_open;
                    }
                }
                one => {
                    for at in 0..text.len() {
                        next[at + 1] = ends[at] && one.takes(text[at]);
                    }
                }
            }
            ends = next;
        }
        ends[text.len()]
    }
}

impl Token {
    fn takes(&self, byte: u8) -> bool {
        match self {
            Self::Byte(own) => *own == byte,
            Self::Any => byte != b'/',
            Self::Star | Self::DoubleStar => false,
            Self::Set { is_negated, ranges } => {
                let is_in = ranges.iter().any(|&(from, to)| (from..=to).contains(&byte));
                byte != b'/' && is_in != *is_negated
            }
        }
    }
}

/// A set, behind its `[`, and what follows its `]`.
fn set(text: &[u8]) -> Option<(Token, &[u8])> {
    let is_negated = matches!(text.first(), Some(b'!' | b'^'));
    let (mut rest, mut ranges) = (&text[usize::from(is_negated)..], Vec::new());
    loop {
        let (&first, after) = rest.split_first()?;
        if first == b']' && !ranges.is_empty() {
            return Some((Token::Set { is_negated, ranges }, after));
        }
        if let Some((class, after)) = class(rest) {
            ranges.extend(class);
            rest = after;
            continue;
        }
        let (from, after) = match (first, after) {
            (b'\\', [byte, after @ ..]) => (*byte, after),
            _ => (first, after),
        };
        rest = after;
        let mut to = from;
        if let [b'-', end, after @ ..] = rest
            && *end != b']'
        {
            (to, rest) = (*end, after);
        }
        ranges.push((from, to));
    }
}

/// Bytes from the first to the second, each pair.
type Ranges = &'static [(u8, u8)];

/// A class of characters within a set, such as `[:digit:]`, and what follows it.
fn class(text: &[u8]) -> Option<(Ranges, &[u8])> {
    const CLASSES: [(&[u8], Ranges); 8] = [
        (b"[:alnum:]", &[(b'0', b'9'), (b'A', b'Z'), (b'a', b'z')]),
        (b"[:alpha:]", &[(b'A', b'Z'), (b'a', b'z')]),
        (b"[:digit:]", &[(b'0', b'9')]),
        (b"[:lower:]", &[(b'a', b'z')]),
        (b"[:upper:]", &[(b'A', b'Z')]),
        (b"[:xdigit:]", &[(b'0', b'9'), (b'A', b'F'), (b'a', b'f')]),
        (b"[:space:]", &[(b' ', b' '), (b'\t', b'\r')]),
        (b"[:punct:]", &[(b'!', b'/'), (b':', b'@'), (b'[', b'`'), (b'{', b'~')]),
    ];
    CLASSES.iter().find_map(|(name, ranges)| Some((*ranges, text.strip_prefix(*name)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stop_at_slashes_and_double_stars_do_not() {
        let cases = [
            ("a*c", "abbc", true),
            ("a*c", "ab/c", false),
            ("a**c", "ab/c", true),
            ("a***c", "a//c", true),
            ("a/**/b", "a/x/y/b", true),
            ("a?c", "a/c", false),
            ("[a-c]x", "bx", true),
            ("[!a]x", "/x", false),
            (r"\**", "*x", true),
            (r"\**", "ax", false),
            (r"a\b", r"a\b", true),
            ("[[:digit:]x]", "7", true),
            ("[[:digit:]x]", "a", false),
            ("[]a]", "]", true),
            ("[", "[", true),
            ("**", "", true),
        ];
        for (pattern, text, wanted) in cases {
            assert_eq!(
                Wild::new(pattern.as_bytes()).matches(text.as_bytes()),
                wanted,
                "{pattern} {text}"
            );
        }
    }
}
