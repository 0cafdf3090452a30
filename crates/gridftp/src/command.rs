//! Commands of the control connection.

use crate::error::FtpError;

/// A command, without its line end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Command {
    bytes: Vec<u8>,
    is_secret: bool,
}

impl Command {
    /// `words` are this program's own.
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self { bytes: words.into().into_bytes(), is_secret: false }
    }

    /// A command whose last argument is the user's or the server's.
    pub(crate) fn with(words: &str, argument: &[u8]) -> Result<Self, FtpError> {
        if argument.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return Err(FtpError::BadPath);
        }
        let bytes = [words.as_bytes(), b" ", argument].concat();
        Ok(Self { bytes, is_secret: false })
    }

    /// The argument is not shown.
    pub(crate) fn secret(self) -> Self {
        Self { is_secret: true, ..self }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The first word.
    pub(crate) fn verb(&self) -> String {
        let mut words = self.bytes.split(|&byte| byte == b' ');
        String::from_utf8_lossy(words.next().unwrap_or_default()).into_owned()
    }

    /// The command for a person.
    pub(crate) fn shown(&self) -> String {
        match self.is_secret {
            true => format!("{} ...", self.verb()),
            false => String::from_utf8_lossy(&self.bytes).into_owned(),
        }
    }
}
