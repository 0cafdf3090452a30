//! Names in certificates (X.501), in the form that grid software writes: `/C=JP/O=Some Grid/CN=some.host`.

use std::fmt::Write;

/// Tags of DER (X.690).
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT: u8 = 0x06;
/// The version of a certificate, which the first version leaves out.
const VERSION: u8 = 0xa0;

/// Types of attributes as OpenSSL writes them (`X509_NAME_oneline`): the bytes of the object identifier, and its short name.
const TYPES: [(&[u8], &str); 14] = [
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 4], "SN"),
    (&[0x55, 4, 5], "serialNumber"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "street"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x55, 4, 12], "title"),
    (&[0x55, 4, 42], "GN"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], "emailAddress"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1], "UID"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
];

/// The issuer and the subject of a certificate: the bytes of the two names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Signed<'a> {
    pub(super) issuer: &'a [u8],
    pub(super) subject: &'a [u8],
}

impl<'a> Signed<'a> {
    /// Reads a certificate. `None` if it is none.
    // fuzz: none, webpki has to take the certificate as well
    pub(super) fn of(certificate: &'a [u8]) -> Option<Self> {
        let (outer, _) = element(certificate, SEQUENCE)?;
        let (inner, _) = element(outer, SEQUENCE)?;
        let inner = element(inner, VERSION).map_or(inner, |(_, rest)| rest);
        // The serial number, and the algorithm of the signature.
        let rest = any(any(inner)?.2)?.2;
        let (issuer, rest) = element(rest, SEQUENCE)?;
        // The time of its validity.
        let (subject, _) = element(any(rest)?.2, SEQUENCE)?;
        Some(Self { issuer, subject })
    }
}

/// A name on one line. `None` if its bytes are no name.
pub(super) fn one_line(mut name: &[u8]) -> Option<String> {
    let mut line = String::new();
    while !name.is_empty() {
        let (mut set, rest) = element(name, SET)?;
        name = rest;
        while !set.is_empty() {
            let (pair, rest) = element(set, SEQUENCE)?;
            set = rest;
            let (object, value) = element(pair, OBJECT)?;
            let (_, value, _) = any(value)?;
            let known = TYPES.iter().find(|(bytes, _)| *bytes == object);
            let kind = known.map_or_else(|| dotted(object), |(_, short)| (*short).to_owned());
            // Writing to a string cannot fail.
            let _ = write!(line, "/{kind}=");
            for &byte in value {
                let _ = match byte {
                    b' '..=b'~' => write!(line, "{}", byte as char),
                    _ => write!(line, "\\x{byte:02X}"),
                };
            }
        }
    }
    Some(line)
}

/// An object identifier with dots.
fn dotted(object: &[u8]) -> String {
    let (mut numbers, mut number) = (Vec::new(), 0_u64);
    for &byte in object {
        number = number.wrapping_shl(7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            numbers.push(number);
            number = 0;
        }
    }
    if let Some(first) = numbers.first_mut() {
        let root = (*first / 40).min(2);
        *first -= root * 40;
        numbers.insert(0, root);
    }
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    texts.join(".")
}

/// The content of an element with this tag, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = any(bytes)?;
    (found == tag).then_some((content, rest))
}

/// The tag and the content of an element, and what follows it.
fn any(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&short, mut rest) = rest.split_first()?;
    let mut length = usize::from(short);
    if short & 0x80 != 0 {
        let (long, behind) = rest.split_at_checked(usize::from(short & 0x7f).min(9))?;
        if long.is_empty() || long.len() > 4 {
            return None;
        }
        length = long.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte));
        rest = behind;
    }
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    #[test]
    fn a_name_is_written_as_openssl_writes_it() {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let email = DnType::CustomDnType(vec![1, 2, 840, 113_549, 1, 9, 1]);
        let other = DnType::CustomDnType(vec![2, 5, 4, 65]);
        let parts = [
            (DnType::CountryName, "JP"),
            (DnType::OrganizationName, "Some Grid"),
            (email, "a@b"),
            (other, "x"),
            (DnType::CommonName, "host/\u{e9}"),
        ];
        for (kind, value) in parts {
            params.distinguished_name.push(kind, value);
        }
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let signed = Signed::of(certificate.der()).unwrap();
        assert_eq!(signed.issuer, signed.subject);
        let want = "/C=JP/O=Some Grid/emailAddress=a@b/2.5.4.65=x/CN=host/\\xC3\\xA9";
        assert_eq!(one_line(signed.subject).unwrap(), want);
    }

    #[test]
    fn what_is_cut_short_is_no_certificate() {
        let certificate = rcgen::generate_simple_self_signed(["a.org".to_owned()]).unwrap();
        let bytes = certificate.cert.der();
        for length in 0..bytes.len() {
            assert_eq!(Signed::of(&bytes[..length]), None, "{length}");
        }
        assert_eq!(one_line(b"\x31\x84\xff\xff\xff\xff"), None);
        assert_eq!(one_line(b"\x31\x80"), None);
    }
}
