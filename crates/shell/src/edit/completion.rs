//! What a Tab offers: commands, and names here or on the server, quoted as the line needs it.

use crate::command::Command;
use crate::line::is_magic;
use crate::show::Shown;

/// A name of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Candidate {
    pub(super) name: Vec<u8>,
    pub(super) is_dir: bool,
}

/// Where names are looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    /// On this machine.
    Local,
    /// On the server.
    Remote,
}

/// Tells the names of directories. An empty path is the current one.
pub(super) trait Names {
    fn names(&self, side: Side, dir: &[u8]) -> Vec<Candidate>;
}

/// The word in which a line ends.
#[derive(PartialEq, Eq, Debug)]
struct Last {
    /// Where it begins.
    begin: usize,
    /// The quote in which it ends.
    quote: Option<char>,
    /// What it says so far.
    text: String,
    /// The words before it, without their flags.
    before: Vec<String>,
}

impl Last {
    fn of(line: &str) -> Self {
        let (mut last, mut is_open) = (Self::empty(line.len()), false);
        let mut all = Vec::new();
        let mut characters = line.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            if last.quote.is_none() && character.is_whitespace() {
                if is_open {
                    all.push(std::mem::take(&mut last.text));
                }
                is_open = false;
                continue;
            }
            if !is_open {
                (last.begin, is_open) = (at, true);
            }
            match (last.quote, character) {
                (None, '"' | '\'') => last.quote = Some(character),
                (Some(quote), _) if quote == character => last.quote = None,
                (None, '\\') => last.text.extend(characters.next().map(|(_, next)| next)),
                (Some(quote), '\\')
                    if characters.peek().is_some_and(|(_, next)| *next == quote) =>
                {
                    last.text.extend(characters.next().map(|(_, next)| next));
                }
                _ => last.text.push(character),
            }
        }
        if !is_open {
            last.begin = line.len();
        }
        last.before = all;
        last
    }

    const fn empty(begin: usize) -> Self {
        Self { begin, quote: None, text: String::new(), before: Vec::new() }
    }

    /// Where its name is looked for.
    fn side(&self) -> Side {
        let verb =
            self.before.first().map(|verb| verb.trim_start_matches(['-', '@']).to_lowercase());
        let others = self.before.iter().skip(1).filter(|word| !word.starts_with('-')).count();
        match (verb.as_deref().unwrap_or_default(), others) {
            ("get" | "mget" | "reget", 0) => Side::Remote,
            ("get" | "mget" | "reget", _) => Side::Local,
            ("put" | "mput" | "reput", 0) => Side::Local,
            ("lcd" | "lchdir" | "lls" | "lmkdir", _) => Side::Local,
            (verb, _) if verb.starts_with('!') => Side::Local,
            _ => Side::Remote,
        }
    }
}

/// Where the word begins in which `line` ends, and what it may become: what is shown, and what is typed.
pub(super) fn candidates(line: &str, names: &impl Names) -> (usize, Vec<(String, String)>) {
    let last = Last::of(line);
    if last.before.is_empty() && !last.text.starts_with('!') {
        let begin = last.begin + (last.text.len() - last.text.trim_start_matches(['-', '@']).len());
        let typed = last.text.trim_start_matches(['-', '@']);
        let fits = Command::NAMES.into_iter().filter(|name| name.starts_with(typed));
        return (begin, fits.map(|name| (name.to_owned(), format!("{name} "))).collect());
    }
    let slash = last.text.rfind('/').map_or(0, |slash| slash + 1);
    let (dir, typed) = last.text.split_at(slash);
    let mut all = names.names(last.side(), dir.as_bytes());
    all.retain(|candidate| {
        let is_hidden = candidate.name.starts_with(b".") && !typed.starts_with('.');
        candidate.name.starts_with(typed.as_bytes()) && !is_hidden
    });
    all.sort_by(|a, b| a.name.cmp(&b.name));
    let offer = |candidate: Candidate| {
        // A name that is no text cannot be typed.
        let name = String::from_utf8(candidate.name).ok()?;
        if name.chars().any(char::is_control) {
            return None;
        }
        let slash = if candidate.is_dir { "/" } else { "" };
        let typed = quoted(&format!("{dir}{name}{slash}"), last.quote);
        let end = match (candidate.is_dir, last.quote) {
            (true, _) => String::new(),
            (false, Some(quote)) => format!("{quote} "),
            (false, None) => " ".to_owned(),
        };
        let shown = Shown::new(name.as_bytes()).to_string();
        Some((format!("{shown}{slash}"), format!("{typed}{end}")))
    };
    (last.begin, all.into_iter().filter_map(offer).collect())
}

/// A text as a line says it. In quotes they stay open.
fn quoted(text: &str, quote: Option<char>) -> String {
    let is_special = |character: char| match quote {
        Some(quote) => character == quote,
        None => {
            let is_magic = u8::try_from(character).is_ok_and(is_magic);
            is_magic || character.is_whitespace() || matches!(character, '"' | '\'' | '\\' | '#')
        }
    };
    let mut typed: String = quote.into_iter().collect();
    for character in text.chars() {
        if is_special(character) {
            typed.push('\\');
        }
        typed.push(character);
    }
    typed
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Known;

    impl Names for Known {
        fn names(&self, side: Side, dir: &[u8]) -> Vec<Candidate> {
            let of = |name: &str, is_dir| Candidate { name: name.as_bytes().to_vec(), is_dir };
            match (side, dir) {
                (Side::Remote, b"") => {
                    vec![of("run 7", true), of("run*", false), of(".far", false)]
                }
                (Side::Remote, b"run 7/") => vec![of("a'b", false), of("c\u{1b}", false)],
                (Side::Local, b"") => vec![of("here", false)],
                _ => Vec::new(),
            }
        }
    }

    #[test]
    fn a_tab_offers_commands_and_names_as_the_line_needs_them() {
        let cases: [(&str, usize, &[&str]); 16] = [
            ("rep", 0, &["reput "]),
            ("-@rep", 2, &["reput "]),
            ("get r", 4, &[r"run\ 7/", r"run\* "]),
            ("get -p \"ru", 7, &["\"run 7/", "\"run*\" "]),
            ("get run\\ 7/", 4, &[r"run\ 7/a\'b "]),
            ("get 'run 7/", 4, &[r"'run 7/a\'b' "]),
            ("get .", 4, &[".far "]),
            ("get a ", 6, &["here "]),
            ("get -p a ", 9, &["here "]),
            ("put ", 4, &["here "]),
            ("put h r", 6, &[r"run\ 7/", r"run\* "]),
            ("lcd h", 4, &["here "]),
            ("!cat h", 5, &["here "]),
            ("cd x/", 3, &[]),
            ("CD r", 3, &[r"run\ 7/", r"run\* "]),
            ("jaja", 0, &[]),
        ];
        for (line, begin, wanted) in cases {
            let (at, offered) = candidates(line, &Known);
            let typed: Vec<String> = offered.into_iter().map(|(_, typed)| typed).collect();
            assert_eq!(
                (at, typed),
                (begin, wanted.iter().map(ToString::to_string).collect()),
                "{line}"
            );
        }
    }
}
