//! Requests for a file or a part of it: headers, credentials, redirects.

use super::connection::{Connection, basic};
use super::fault::Fault;
use super::head::Head;
use super::proxy::Proxies;
use super::tls;
use super::url::{Login, Url};
use super::wire::Stop;
use crate::netrc::Netrc;
use hikyaku_forward::Scheme;
use hikyaku_tcp::Options;
use rustls::ClientConfig;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Redirects that are followed one after the other.
const REDIRECTS_MAX: usize = 10;

/// What all requests of a command have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// The user's headers, names and values.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) user_agent: String,
    /// For the hosts of the user's URLs.
    pub(crate) login: Option<Login>,
    pub(crate) netrc: Netrc,
    /// Certificates of authorities in place of the system's.
    pub(crate) authorities: Option<PathBuf>,
    pub(crate) proxies: Proxies,
    pub(crate) tcp: Options,
    pub(crate) connect_within: Duration,
    /// A server that sends nothing for so long is given up.
    pub(crate) patience: Duration,
}

/// Who named a URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NamedBy {
    /// The user, on the command line: the login and the headers of the command line are for it.
    User,
    /// A Metalink file or a header, whose author must not get them.
    Other,
}

/// Where a file is: the URL that was named, and where it led to.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) first: Url,
    named_by: NamedBy,
    current: Mutex<Url>,
}

/// A response whose body has not been read.
pub(crate) struct Answer {
    pub(crate) connection: Connection,
    pub(crate) head: Head,
}

/// A part of a file that is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) range: Range<u64>,
    /// The value of `If-Range`.
    pub(crate) if_range: Option<&'a str>,
}

/// Sends requests.
pub(crate) struct Client {
    settings: Settings,
    tls: Mutex<Option<Arc<ClientConfig>>>,
}

impl Place {
    pub(crate) fn new(url: Url, named_by: NamedBy) -> Self {
        Self { current: Mutex::new(url.clone()), first: url, named_by }
    }

    pub(crate) fn current(&self) -> Url {
        lock(&self.current).clone()
    }

    /// Returns whether the next request goes to another URL.
    fn go_back(&self) -> bool {
        let mut current = lock(&self.current);
        let is_elsewhere = *current != self.first;
        *current = self.first.clone();
        is_elsewhere
    }
}

impl Client {
    /// A client with these settings. The user's certificates are read before any server is contacted; those of the system
    /// are read for the first connection that needs them.
    ///
    /// # Errors
    ///
    /// The user's certificates cannot be used.
    pub(crate) fn new(settings: Settings) -> Result<Self, Fault> {
        let of_user = settings.authorities.as_deref();
        let made = of_user.map(|path| tls::config(Some(path))).transpose()?;
        Ok(Self { settings, tls: Mutex::new(made) })
    }

    /// Asks for a file or a part of it, over `kept` if that serves. Redirects are followed; a later request begins where
    /// they led to. If that refuses, as a signed URL does when its time is over, the user's URL is asked again.
    pub(crate) fn get(
        &self,
        kept: Option<Connection>,
        place: &Place,
        wanted: Option<&Wanted<'_>>,
        stop: &Stop,
    ) -> Result<Answer, Fault> {
        let (mut kept, mut redirects) = (kept, 0);
        loop {
            let url = place.current();
            let answer = self.ask(kept.take(), place, &url, wanted, stop)?;
            match answer.head.status {
                200 | 206 => return Ok(answer),
                301 | 302 | 303 | 307 | 308 => {
                    redirects += 1;
                    if redirects > REDIRECTS_MAX {
                        return Err(Fault::Redirect("leads to another one, more than 10 times"));
                    }
                    *lock(&place.current) = next(&url, &answer.head)?;
                }
                401 | 403 | 404 | 410 if redirects == 0 && place.go_back() => redirects += 1,
                _ => return Err(answer.head.refusal()),
            }
        }
    }

    fn ask(
        &self,
        kept: Option<Connection>,
        place: &Place,
        url: &Url,
        wanted: Option<&Wanted<'_>>,
        stop: &Stop,
    ) -> Result<Answer, Fault> {
        let lines = self.lines(place, url, wanted);
        if let Some(mut connection) = kept.filter(|kept| kept.serves(&url.origin)) {
            match connection.ask(url, &lines) {
                Ok(head) => return Ok(Answer { connection, head }),
                // The server may have closed it while nothing was asked: another one tells more.
                Err(Fault::Closed | Fault::Connection(_)) => {}
                Err(fault) => return Err(fault),
            }
        }
        let tls = || self.tls();
        let mut connection = Connection::open(url, &self.settings, tls, stop)?;
        let head = connection.ask(url, &lines)?;
        Ok(Answer { connection, head })
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, Fault> {
        let mut made = lock(&self.tls);
        if let Some(config) = &*made {
            return Ok(Arc::clone(config));
        }
        let config = tls::config(None)?;
        Ok(Arc::clone(made.insert(config)))
    }

    /// The header lines of a request. The user's headers come in place of ours of the same name. What may be a secret
    /// is sent to the origin of the user's URL only, not where that leads to.
    fn lines(&self, place: &Place, url: &Url, wanted: Option<&Wanted<'_>>) -> String {
        let is_at_home = url.origin == place.first.origin;
        let mut lines: Vec<(&str, String)> = vec![
            ("User-Agent", self.settings.user_agent.clone()),
            ("Accept", "*/*".to_owned()),
            // A range of a coded file would be a range of other bytes.
            ("Accept-Encoding", "identity".to_owned()),
            ("Want-Repr-Digest", "sha-512=3, sha-256=10".to_owned()),
        ];
        if is_at_home && let Some(login) = self.login(place) {
            lines.push(("Authorization", basic(&login)));
        }
        let is_theirs = |name: &str| {
            self.settings.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
        };
        lines.retain(|(name, _)| !is_theirs(name));
        for (name, value) in &self.settings.headers {
            if is_at_home && place.named_by == NamedBy::User || !is_secret(name) {
                lines.push((name, value.clone()));
            }
        }
        if let Some(wanted) = wanted {
            let Range { start, end } = wanted.range;
            lines.push(("Range", format!("bytes={start}-{}", end.saturating_sub(1))));
            if let Some(version) = wanted.if_range {
                lines.push(("If-Range", version.to_owned()));
            }
        }
        lines.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
    }

    fn login(&self, place: &Place) -> Option<Login> {
        let (netrc, origin) = (&self.settings.netrc, &place.first.origin);
        match (place.named_by, origin.scheme) {
            (NamedBy::User, _) => {
                let typed = place.first.login.clone().or_else(|| self.settings.login.clone());
                typed.or_else(|| netrc.login(&origin.host))
            }
            // Whoever names a mirror must neither get a login nor have it sent in the clear.
            (NamedBy::Other, Scheme::Https) => netrc.login_of_machine(&origin.host),
            (NamedBy::Other, Scheme::Http) => None,
        }
    }
}

/// Whether a header of the user may be a secret. A name that is not known to be harmless counts as one.
fn is_secret(name: &str) -> bool {
    const HARMLESS: [&str; 5] =
        ["accept", "accept-language", "user-agent", "referer", "cache-control"];
    !HARMLESS.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// Where a redirect leads to.
fn next(url: &Url, head: &Head) -> Result<Url, Fault> {
    let location = head.one("location").ok_or(Fault::Redirect("does not say where to"))?;
    let next =
        url.join(location).map_err(|_| Fault::Redirect("leads to what is no web address"))?;
    url.origin.scheme.check_redirect(next.origin.scheme)?;
    Ok(next)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
