//! The two lines of `hikyaku keys install` and `hikyaku keys receive`.
//!
//! The request is one line on standard input, so that no shell reads it. A receiver refuses a request with a field that it
//! does not know: the field may restrict the key.

use hikyaku_crypto::PublicKey;
use hikyaku_fs::brief;
use serde::{Deserialize, Serialize};

/// The most bytes of a request.
pub(super) const REQUEST_BYTES_MAX: u64 = 16 << 10;
/// The first word of an answer, by which it is found behind the output of the shell's start-up files.
const MARK: &str = "hikyaku-keys";

/// A key for a list of keys.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    /// The line for the list.
    pub(super) line: String,
    /// The list, if it is not the usual one of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) list: Option<String>,
}

/// The receiver's answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    /// The key is in the list.
    Done {
        /// The path of the list, with `~` for the home directory.
        list: String,
        /// Whether the line was added now.
        was: Was,
        /// The public key of the host's daemon, if it is known which daemon reads the list.
        key: Option<String>,
    },
    /// The list belongs to another user.
    Denied,
    /// The list was not changed.
    Refused {
        /// The reason.
        why: String,
    },
}

/// Whether a key was in the list before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Was {
    Absent,
    Present,
}

impl Answer {
    /// The answer as a line.
    pub(super) fn line(&self) -> serde_json::Result<String> {
        Ok(format!("{MARK} {}\n", serde_json::to_string(self)?))
    }

    /// The last answer in the output of a host. Its texts are safe to be shown, and its key is one.
    // fuzz: none, serde_json reads it
    pub(super) fn find(text: &str) -> Option<Self> {
        let mut lines = text.lines().rev();
        let line = lines.find_map(|line| line.strip_prefix(MARK)?.strip_prefix(' '))?;
        match serde_json::from_str(line).ok()? {
            Self::Done { list, was, key } => {
                if let Some(key) = &key {
                    key.parse::<PublicKey>().ok()?;
                }
                Some(Self::Done { list: brief(&list), was, key })
            }
            Self::Refused { why } => Some(Self::Refused { why: brief(&why) }),
            Self::Denied => Some(Self::Denied),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ed25519:AAAA";

    #[test]
    fn an_answer_is_found_behind_the_output_of_a_shell() {
        let answer = Answer::Done { list: "~/list".to_owned(), was: Was::Absent, key: None };
        let text = format!("Welcome\nhikyaku-keys of old\n{}", answer.line().unwrap());
        assert_eq!(Answer::find(&text), Some(answer));
        assert_eq!(Answer::find(""), None);
        assert_eq!(Answer::find("hikyaku-keys"), None);
    }

    #[test]
    fn the_texts_of_an_answer_cannot_move_the_cursor() {
        let why = "no\u{1b}[2J\nhikyaku: fine\u{202e}".to_owned();
        let found = Answer::find(&Answer::Refused { why }.line().unwrap());
        let Some(Answer::Refused { why }) = found else { panic!("{found:?}") };
        assert!(!why.contains(['\u{1b}', '\n', '\u{202e}']), "{why:?}");
    }

    #[test]
    fn an_answer_with_another_key_than_a_key_is_none() {
        let key = Some(KEY.to_owned());
        let answer = Answer::Done { list: "l".to_owned(), was: Was::Present, key };
        assert_eq!(Answer::find(&answer.line().unwrap()), None);
    }

    /// A restriction that an older receiver does not know must not be dropped.
    #[test]
    fn a_request_with_an_unknown_field_is_refused() {
        let request = Request { line: KEY.to_owned(), list: None };
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request);
        let other = text.replace('}', ",\"until\":\"2030\"}");
        assert!(serde_json::from_str::<Request>(&other).is_err(), "{other}");
    }
}
