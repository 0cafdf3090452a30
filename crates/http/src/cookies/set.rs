//! `Set-Cookie` (RFC 6265, section 5.2).

use super::date::date;
use std::time::{Duration, SystemTime};

/// Octets of a name with its value, and of a path or domain. RFC 6265, section 6.1, asks for 4096.
const COOKIE_BYTES_MAX: usize = 4096;
/// Octets of a path or domain.
const ATTRIBUTE_BYTES_MAX: usize = 1024;

/// The cookie of an answer.
pub(super) struct SetCookie {
    pub(super) name: String,
    pub(super) value: String,
    /// In lower case, without a dot in front.
    pub(super) domain: Option<String>,
    pub(super) path: Option<String>,
    pub(super) is_secure: bool,
    pub(super) expires: Option<SystemTime>,
}

impl SetCookie {
    /// Parses a value. `None`: the cookie is ignored.
    // fuzz: web
    pub(super) fn parse(text: &str, now: SystemTime) -> Option<Self> {
        if text.chars().any(|c| c.is_control() && c != '\t') {
            return None;
        }
        let mut parts = text.split(';');
        let (name, value) = parts.next()?.split_once('=')?;
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        if name.is_empty() || name.len() + value.len() > COOKIE_BYTES_MAX {
            return None;
        }
        let (domain, path) = (None, None);
        let mut set = Self { name, value, domain, path, is_secure: false, expires: None };
        // `Max-Age` has precedence over `Expires`.
        let mut age = None;
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            let value = if value.len() > ATTRIBUTE_BYTES_MAX { "" } else { value };
            match name.trim().to_ascii_lowercase().as_str() {
                "expires" => set.expires = date(value).or(set.expires),
                "max-age" => age = end_of(value, now).or(age),
                "domain" => {
                    let domain = value.strip_prefix('.').unwrap_or(value).to_ascii_lowercase();
                    set.domain = (!domain.is_empty()).then_some(domain);
                }
                "path" => set.path = Some(value.to_owned()),
                "secure" => set.is_secure = true,
                _ => {}
            }
        }
        set.expires = age.or(set.expires);
        Some(set)
    }
}

/// The end of a cookie of this age in seconds.
fn end_of(seconds: &str, now: SystemTime) -> Option<SystemTime> {
    /// RFC 6265bis, section 5.5: a cookie lasts 400 days at most.
    const AGE_MAX: u64 = 400 * 86_400;
    let digits = seconds.strip_prefix('-').unwrap_or(seconds);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    if digits != seconds {
        return Some(SystemTime::UNIX_EPOCH);
    }
    let age = digits.parse().unwrap_or(u64::MAX).min(AGE_MAX);
    now.checked_add(Duration::from_secs(age))
}
