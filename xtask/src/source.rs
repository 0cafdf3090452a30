//! A Rust file with its code, comments and test parts told apart.
//!
//! Not a parser: a scan that knows comments, literals and brackets. That is enough for rules about
//! words and lengths on formatted code, and it cannot fail.

use std::ops::Range;

#[cfg(test)]
mod tests;

/// One Rust file.
pub(crate) struct Source {
    /// Relative to the root of the workspace.
    pub(crate) path: String,
    /// As it stands on disk.
    pub(crate) text: String,
    /// The same bytes, with comments and the insides of literals blanked.
    pub(crate) code: String,
    /// The same bytes, with everything but comments blanked.
    pub(crate) comments: String,
    /// The byte ranges of literals, their quotes included.
    pub(crate) literals: Vec<Range<usize>>,
    /// Byte ranges that are compiled for tests only.
    tests: Vec<Range<usize>>,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let (code, comments, literals) = split(text);
        let tests = test_parts(path, &code);
        Self { path: path.to_owned(), text: text.to_owned(), code, comments, literals, tests }
    }

    /// The folder name of the crate that this file belongs to, if it is a library or binary source.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        let (name, rest) = self.path.strip_prefix("crates/")?.split_once('/')?;
        rest.starts_with("src/").then_some(name)
    }

    /// Whether this is the file where a crate's attributes stand.
    pub(crate) fn is_crate_root(&self) -> bool {
        self.path.ends_with("/src/lib.rs") || self.path.ends_with("/src/main.rs")
    }

    /// Whether the byte at `offset` is compiled for tests only.
    pub(crate) fn is_test(&self, offset: usize) -> bool {
        self.tests.iter().any(|part| part.contains(&offset))
    }

    /// The number, from 1, of the line with the byte at `offset`.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        1 + self.text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count()
    }

    /// How many lines are not test code.
    pub(crate) fn lines_without_tests(&self) -> usize {
        let mut offset = 0;
        let mut count = 0;
        for line in self.text.split_inclusive('\n') {
            count += usize::from(!self.is_test(offset));
            offset += line.len();
        }
        count
    }

    /// Where `word` stands in the code as a word of its own.
    pub(crate) fn find_word<'a>(&'a self, word: &'a str) -> impl Iterator<Item = usize> + 'a {
        find_word(&self.code, word)
    }

    /// The code with the parts for tests blanked.
    pub(crate) fn product_code(&self) -> String {
        let mut code = self.code.clone().into_bytes();
        self.tests.iter().for_each(|part| blank(&mut code[part.clone()]));
        String::from_utf8_lossy(&code).into_owned()
    }

    /// The offset just behind the bracketed block or the `;` that ends the item at `offset`.
    pub(crate) fn end_of_item(&self, offset: usize) -> Option<Body> {
        body_after(&self.code, offset)
    }
}

/// How an item ends.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Body {
    /// With a block in braces: its first byte, and the one behind its last.
    Block(Range<usize>),
    /// With a semicolon: the byte behind it.
    None(usize),
}

impl Body {
    fn end(&self) -> usize {
        match self {
            Self::Block(range) => range.end,
            Self::None(end) => *end,
        }
    }
}

/// Where `word` stands in `code` as a word of its own. A side of `word` that is no letter, digit or underscore may have
/// anything beside it.
pub(crate) fn find_word<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    let is_free = move |at: Option<&u8>| at.is_none_or(|byte| !is_word_byte(*byte));
    let is_open = |byte: Option<&u8>| byte.is_none_or(|byte| !is_word_byte(*byte));
    let (open_start, open_end) =
        (is_open(word.as_bytes().first()), is_open(word.as_bytes().last()));
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = at.checked_sub(1).and_then(|index| bytes.get(index));
        (open_start || is_free(before)) && (open_end || is_free(bytes.get(at + word.len())))
    })
}

pub(crate) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// How the item at `offset` ends.
pub(crate) fn body_after(code: &str, offset: usize) -> Option<Body> {
    let mut depth = 0_usize;
    for (index, byte) in code.bytes().enumerate().skip(offset) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b';' if depth == 0 => return Some(Body::None(index + 1)),
            b'{' if depth == 0 => return Some(Body::Block(index..closing_brace(code, index))),
            _ => {}
        }
    }
    None
}

/// The offset behind the brace that closes the one at `open`; the end of the text if none does.
fn closing_brace(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return index + 1,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// Files and folders that hold nothing but tests, and items under `#[cfg(test)]`.
fn test_parts(path: &str, code: &str) -> Vec<Range<usize>> {
    let is_test_file = ["/tests/", "/benches/", "/examples/", "/fuzz/"]
        .iter()
        .any(|folder| format!("/{path}").contains(folder))
        || path.ends_with("/tests.rs");
    if is_test_file || code.contains("#![cfg(test)]") {
        return vec![Range { start: 0, end: code.len() }];
    }
    ["#[cfg(test)]", "#[cfg(all(test"]
        .iter()
        .flat_map(|attribute| code.match_indices(attribute))
        .filter_map(|(start, attribute)| {
            let end = body_after(code, start + attribute.len())?.end();
            Some(start..end)
        })
        .collect()
}

/// Copies of `text`, one with its code only and one with its comments only, and the ranges of its literals.
fn split(text: &str) -> (String, String, Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let mut literals = Vec::new();
    let mut code = bytes.to_vec();
    let mut comments = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let piece = piece_at(text, at);
        match piece.kind {
            Kind::Code => blank(&mut comments[at..piece.end]),
            Kind::Comment => blank(&mut code[at..piece.end]),
            Kind::Literal => {
                literals.push(at..piece.end);
                blank(&mut code[at..piece.end]);
                blank(&mut comments[at..piece.end]);
                // The quotes stay: they keep what stands before and behind apart.
                code[at] = b'"';
                code[piece.end - 1] = b'"';
            }
        }
        at = piece.end;
    }
    let string = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (string(code), string(comments), literals)
}

fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

enum Kind {
    Code,
    Comment,
    Literal,
}

struct Piece {
    kind: Kind,
    end: usize,
}

/// The comment, literal or single character of code that starts at `at`.
fn piece_at(text: &str, at: usize) -> Piece {
    let rest = &text[at..];
    let piece = |kind, length: usize| Piece { kind, end: at + length };
    let first = rest.chars().next().map_or(1, char::len_utf8);
    if rest.starts_with("//") {
        return piece(Kind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return piece(Kind::Comment, block_comment(rest));
    }
    let before = text[..at].bytes().next_back();
    if before.is_none_or(|byte| !is_word_byte(byte))
        && let Some(length) = raw_string(rest)
    {
        return piece(Kind::Literal, length);
    }
    match rest.as_bytes()[0] {
        b'"' => piece(Kind::Literal, quoted(rest, b'"')),
        b'\'' if is_char(rest) => piece(Kind::Literal, quoted(rest, b'\'')),
        _ => piece(Kind::Code, first),
    }
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    let bytes = rest.as_bytes();
    while at < bytes.len() {
        match &bytes[at..(at + 2).min(bytes.len())] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" if depth == 1 => return at + 2,
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of a raw string at the start of `rest`, if one is there.
fn raw_string(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r"].iter().find(|prefix| rest.starts_with(**prefix))?;
    let body = &rest[prefix.len()..];
    let hashes = body.len() - body.trim_start_matches('#').len();
    let content = body[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = content.find(&end).map_or(content.len(), |found| found + end.len());
    Some(prefix.len() + hashes + 1 + length)
}

/// Whether a `'` opens a character and not a lifetime.
fn is_char(rest: &str) -> bool {
    let mut chars = rest.chars().skip(1);
    match chars.next() {
        Some('\\') => true,
        Some(_) => chars.next() == Some('\''),
        None => false,
    }
}

/// The length of a quoted literal at the start of `rest`.
fn quoted(rest: &str, quote: u8) -> usize {
    let mut escaped = false;
    for (index, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            byte if byte == quote => return index + 1,
            _ => {}
        }
    }
    rest.len()
}
