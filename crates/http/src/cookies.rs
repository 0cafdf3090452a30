//! Cookies (RFC 6265): those of a file that a browser, curl or wget has written, and those that answers set. The latter last
//! as long as the client.
//!
//! A cookie is sent to the hosts and paths that it is for. A secure one is sent by `https` only, and an answer by `http` neither
//! sets nor replaces one. There is no list of public suffixes, so an answer sets a cookie for a whole domain only if the file
//! has a cookie for that domain or one above it: the browser has accepted it. Any other cookie of an answer is for its host.

mod date;
mod file;
mod set;

pub use file::CookiesError;

use crate::url::{Origin, Url};
use hikyaku_forward::Scheme;
use set::SetCookie;
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::time::SystemTime;

/// Cookies of one host that answers may set (RFC 6265, section 6.1, asks for 50).
const OF_HOST_MAX: usize = 50;
/// Cookies of all hosts that answers may set.
const OF_ANSWERS_MAX: usize = 500;

/// Cookies. The default has none. `Debug` does not print them.
#[derive(Clone, Default)]
pub struct Cookies {
    /// In the order of their creation.
    all: Vec<Cookie>,
    /// Domains for all of whose hosts the file has a cookie.
    domains: BTreeSet<String>,
}

#[derive(Clone, PartialEq, Eq)]
struct Cookie {
    name: String,
    value: String,
    /// In lower case, without a dot in front.
    domain: String,
    scope: Scope,
    path: String,
    carriers: Carriers,
    /// `None`: as long as the client.
    expires: Option<SystemTime>,
    /// The host of the answer that has set it; `None` for one of the file.
    set_by: Option<String>,
}

/// The hosts that get a cookie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Host,
    /// Also all hosts below it.
    Domain,
}

/// The schemes by which a cookie is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carriers {
    Any,
    HttpsOnly,
}

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cookies", self.all.len())
    }
}

impl Cookies {
    /// The value of `Cookie` in a request for a URL (RFC 6265, section 5.4).
    pub(crate) fn of(&self, url: &Url, now: SystemTime) -> Option<String> {
        let path = path_of(url);
        let mut sent: Vec<&Cookie> =
            self.all.iter().filter(|cookie| cookie.is_for(&url.origin, path, now)).collect();
        // Those with longer paths first; the sort keeps the order of creation among equals.
        sent.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs = sent.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value));
        let pairs: Vec<String> = pairs.collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }

    /// Takes the cookie of a `Set-Cookie` in an answer from a URL (RFC 6265, section 5.3). One that is wrong is ignored.
    // fuzz: web
    pub(crate) fn set(&mut self, url: &Url, value: &str, now: SystemTime) {
        let Some(set) = SetCookie::parse(value, now) else { return };
        let Some((domain, scope)) = self.domain_of(&set, &url.origin.host) else { return };
        let is_safe = url.origin.scheme == Scheme::Https;
        let path = match set.path.filter(|path| path.starts_with('/')) {
            Some(path) => path,
            None => default_path(url),
        };
        let is_of_prefix = |prefix: &str| set.name.to_ascii_lowercase().starts_with(prefix);
        let is_whole_host = scope == Scope::Host && set.domain.is_none() && path == "/";
        let is_refused = set.is_secure && !is_safe
            || is_of_prefix("__secure-") && !set.is_secure
            || is_of_prefix("__host-") && !(set.is_secure && is_whole_host);
        if is_refused {
            return;
        }
        let carriers = if set.is_secure { Carriers::HttpsOnly } else { Carriers::Any };
        let set_by = Some(url.origin.host.clone());
        let new = Cookie {
            name: set.name,
            value: set.value,
            domain,
            scope,
            path,
            carriers,
            expires: set.expires,
            set_by,
        };
        if !is_safe && self.all.iter().any(|other| other.is_shadowed_by(&new)) {
            return;
        }
        let earlier = self.all.iter().position(|other| other.is_replaced_by(&new));
        match (earlier, new.is_over(now)) {
            (Some(at), true) => drop(self.all.remove(at)),
            (Some(at), false) => self.all[at] = new,
            (None, true) => {}
            (None, false) => {
                self.make_room(&url.origin.host);
                self.all.push(new);
            }
        }
    }

    /// The domain and the scope of a cookie that `host` sets. `None`: the host must not set it.
    fn domain_of(&self, set: &SetCookie, host: &str) -> Option<(String, Scope)> {
        let alone = (host.to_owned(), Scope::Host);
        let Some(domain) = &set.domain else { return Some(alone) };
        if !is_within(host, domain) {
            return None;
        }
        let is_known = self.domains.iter().any(|known| is_within(domain, known));
        Some(if is_known { (domain.clone(), Scope::Domain) } else { alone })
    }

    /// Removes the oldest cookies of answers where they are too many.
    fn make_room(&mut self, host: &str) {
        let of_host = |cookie: &Cookie| cookie.set_by.as_deref() == Some(host);
        let of_any = |cookie: &Cookie| cookie.set_by.is_some();
        let counted = |which: &dyn Fn(&Cookie) -> bool| {
            let found: Vec<usize> =
                (0..self.all.len()).filter(|at| which(&self.all[*at])).collect();
            (found.len(), found.first().copied())
        };
        let oldest = match (counted(&of_host), counted(&of_any)) {
            ((OF_HOST_MAX.., Some(oldest)), _) => oldest,
            (_, (OF_ANSWERS_MAX.., Some(oldest))) => oldest,
            _ => return,
        };
        self.all.remove(oldest);
    }
}

impl Cookie {
    fn is_over(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    fn is_for(&self, origin: &Origin, path: &str, now: SystemTime) -> bool {
        let is_host = match self.scope {
            Scope::Host => origin.host == self.domain,
            Scope::Domain => is_within(&origin.host, &self.domain),
        };
        let is_carried = self.carriers == Carriers::Any || origin.scheme == Scheme::Https;
        is_host && is_carried && is_path_within(path, &self.path) && !self.is_over(now)
    }

    fn is_replaced_by(&self, new: &Self) -> bool {
        (&self.name, &self.domain, &self.path) == (&new.name, &new.domain, &new.path)
    }

    /// Whether this is a secure cookie that a server would see together with one of the same name set by `http`.
    fn is_shadowed_by(&self, new: &Self) -> bool {
        let is_near = is_within(&self.domain, &new.domain) || is_within(&new.domain, &self.domain);
        self.carriers == Carriers::HttpsOnly
            && self.name == new.name
            && is_near
            && is_path_within(&new.path, &self.path)
    }
}

/// Whether a host is a domain or below it (RFC 6265, section 5.1.3). Nothing is below an address.
fn is_within(host: &str, domain: &str) -> bool {
    let below = host.strip_suffix(domain).and_then(|rest| rest.strip_suffix('.'));
    host == domain || below.is_some_and(|rest| !rest.is_empty()) && host.parse::<IpAddr>().is_err()
}

/// RFC 6265, section 5.1.4.
fn is_path_within(path: &str, dir: &str) -> bool {
    let rest = path.strip_prefix(dir);
    rest.is_some_and(|rest| rest.is_empty() || dir.ends_with('/') || rest.starts_with('/'))
}

fn path_of(url: &Url) -> &str {
    url.target.split('?').next().unwrap_or("/")
}

/// The path of a cookie without one: the directory of the URL, without its last slash.
fn default_path(url: &Url) -> String {
    match path_of(url).rfind('/') {
        None | Some(0) => "/".to_owned(),
        Some(at) => path_of(url)[..at].to_owned(),
    }
}

#[cfg(test)]
mod tests;
