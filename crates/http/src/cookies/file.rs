//! The file `cookies.txt` of Netscape, which curl and wget write and browsers export: a line for each cookie, with seven fields
//! between tabs.

use super::{Carriers, Cookie, Cookies, Scope};
use crate::secrets::{SecretsError, read_secrets};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The first bytes of a database of SQLite.
const SQLITE: &[u8] = b"SQLite format 3\0";
/// Fields of a line.
const FIELDS: usize = 7;

/// The commands that write the cookies of a browser into a file. They read the database while the browser has it open.
const EXPORT: &str = "yt-dlp --cookies-from-browser BROWSER --cookies FILE, or the command for Firefox in docs/get.md";

/// A file of cookies cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CookiesError {
    /// It cannot be read, or other users may read it.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// It is the database of a browser.
    #[error("{} is the database of a browser, not a cookies.txt", .0.display())]
    Database(PathBuf),
    /// A line is not one of this format.
    #[error("{}, line {line}: not a cookie in the format of cookies.txt", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
    },
}

impl CookiesError {
    /// A command or a sentence for the user.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Secrets(error) => error.remedy(),
            Self::Database(path) => Some(format!("{EXPORT}, with {}", path.display())),
            Self::Line { .. } => {
                Some("an export in the format of Netscape, as curl -c writes it".to_owned())
            }
        }
    }
}

impl Cookies {
    /// Reads a `cookies.txt`. Cookies that are over are left out.
    ///
    /// # Errors
    ///
    /// The file cannot be read or has another format, or other users may read it.
    pub fn read(path: &Path, now: SystemTime) -> Result<Self, CookiesError> {
        let bytes = read_secrets(path)?;
        if bytes.starts_with(SQLITE) {
            return Err(CookiesError::Database(path.to_owned()));
        }
        let text = String::from_utf8_lossy(&bytes);
        Self::parse(&text, now).map_err(|line| CookiesError::Line { path: path.to_owned(), line })
    }

    /// The cookies of a text, or the number of its first line that is none.
    // fuzz: none, the user's own file
    pub(super) fn parse(text: &str, now: SystemTime) -> Result<Self, usize> {
        let mut cookies = Self::default();
        for (number, line) in (1_usize..).zip(text.lines()) {
            // Cookies that scripts must not see are written as comments, for the sake of old readers.
            let line = line.strip_prefix("#HttpOnly_").unwrap_or(line);
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let cookie = cookie(line).ok_or(number)?;
            if cookie.scope == Scope::Domain {
                cookies.domains.insert(cookie.domain.clone());
            }
            if !cookie.is_over(now) {
                cookies.all.push(cookie);
            }
        }
        Ok(cookies)
    }
}

/// The cookie of a line: domain, whether hosts below it get it, path, whether it is secure, its end, name and value.
fn cookie(line: &str) -> Option<Cookie> {
    let fields: Vec<&str> = line.splitn(FIELDS, '\t').collect();
    let [domain, is_domain, path, is_secure, end, name, ..] = fields.as_slice() else {
        return None;
    };
    let value = fields.get(FIELDS - 1).copied().unwrap_or_default();
    let is_plain = |text: &str| !text.chars().any(|c| c.is_control() || c == ';');
    if name.is_empty() || !is_plain(name) || !is_plain(value) || !path.starts_with('/') {
        return None;
    }
    let yes = |field: &str| match field.to_ascii_uppercase().as_str() {
        "TRUE" => Some(true),
        "FALSE" => Some(false),
        _ => None,
    };
    // Fractions of a second are written by some extensions of browsers.
    let end = end.split('.').next().unwrap_or_default();
    let seconds: u64 = if end.starts_with('-') { 0 } else { end.parse().ok()? };
    let expires = Some(Duration::from_secs(seconds)).filter(|end| !end.is_zero());
    Some(Cookie {
        name: (*name).to_owned(),
        value: value.to_owned(),
        domain: domain.strip_prefix('.').unwrap_or(domain).to_ascii_lowercase(),
        scope: if yes(is_domain)? { Scope::Domain } else { Scope::Host },
        path: (*path).to_owned(),
        carriers: if yes(is_secure)? { Carriers::HttpsOnly } else { Carriers::Any },
        // One that never ends has an end beyond the clock's range.
        expires: expires.and_then(|end| SystemTime::UNIX_EPOCH.checked_add(end)),
        set_by: None,
    })
}
