//! Flags of a command: words that begin with `-`, in front of all others.

use super::NoCommand;

/// The words after a verb, of which flags are taken first.
pub(super) struct Flags<'a> {
    verb: &'a str,
    words: std::slice::Iter<'a, Vec<u8>>,
}

impl<'a> Flags<'a> {
    pub(super) fn new(verb: &'a str, words: &'a [Vec<u8>]) -> Self {
        Self { verb, words: words.iter() }
    }

    /// Takes the flags, in their order. Each must be one of the letters `known`.
    pub(super) fn take(&mut self, known: &str) -> Result<Vec<u8>, NoCommand> {
        let mut all = Vec::new();
        while let Some(letters) = self.words.as_slice().first().and_then(|w| w.strip_prefix(b"-")) {
            // A lone `-` is a name.
            if letters.is_empty() {
                break;
            }
            self.words.next();
            if letters == b"-" {
                break;
            }
            for &letter in letters {
                if !known.as_bytes().contains(&letter) {
                    let shown = char::from(letter).escape_default();
                    return Err(NoCommand(format!("{}: Invalid flag -{shown}", self.verb)));
                }
                all.push(letter);
            }
        }
        Ok(all)
    }

    /// The next word.
    pub(super) fn word(&mut self) -> Option<Vec<u8>> {
        self.words.next().cloned()
    }
}
