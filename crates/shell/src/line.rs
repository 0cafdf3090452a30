//! A line of the language, as words: quotes, backslashes, comments, and the prefixes `-` and `@`.
//!
//! A word is the text of a pattern: a character that means itself has a backslash in front if it could mean a pattern.
//! [`unescaped`] gives what it says where no pattern is allowed.

/// The most words of a line, as in OpenSSH's sftp.
const WORDS_MAX: usize = 128;

/// What a failure of the line means for those after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnFailure {
    /// In a batch it is the end.
    Ends,
    /// The next line follows, as the prefix `-` says.
    GoesOn,
}

/// Whether the line is printed before it is obeyed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Echo {
    /// It is, where lines are printed.
    Shown,
    /// It is not, as the prefix `@` says.
    Silent,
}

/// A line without its prefixes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Line<'a> {
    /// What a failure means.
    pub(crate) on_failure: OnFailure,
    /// Whether it is printed.
    pub(crate) echo: Echo,
    /// Its text from the first word on; empty if there is none.
    pub(crate) text: &'a [u8],
}

impl<'a> Line<'a> {
    /// Takes the prefixes off.
    pub(crate) fn new(text: &'a [u8]) -> Self {
        let mut text = text.trim_ascii_start();
        let (mut on_failure, mut echo) = (OnFailure::Ends, Echo::Shown);
        while let Some((first, rest)) = text.split_first() {
            match first {
                b'-' => on_failure = OnFailure::GoesOn,
                b'@' => echo = Echo::Silent,
                _ => break,
            }
            text = rest;
        }
        let text = text.trim_ascii_start();
        let text = if text.starts_with(b"#") { &[][..] } else { text };
        Self { on_failure, echo, text }
    }
}

/// Where in a word a character stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between two words.
    Between,
    /// In a word, in no quotes.
    Plain,
    /// In these quotes.
    Quoted(u8),
}

/// A line that has no end of its quotes, or too many words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadLine {
    /// A quote that is not closed.
    Unterminated,
    /// More words than [`WORDS_MAX`].
    TooLong,
}

impl BadLine {
    /// For the user.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Unterminated => "Unterminated quoted argument",
            Self::TooLong => "Too many arguments.",
        }
    }
}

/// Whether a character has a meaning in a pattern.
pub(crate) const fn is_magic(byte: u8) -> bool {
    matches!(byte, b'*' | b'?' | b'[')
}

/// The words of a text. A `#` outside quotes ends them.
pub(crate) fn words(text: &[u8]) -> Result<Vec<Vec<u8>>, BadLine> {
    let (mut all, mut word, mut state) = (Vec::new(), Vec::new(), State::Between);
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (state, byte) {
            (State::Between, b' ' | b'\t' | b'\r' | b'\n' | 11 | 12) => {}
            (State::Plain, b' ' | b'\t' | b'\r' | b'\n' | 11 | 12) => {
                all.push(std::mem::take(&mut word));
                state = State::Between;
            }
            (State::Quoted(quote), byte) if byte == quote => state = State::Plain,
            (State::Between | State::Plain, b'"' | b'\'') => state = State::Quoted(byte),
            (State::Between | State::Plain, b'#') => break,
            (State::Quoted(quote), b'\\') => match bytes.peek().copied() {
                Some(next) if next == quote => word.extend(bytes.next()),
                // Both are themselves: a pattern has no meaning in quotes.
                Some(next) if is_magic(next) => {
                    word.extend([b'\\', b'\\', b'\\', next]);
                    bytes.next();
                }
                Some(next) => {
                    word.extend([b'\\', next]);
                    bytes.next();
                }
                None => return Err(BadLine::Unterminated),
            },
            (State::Between | State::Plain, b'\\') => {
                state = State::Plain;
                match bytes.next() {
                    Some(next) if is_magic(next) || next == b'\\' => word.extend([b'\\', next]),
                    next => word.extend(next),
                }
            }
            (State::Quoted(_), byte) if is_magic(byte) => word.extend([b'\\', byte]),
            (State::Between, byte) => {
                state = State::Plain;
                word.push(byte);
            }
            (_, byte) => word.push(byte),
        }
        if all.len() >= WORDS_MAX {
            return Err(BadLine::TooLong);
        }
    }
    match state {
        State::Quoted(_) => return Err(BadLine::Unterminated),
        State::Plain => all.push(word),
        State::Between => {}
    }
    Ok(all)
}

/// What a word says where no pattern is allowed.
pub(crate) fn unescaped(word: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(word.len());
    let mut bytes = word.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match bytes.peek().copied() {
            Some(next) if byte == b'\\' && (is_magic(next) || next == b'\\') => {
                text.push(next);
                bytes.next();
            }
            _ => text.push(byte),
        }
    }
    text
}

/// The word of which [`unescaped`] is this text.
pub(crate) fn escaped(text: &[u8]) -> Vec<u8> {
    let mut word = Vec::with_capacity(text.len());
    for &byte in text {
        if is_magic(byte) || byte == b'\\' {
            word.push(b'\\');
        }
        word.push(byte);
    }
    word
}

#[cfg(test)]
mod tests;
