//! What a pattern matches: `*`, `?` and `[...]` within a name, as of glob(7). A backslash protects a character.
//!
//! A name that begins with a dot is matched only by a pattern that does. Names come sorted.

mod braces;

use hikyaku_fs::Name;
use hikyaku_sftp::{Attributes, Kind};

/// The most paths that a pattern may match.
pub(crate) const MATCHES_MAX: usize = 1 << 20;

/// Files among which a pattern is looked for.
pub(crate) trait Tree {
    /// Why nothing more can be found.
    type End;

    /// The entries of a directory, if it can be read, with what is known of them. An empty path is the current one.
    fn entries(&self, dir: &[u8]) -> Result<Vec<Vec<u8>>, Self::End>;

    /// Metadata of a path, of a link itself; `None` if there is nothing.
    fn attributes(&self, path: &[u8]) -> Result<Option<Attributes>, Self::End>;
}

/// A path that is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    pub(crate) path: Vec<u8>,
    /// Of a link itself.
    pub(crate) attributes: Attributes,
}

impl Found {
    /// Whether it is a directory, and no link to one.
    pub(crate) fn is_dir(&self) -> bool {
        self.attributes.kind() == Some(Kind::Dir)
    }
}

/// What a character of a pattern matches.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Token {
    /// Itself.
    Byte(u8),
    /// Any one character.
    Any,
    /// Any number of them.
    Some,
    /// One of these ranges, or none of them.
    Set { is_negated: bool, ranges: Vec<(u8, u8)> },
}

/// The part of a pattern between two slashes.
struct Part(Vec<Token>);

impl Part {
    // fuzz: none, the user's own words
    fn parse(text: &[u8]) -> Self {
        let (mut tokens, mut rest) = (Vec::new(), text);
        while let Some((&first, after)) = rest.split_first() {
            rest = after;
            tokens.push(match first {
                b'\\' => match rest.split_first() {
                    Some((&byte, after)) => {
                        rest = after;
                        Token::Byte(byte)
                    }
                    None => Token::Byte(b'\\'),
                },
                b'*' if tokens.last() == Some(&Token::Some) => continue,
                b'*' => Token::Some,
                b'?' => Token::Any,
                b'[' => match set(rest) {
                    Some((token, after)) => {
                        rest = after;
                        token
                    }
                    None => Token::Byte(b'['),
                },
                byte => Token::Byte(byte),
            });
        }
        Self(tokens)
    }

    /// What it says if it is no pattern.
    fn literal(&self) -> Option<Vec<u8>> {
        let byte = |token: &Token| match token {
            Token::Byte(byte) => Some(*byte),
            _ => None,
        };
        self.0.iter().map(byte).collect()
    }

    fn matches(&self, name: &[u8]) -> bool {
        if name.first() == Some(&b'.') && self.0.first() != Some(&Token::Byte(b'.')) {
            return false;
        }
        // Where to go on if the last `*` takes one character more.
        let (mut retry, mut token, mut at) = (None, 0, 0);
        loop {
            match self.0.get(token) {
                Some(Token::Some) => {
                    retry = Some((token, at));
                    token += 1;
                }
                None if at == name.len() => return true,
                Some(one) if name.get(at).is_some_and(|&byte| one.takes(byte)) => {
                    token += 1;
                    at += 1;
                }
                _ => match retry {
                    Some((star, from)) if from < name.len() => {
                        retry = Some((star, from + 1));
                        (token, at) = (star + 1, from + 1);
                    }
                    _ => return false,
                },
            }
        }
    }
}

impl Token {
    fn takes(&self, byte: u8) -> bool {
        match self {
            Self::Byte(own) => *own == byte,
            Self::Any => true,
            Self::Some => false,
            Self::Set { is_negated, ranges } => {
                ranges.iter().any(|&(from, to)| (from..=to).contains(&byte)) != *is_negated
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
        let (from, after) = protected(first, after)?;
        rest = after;
        let mut to = from;
        if let [b'-', end, after @ ..] = rest
            && *end != b']'
        {
            (to, rest) = protected(*end, after)?;
        }
        ranges.push((from, to));
    }
}

/// A character, or the one behind a backslash.
fn protected(first: u8, rest: &[u8]) -> Option<(u8, &[u8])> {
    if first == b'\\' {
        let (&byte, rest) = rest.split_first()?;
        return Some((byte, rest));
    }
    Some((first, rest))
}

/// More paths than may be.
#[derive(Debug)]
pub(crate) enum Unfound<E> {
    /// More than [`MATCHES_MAX`].
    TooMany,
    /// Nothing more can be found.
    End(E),
}

impl<E> From<E> for Unfound<E> {
    fn from(error: E) -> Self {
        Self::End(error)
    }
}

/// The path that a pattern means if none of its names is one.
pub(crate) fn literal(pattern: &[u8]) -> Option<Vec<u8>> {
    let parts = pattern.split(|&byte| byte == b'/').map(|part| Part::parse(part).literal());
    Some(parts.collect::<Option<Vec<_>>>()?.join(&b'/'))
}

/// What is there of a pattern; nothing if there is nothing. A path without a pattern is looked at as well.
pub(crate) fn expand<T: Tree>(tree: &T, pattern: &[u8]) -> Result<Vec<Found>, Unfound<T::End>> {
    let parts: Vec<Part> = pattern.split(|&byte| byte == b'/').map(Part::parse).collect();
    let mut all = Vec::new();
    descend(tree, Vec::new(), &parts, &mut all)?;
    Ok(all)
}

/// The same of each pattern that `{a,b}` in this one stands for, as `ls` takes it.
pub(crate) fn expand_all<T: Tree>(tree: &T, pattern: &[u8]) -> Result<Vec<Found>, Unfound<T::End>> {
    let mut all = Vec::new();
    for pattern in braces::expanded(pattern).ok_or(Unfound::TooMany)? {
        all.extend(expand(tree, &pattern)?);
    }
    Ok(all)
}

fn descend<T: Tree>(
    tree: &T,
    mut path: Vec<u8>,
    parts: &[Part],
    all: &mut Vec<Found>,
) -> Result<(), Unfound<T::End>> {
    for (number, part) in parts.iter().enumerate() {
        let rest = &parts[number + 1..];
        let slash = if rest.is_empty() { &b""[..] } else { b"/" };
        if let Some(name) = part.literal() {
            path.extend(name);
            path.extend(slash);
            continue;
        }
        let mut names = tree.entries(&path)?;
        // A name with a slash, or one that means a directory above, is none.
        names.retain(|name| Name::new(name).is_ok() && part.matches(name));
        names.sort();
        for name in names {
            descend(tree, [&path[..], &name, slash].concat(), rest, all)?;
        }
        return Ok(());
    }
    if let Some(attributes) = tree.attributes(&path)? {
        if all.len() >= MATCHES_MAX {
            return Err(Unfound::TooMany);
        }
        all.push(Found { path, attributes });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
