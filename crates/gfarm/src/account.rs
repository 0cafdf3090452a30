//! Who the client is: a user of the Gfarm file system and the user's shared key.

use hikyaku_tcp::Family;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use zeroize::Zeroize;

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// A user and the key that proves it.
#[derive(Clone, Debug)]
pub struct Account {
    /// The name of the user at the Gfarm servers.
    pub user: String,
    /// The key.
    pub key: SharedKey,
    /// How the servers are dialled.
    pub dial: Dial,
}

/// How servers are dialled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dial {
    /// The family of their addresses. Default: both.
    pub family: Option<Family>,
    /// How long a server may be silent. Default: 5 s while it is connected to, and 30 s while it is to answer.
    pub silence: Option<Duration>,
}

/// The secret that a user has in common with all servers, and the time until which it holds.
#[derive(Clone)]
pub struct SharedKey {
    /// Seconds since 1970, as 32 bits without a sign.
    pub(crate) expires: u32,
    pub(crate) key: [u8; KEY_BYTES],
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("cannot read the shared key {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not two hexadecimal words of 8 and 64 digits.
    #[error("{} has no shared key of Gfarm: two hexadecimal words are expected", .0.display())]
    Form(PathBuf),
    /// Other users may read or change the file.
    #[error("other users may read the shared key {}", .0.display())]
    Open(PathBuf),
}

impl KeyError {
    /// What the user can do about it.
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Open(_) => "chmod 600 on the file",
            _ => {
                "copy ~/.gfarm_shared_key of your account at the Gfarm servers to this machine, or set shared_key_file in gfarm2.conf"
            }
        }
    }
}

impl SharedKey {
    /// Reads the key file.
    ///
    /// # Errors
    ///
    /// It cannot be read, is no key file, or is readable for other users.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        use std::os::unix::fs::PermissionsExt;
        let failed = |source| KeyError::Read { path: path.to_owned(), source };
        let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(KeyError::Open(path.to_owned()));
        }
        let mut text = std::fs::read_to_string(path).map_err(failed)?;
        let key = Self::parse(&text);
        text.zeroize();
        key.ok_or_else(|| KeyError::Form(path.to_owned()))
    }

    /// Reads the text of a key file.
    // fuzz: gfarm
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let (expires, digits) = (words.next()?, words.next()?);
        if digits.len() != 2 * KEY_BYTES || !digits.is_ascii() {
            return None;
        }
        let mut key = [0; KEY_BYTES];
        for (byte, at) in key.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()?;
        }
        Some(Self { expires: u32::from_str_radix(expires, 16).ok()?, key })
    }
}

impl Drop for SharedKey {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedKey").field("expires", &self.expires).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_two_hexadecimal_words() {
        let digits = "00ff".repeat(16);
        let key = SharedKey::parse(&format!("7fffffff\n{digits}\n")).unwrap();
        assert_eq!((key.expires, key.key[0], key.key[31]), (0x7fff_ffff, 0, 255));
        assert!(!format!("{key:?}").contains("255"), "the key is printed");
        for text in ["", "7fffffff", "x 00", &format!("7fffffff {}", &digits[1..])] {
            assert!(SharedKey::parse(text).is_none(), "{text:?}");
        }
        assert!(SharedKey::parse(&format!("1 {}", "é".repeat(32))).is_none());
    }

    #[test]
    fn a_key_that_others_may_read_is_refused() {
        let path = std::env::temp_dir().join(format!("gfarm-key-{}", std::process::id()));
        fs::write(&path, format!("7fffffff {}", "11".repeat(32))).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(SharedKey::read(&path), Err(KeyError::Open(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(SharedKey::read(&path).is_ok());
        fs::remove_file(&path).unwrap();
        assert!(matches!(SharedKey::read(&path), Err(KeyError::Read { .. })));
    }
}
