//! The features that a server announces (FEAT, RFC 2389).

use crate::reply::Reply;

/// Features of a server beyond RFC 959.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Features {
    /// Names of the features, in upper case. A reply's limit bounds their number.
    names: Vec<String>,
}

impl Features {
    /// Of the reply to FEAT. A server that refuses FEAT has none.
    // fuzz: ftp_replies
    pub(crate) fn of(reply: &Reply) -> Self {
        // Only lines that begin with a space name features; the first and the last are text.
        let indented = reply.lines.iter().filter_map(|line| line.strip_prefix(b" "));
        let name = |line: &[u8]| {
            let line = String::from_utf8_lossy(line).to_uppercase();
            line.split_whitespace().next().map(str::to_owned)
        };
        Self { names: indented.filter_map(name).collect() }
    }

    /// Whether the server has the feature `name`, in upper case.
    pub fn has(&self, name: &str) -> bool {
        self.names.iter().any(|have| have == name)
    }
}
