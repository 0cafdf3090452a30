//! Keys of objects, and how they stand in a URL.

use hikyaku_store::{ErrorKind, StorePath};
use std::fmt::Write;

/// Bytes of a key (Amazon S3 user guide, "Naming Amazon S3 objects").
const KEY_BYTES_MAX: usize = 1024;

/// The key of a file.
pub(crate) fn key(path: &StorePath) -> Result<String, ErrorKind> {
    let key = str::from_utf8(path.as_bytes()).map_err(|_| ErrorKind::BadName)?;
    if key.len() > KEY_BYTES_MAX {
        return Err(ErrorKind::BadName);
    }
    Ok(key.to_owned())
}

/// The prefix of all keys below a directory; empty for the root. An object of this key marks an empty directory.
pub(crate) fn prefix(path: &StorePath) -> Result<String, ErrorKind> {
    let key = key(path)?;
    Ok(if key.is_empty() { key } else { key + "/" })
}

/// The encoding of `text` in a URL: all but the unreserved characters of RFC 3986 is encoded, and slashes as `slash`
/// requires.
pub(crate) fn encoded(text: &str, slash: Slash) -> String {
    let mut url = String::with_capacity(text.len() + text.len() / 4);
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                url.push(byte as char);
            }
            b'/' if slash == Slash::Kept => url.push('/'),
            _ => {
                // Writing to a text does not fail.
                let _ = write!(url, "%{byte:02X}");
            }
        }
    }
    url
}

/// The treatment of a slash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Slash {
    /// It stays, as in the path of a URL.
    Kept,
    /// It is encoded, as in a query.
    Encoded,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_encoded_byte_by_byte() {
        assert_eq!(encoded("a b/ä+%2e~", Slash::Kept), "a%20b/%C3%A4%2B%252e~");
        assert_eq!(encoded("a/=", Slash::Encoded), "a%2F%3D");
    }

    #[test]
    fn a_name_that_is_no_text_is_no_key() {
        assert_eq!(key(&StorePath::new(b"\xff").unwrap()), Err(ErrorKind::BadName));
        assert_eq!(prefix(&StorePath::ROOT).unwrap(), "");
        assert_eq!(prefix(&StorePath::new(b"a/b").unwrap()).unwrap(), "a/b/");
    }
}
