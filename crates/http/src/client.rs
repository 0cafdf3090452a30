//! Requests for a file or a part of it: headers, credentials, cookies, redirects.

use crate::connection::{Connection, basic};
use crate::cookies::Cookies;
use crate::dial::Dial;
use crate::fault::Fault;
use crate::head::Head;
use crate::idle::{Idle, Parked, Parking, lock};
use crate::netrc::Netrc;
use crate::proxy::Proxies;
use crate::tls;
use crate::url::{Login, Origin, Url};
use crate::wire::Stop;
use hikyaku_forward::Scheme;
use hikyaku_tcp::{Grants, NoPlace, Options, Others};
use rustls::ClientConfig;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

/// Redirects that are followed one after the other.
const REDIRECTS_MAX: usize = 10;

/// The settings of all requests of a client.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The user's headers, names and values.
    pub headers: Vec<(String, String)>,
    /// The value of `User-Agent`.
    pub user_agent: String,
    /// A login for the hosts of the user's URLs.
    pub login: Option<Login>,
    /// Logins by host.
    pub netrc: Netrc,
    /// The cookies of the user's file. Those of answers are added while the client exists.
    pub cookies: Cookies,
    /// A file with certificates of authorities. Default: the authorities of the system.
    pub authorities: Option<PathBuf>,
    /// The proxies.
    pub proxies: Proxies,
    /// The options of each TCP connection.
    pub tcp: Options,
    /// The connections to each server, in common for all clients with these settings.
    pub grants: Grants,
    /// The time within which a TCP connection is established.
    pub connect_within: Duration,
    /// The time without a byte after which a request fails.
    pub patience: Duration,
}

/// The author of a URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NamedBy {
    /// The user: the user's login and headers are sent to its host.
    User,
    /// A Metalink file or a header. Its author must not get the user's login and headers.
    Other,
}

/// The URL of a file, and the URL that its redirects led to. Clones share the latter.
#[derive(Clone, Debug)]
pub struct Place {
    /// The URL that was named.
    pub first: Url,
    named_by: NamedBy,
    current: Arc<Mutex<Url>>,
}

/// A request that gets no place among the connections to its server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// It fails: the caller has connections that are open, or other things to do.
    AtOnce,
    /// It waits for a place, or for an open connection.
    Waits,
}

/// A response whose body has not been read.
pub struct Answer {
    /// The connection, from which the body is read.
    pub connection: Connection,
    /// Status and headers.
    pub head: Head,
}

/// A requested part of a file.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// Its bytes.
    pub range: Range<u64>,
    /// The value of `If-Range`.
    pub if_range: Option<&'a str>,
}

/// Sends requests.
pub struct Client {
    settings: Settings,
    cookies: Mutex<Cookies>,
    idle: Idle,
    parking: Parking,
    dial: Dial,
    tls: Mutex<Option<Arc<ClientConfig>>>,
}

impl Place {
    /// A URL of which no redirect is known.
    pub fn new(url: Url, named_by: NamedBy) -> Self {
        Self { current: Arc::new(Mutex::new(url.clone())), first: url, named_by }
    }

    /// Another URL by the same author.
    pub fn beside(&self, url: Url) -> Self {
        Self::new(url, self.named_by)
    }

    /// The URL of the next request.
    pub fn current(&self) -> Url {
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
    /// A client with these settings. The user's certificates are read at once, those of the system for the first
    /// connection that needs them.
    ///
    /// # Errors
    ///
    /// The user's certificates cannot be used.
    pub fn new(settings: Settings) -> Result<Self, Fault> {
        let of_user = settings.authorities.as_deref();
        let made = of_user.map(|path| tls::config(Some(path))).transpose()?;
        let cookies = Mutex::new(settings.cookies.clone());
        let (idle, parking) = (Idle::default(), Parking::default());
        let (dial, tls) = (Dial::default(), Mutex::new(made));
        Ok(Self { settings, cookies, idle, parking, dial, tls })
    }

    /// Requests a file or a part of it, over an idle connection to its server if there is one. Redirects are followed. A later
    /// request begins at the URL that they led to. If that URL refuses, such as a signed one that has expired, the request
    /// begins again at the URL that was named. `turn` is what becomes of a request that needs a further connection which the server
    /// refuses.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or answers with a status other than 200 and 206.
    pub fn get(
        &self,
        place: &Place,
        part: Option<&Part<'_>>,
        (stop, turn): (&Stop, Turn),
    ) -> Result<Answer, Fault> {
        let mut redirects = 0;
        loop {
            let url = place.current();
            let mut answer = self.ask(place, &url, part, (stop, turn))?;
            self.take_cookies(&url, &answer.head);
            if !matches!(answer.head.status, 403 | 429 | 503) {
                answer.connection.granted();
            }
            match answer.head.status {
                200 | 206 => return Ok(answer),
                301 | 302 | 303 | 307 | 308 => {
                    redirects += 1;
                    if redirects > REDIRECTS_MAX {
                        return Err(Fault::Redirect("leads to another one, more than 10 times"));
                    }
                    let next = next(&url, &answer.head)?;
                    self.idle.keep_after(answer.connection, Instant::now());
                    *lock(&place.current) = next;
                }
                401 | 403 | 404 | 410 if redirects == 0 && place.go_back() => redirects += 1,
                // A file of which nothing is known may be forbidden by itself.
                403 if turn == Turn::Waits && !self.is_limited(&url) => {
                    return Err(self.refused(answer));
                }
                403 | 429 | 503 if answer.connection.is_refused(stop) == Others::Open => {
                    if turn == Turn::AtOnce {
                        return Err(Fault::Full);
                    }
                }
                _ => return Err(self.refused(answer)),
            }
        }
    }

    /// The fault of a refusal. Its connection is kept, unless the server may have refused that, because it has too many.
    fn refused(&self, mut answer: Answer) -> Fault {
        let fault = answer.head.refusal();
        if !fault.is_refusal() {
            answer.connection.granted();
            self.idle.keep_after(answer.connection, Instant::now());
        }
        fault
    }

    /// Whether the server of a URL is known to refuse further connections.
    fn is_limited(&self, url: &Url) -> bool {
        self.settings.grants.known(&url.origin.host_and_port()).is_some()
    }

    /// Keeps a connection whose answer has been read to its end, for the next request.
    pub fn keep(&self, connection: Connection) {
        self.idle.keep(connection, Instant::now());
    }

    /// Keeps a connection whose answer is read later. If its server grants no further connection, a request closes it.
    pub fn park(&self, connection: Connection) -> Parked {
        self.parking.park(connection)
    }

    /// Closes an idle connection to this server.
    pub fn close_idle(&self, origin: &Origin) {
        self.idle.close(origin, Instant::now());
    }

    fn ask(
        &self,
        place: &Place,
        url: &Url,
        part: Option<&Part<'_>>,
        (stop, turn): (&Stop, Turn),
    ) -> Result<Answer, Fault> {
        let lines = self.lines(place, url, part);
        loop {
            if let Some(mut connection) = self.idle.take(&url.origin, stop, Instant::now()) {
                match connection.ask(url, &lines) {
                    Ok(head) => return Ok(Answer { connection, head }),
                    // The server may have closed the idle connection. The error of a new one is more exact.
                    Err(Fault::Closed | Fault::Connection(_)) => {}
                    // Bytes behind the end of the preceding answer are no answer.
                    Err(Fault::Lie(_) | Fault::Invalid(_)) => {}
                    Err(fault) => return Err(fault),
                }
            }
            let mut seat = match self.settings.grants.place(&url.origin.host_and_port()) {
                Ok(seat) => seat,
                Err(NoPlace::Full) if self.parking.close_one(&url.origin) => continue,
                Err(NoPlace::Full) if turn == Turn::AtOnce => return Err(Fault::Full),
                Err(NoPlace::Full | NoPlace::UnderWay) => {
                    stop.check()?;
                    self.settings.grants.wait();
                    continue;
                }
            };
            let (how, tls) = ((&self.settings, &self.dial), || self.tls());
            let opened = Connection::open(url, how, tls, stop);
            let asked = opened.and_then(|mut connection| {
                let head = connection.ask(url, &lines)?;
                Ok((connection, head))
            });
            match asked {
                Ok((mut connection, head)) => {
                    connection.hold(seat);
                    return Ok(Answer { connection, head });
                }
                Err(fault) if fault.is_refusal() => match seat.refused(&|| !stop.is_set()) {
                    Others::Open if turn == Turn::AtOnce => return Err(Fault::Full),
                    Others::Open => {}
                    Others::None => return Err(fault),
                },
                Err(fault) => return Err(fault),
            }
        }
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, Fault> {
        let mut made = lock(&self.tls);
        if let Some(config) = &*made {
            return Ok(Arc::clone(config));
        }
        let config = tls::config(None)?;
        Ok(Arc::clone(made.insert(config)))
    }

    /// The header lines of a request. A header of the user replaces the client's own of that name. Headers that may be
    /// secrets are sent to the origin of the user's URL only, not to the origins that its redirects lead to.
    fn lines<'a>(
        &'a self,
        place: &Place,
        url: &Url,
        part: Option<&Part<'_>>,
    ) -> Vec<(&'a str, String)> {
        let is_at_home = url.origin == place.first.origin;
        let mut lines: Vec<(&'a str, String)> = vec![
            ("User-Agent", self.settings.user_agent.clone()),
            ("Accept", "*/*".to_owned()),
            // A range of a coded file would be a range of other bytes.
            ("Accept-Encoding", "identity".to_owned()),
            ("Want-Repr-Digest", "sha-512=3, sha-256=10".to_owned()),
        ];
        let login = if is_at_home { self.login(place) } else { self.login_elsewhere(&url.origin) };
        lines.extend(login.map(|login| ("Authorization", basic(&login))));
        let is_theirs = |name: &str| {
            self.settings.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
        };
        lines.retain(|(name, _)| !is_theirs(name));
        let mut cookies = self.cookies(place, url);
        for (name, value) in &self.settings.headers {
            if is_at_home && place.named_by == NamedBy::User || !is_secret(name) {
                // RFC 6265, section 5.4: a request has one `Cookie`.
                let added = cookies.take_if(|_| name.eq_ignore_ascii_case("cookie"));
                let value = added.map_or_else(|| value.clone(), |more| format!("{value}; {more}"));
                lines.push((name, value));
            }
        }
        lines.extend(cookies.map(|cookies| ("Cookie", cookies)));
        if let Some(part) = part {
            let Range { start, end } = part.range;
            lines.push(("Range", format!("bytes={start}-{}", end.saturating_sub(1))));
            if let Some(version) = part.if_range {
                lines.push(("If-Range", version.to_owned()));
            }
        }
        lines
    }

    /// The cookies for a URL. The author of a mirror's URL must not cause them to be sent unencrypted.
    fn cookies(&self, place: &Place, url: &Url) -> Option<String> {
        let is_allowed = place.named_by == NamedBy::User || url.origin.scheme == Scheme::Https;
        is_allowed.then(|| lock(&self.cookies).of(url, SystemTime::now()))?
    }

    fn take_cookies(&self, url: &Url, head: &Head) {
        let mut values = head.all("set-cookie").peekable();
        if values.peek().is_some() {
            let (mut cookies, now) = (lock(&self.cookies), SystemTime::now());
            values.for_each(|value| cookies.set(url, value, now));
        }
    }

    fn login(&self, place: &Place) -> Option<Login> {
        let (netrc, origin) = (&self.settings.netrc, &place.first.origin);
        match place.named_by {
            NamedBy::User => {
                let typed = place.first.login.clone().or_else(|| self.settings.login.clone());
                typed.or_else(|| netrc.login(&origin.host))
            }
            NamedBy::Other => self.login_elsewhere(origin),
        }
    }

    /// The login for an origin that the user has not named. The author of a mirror's URL or of a redirect must neither get a
    /// login nor cause one to be sent unencrypted.
    fn login_elsewhere(&self, origin: &Origin) -> Option<Login> {
        let is_safe = origin.scheme == Scheme::Https;
        is_safe.then(|| self.settings.netrc.login_of_machine(&origin.host))?
    }
}

/// Whether a header of the user may be a secret: any but those of this list.
fn is_secret(name: &str) -> bool {
    const HARMLESS: [&str; 5] =
        ["accept", "accept-language", "user-agent", "referer", "cache-control"];
    !HARMLESS.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// The URL that a redirect leads to.
fn next(url: &Url, head: &Head) -> Result<Url, Fault> {
    let location = head.one("location").ok_or(Fault::Redirect("does not say where to"))?;
    let next =
        url.join(location).map_err(|_| Fault::Redirect("leads to what is no web address"))?;
    url.origin.scheme.check_redirect(next.origin.scheme)?;
    Ok(next)
}
