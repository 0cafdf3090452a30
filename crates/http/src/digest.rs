//! Digests of files: from the command line, from headers, from Metalink files.

use crate::head::Head;
use aws_lc_rs::digest::{self, Context};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;

/// A hash function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Function {
    /// SHA-1, of old Metalink files only: it finds damage, but no attacker.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

/// The digest of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Digest {
    /// The function.
    pub function: Function,
    /// Its result.
    pub value: Vec<u8>,
}

impl Function {
    /// Parses its name in the registries of hash functions (RFC 3230, RFC 5854, RFC 9530).
    // fuzz: web
    pub fn parse(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "sha-1" | "sha" => Some(Self::Sha1),
            "sha-256" => Some(Self::Sha256),
            "sha-512" => Some(Self::Sha512),
            _ => None,
        }
    }

    const fn algorithm(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => &digest::SHA256,
            Self::Sha512 => &digest::SHA512,
        }
    }

    /// A computation of the digest, without input so far.
    pub fn begin(self) -> Context {
        Context::new(self.algorithm())
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sha1 => "SHA-1",
            Self::Sha256 => "SHA-256",
            Self::Sha512 => "SHA-512",
        })
    }
}

impl Digest {
    /// Parses hexadecimal digits. `None` if their number is not that of the function.
    // fuzz: web
    pub fn parse(function: Function, hex: &str) -> Option<Self> {
        let hex = hex.trim().as_bytes();
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let pairs = hex.chunks(2).map(|pair| match pair {
            [high, low] => Some((digit(*high)? * 16 + digit(*low)?) as u8),
            _ => None,
        });
        let value = pairs.collect::<Option<Vec<u8>>>()?;
        (value.len() == function.algorithm().output_len()).then_some(Self { function, value })
    }

    /// Whether it is the result of a computation.
    pub fn is(&self, computed: Context) -> bool {
        computed.finish().as_ref() == self.value
    }
}

/// The digests of the whole file in a response: `Repr-Digest` (RFC 9530) and `Digest` (RFC 3230).
pub(crate) fn digests_of(head: &Head) -> Vec<Digest> {
    let values = head.all("repr-digest").chain(head.all("digest"));
    values.flat_map(|value| value.split(',')).filter_map(parse_member).collect()
}

/// Parses `sha-256=:BASE64:` or `SHA-256=BASE64`. `None` for an unknown function.
// fuzz: web
fn parse_member(text: &str) -> Option<Digest> {
    let (name, value) = text.trim().split_once('=')?;
    // TCP finds damage in flight. This digest is for attackers, and they can produce a SHA-1.
    let function = Function::parse(name).filter(|&function| function != Function::Sha1)?;
    let value = value.split(';').next()?.trim().trim_matches(':');
    let value = STANDARD.decode(value).ok()?;
    (value.len() == function.algorithm().output_len()).then_some(Digest { function, value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::head_of;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_digest_has_all_its_digits() {
        let digest = Digest::parse(Function::Sha256, EMPTY).unwrap();
        assert!(digest.is(Function::Sha256.begin()));
        assert!(!digest.is(Function::Sha512.begin()));
        for hex in ["", &EMPTY[2..], &EMPTY[1..], &format!("zz{}", &EMPTY[2..])] {
            assert_eq!(Digest::parse(Function::Sha256, hex), None, "{hex}");
        }
    }

    #[test]
    fn headers_tell_digests() {
        let of = |line: &str| {
            let text = format!("HTTP/1.1 200 OK\r\n{line}\r\n\r\n");
            digests_of(&head_of(text.as_bytes()).unwrap())
        };
        let base64 = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        let want = vec![Digest::parse(Function::Sha256, EMPTY).unwrap()];
        assert_eq!(of(&format!("Repr-Digest: md5=:AAAA:, sha-256=:{base64}:")), want);
        assert_eq!(of(&format!("Digest: SHA-256={base64}")), want);
        assert_eq!(of("Content-Digest: sha-256=:AAAA:"), []);
        assert_eq!(of("Repr-Digest: sha-256=:AAAA:"), []);
    }
}
