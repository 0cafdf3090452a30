//! A connection to a server, directly or through a proxy, and one exchange after the other on it.

use crate::body::Body;
use crate::client::Settings;
use crate::fault::Fault;
use crate::head::Head;
use crate::url::{Login, Origin, Url};
use crate::wire::{LOOK_EVERY, Stop, Stream, Wire};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hikyaku_forward::Scheme;
use hikyaku_tcp::addresses;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interim responses (1xx) before the final one.
const INTERIM_MAX: usize = 16;
/// The time until the head of an answer is complete, as a multiple of the time without a byte after which a request fails.
const HEAD_PATIENCES: u32 = 2;
/// Addresses of a host that are tried.
const ADDRESSES_MAX: usize = 8;

/// Whether requests name the whole URL, as RFC 9112, section 3.2.2, demands of requests to a proxy.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Form {
    Origin,
    /// The whole URL, with the value of `Proxy-Authorization` if the proxy has a login.
    Absolute(Option<String>),
}

/// An open connection.
pub struct Connection {
    wire: Wire,
    origin: Origin,
    form: Form,
    body: Body,
    /// The server keeps it open after the response.
    is_kept: bool,
    /// The time that TCP took to connect: a round trip.
    rtt: Duration,
}

impl Connection {
    /// Connects to the server of `url`. `tls` is called only for `https`.
    pub(crate) fn open(
        url: &Url,
        settings: &Settings,
        tls: impl FnOnce() -> Result<Arc<ClientConfig>, Fault>,
        stop: &Stop,
    ) -> Result<Self, Fault> {
        let proxy = settings.proxies.of_url(url)?;
        let (mut stream, rtt) = connect(&proxy.unwrap_or(url).origin, settings, stop)?;
        let of_proxy = proxy.and_then(|proxy| proxy.login.as_ref()).map(basic);
        let mut form = Form::Origin;
        match (proxy, url.origin.scheme) {
            (Some(_), Scheme::Http) => form = Form::Absolute(of_proxy),
            (Some(_), Scheme::Https) => stream = tunnel(stream, url, of_proxy, settings, stop)?,
            (None, _) => {}
        }
        let stream = match url.origin.scheme {
            Scheme::Http => Stream::Plain(stream),
            Scheme::Https => secured(stream, &url.origin.host, tls()?, settings, stop)?,
        };
        let wire = Wire::new(stream, settings.patience, stop.clone());
        Ok(Self { wire, origin: url.origin.clone(), form, body: Body::Over, is_kept: true, rtt })
    }

    /// Whether the connection can carry another request to this origin.
    pub fn serves(&self, origin: &Origin) -> bool {
        self.is_kept && self.body == Body::Over && self.origin == *origin
    }

    /// Replaces the stop that ends its waits.
    pub fn end_with(&mut self, stop: &Stop) {
        self.wire.end_with(stop);
    }

    /// The time that TCP took to connect.
    pub const fn rtt(&self) -> Duration {
        self.rtt
    }

    /// The round-trip time of now, queues included, to the server or its proxy. `None` if the kernel has not measured it.
    pub fn receive_rtt(&self) -> Option<Duration> {
        self.wire.receive_rtt()
    }

    /// Sends `GET` and reads the head of the response. `lines` are header lines with their ends.
    pub(crate) fn ask(&mut self, url: &Url, lines: &str) -> Result<Head, Fault> {
        let (target, proxy) = match &self.form {
            Form::Origin => (url.target.clone(), String::new()),
            Form::Absolute(login) => {
                let line = login.as_ref().map(|login| format!("Proxy-Authorization: {login}\r\n"));
                let target = format!("http://{}{}", url.origin.authority(), url.target);
                (target, line.unwrap_or_default())
            }
        };
        let host = url.origin.authority();
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{proxy}{lines}\r\n");
        self.is_kept = false;
        self.wire.send(request.as_bytes())?;
        let head = final_head(&mut self.wire)?;
        self.body = Body::of(&head)?;
        let closes = head.has_word("connection", "close")
            || head.is_old && !head.has_word("connection", "keep-alive")
            || self.body == Body::ToEnd;
        self.is_kept = !closes;
        Ok(head)
    }

    /// Reads bytes of the body. Returns 0 at its end.
    ///
    /// # Errors
    ///
    /// The connection is lost, ends before the body, or is silent for too long.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Fault> {
        let result = self.body.read(&mut self.wire, into);
        if result.is_err() {
            self.is_kept = false;
        }
        result
    }

    /// Reads the end of a body whose bytes have been read. Returns whether the connection can carry another request.
    pub fn finish(&mut self) -> bool {
        if self.is_kept && matches!(self.body, Body::Chunked(Some(0))) {
            // The last chunk is empty. If it is not, the connection is of no use.
            let _ = self.read(&mut [0]);
        }
        self.is_kept && self.body == Body::Over && self.wire.is_empty()
    }
}

/// The head of the final answer. It may arrive in pieces, within a limited time.
fn final_head(wire: &mut Wire) -> Result<Head, Fault> {
    let (begin, within) = (Instant::now(), wire.patience() * HEAD_PATIENCES);
    for _ in 0..INTERIM_MAX {
        let head = wire.head(begin, within)?;
        match head.status {
            100..200 => {}
            200..600 => return Ok(head),
            _ => return Err(Fault::Lie("answers with a status that does not exist")),
        }
    }
    Err(Fault::Lie("sends interim answers without end"))
}

/// Connects by TCP. The time is that of the handshake.
fn connect(
    origin: &Origin,
    settings: &Settings,
    stop: &Stop,
) -> Result<(TcpStream, Duration), Fault> {
    let (host, port) = (origin.host.as_str(), origin.port);
    let no_address = |source: io::Error| Fault::NoAddress { host: host.to_owned(), source };
    let found = addresses(host, port, settings.tcp.family).map_err(no_address)?;
    let mut last = None;
    for address in found.into_iter().take(ADDRESSES_MAX) {
        stop.check()?;
        let begin = Instant::now();
        match hikyaku_tcp::connect(address, &settings.tcp, settings.connect_within) {
            Ok(stream) => {
                let rtt = begin.elapsed();
                let ready = stream.set_read_timeout(Some(LOOK_EVERY)).and_then(|()| {
                    stream.set_write_timeout(Some(settings.patience))?;
                    stream.set_nodelay(true)
                });
                return ready.map(|()| (stream, rtt)).map_err(Fault::Connection);
            }
            Err(error) => last = Some(error),
        }
    }
    Err(match last {
        Some(source) => Fault::NotReached { host: host.to_owned(), port, source },
        None => no_address(ErrorKind::NotFound.into()),
    })
}

/// Requests a connection to the server from a proxy.
fn tunnel(
    stream: TcpStream,
    url: &Url,
    login: Option<String>,
    settings: &Settings,
    stop: &Stop,
) -> Result<TcpStream, Fault> {
    let mut wire = Wire::new(Stream::Plain(stream), settings.patience, stop.clone());
    let address = url.origin.host_and_port();
    let login = login.map(|login| format!("Proxy-Authorization: {login}\r\n")).unwrap_or_default();
    let request = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n{login}\r\n");
    wire.send(request.as_bytes())?;
    let head = final_head(&mut wire)?;
    if !(200..300).contains(&head.status) {
        return Err(Fault::Proxy(head.status));
    }
    // In every version of TLS the client sends first, so the proxy must not have sent bytes of the server.
    wire.into_tcp().ok_or(Fault::Lie("is reached by a proxy that says something of its own"))
}

/// Establishes TLS: the certificate is checked before a request is sent.
fn secured(
    stream: TcpStream,
    host: &str,
    config: Arc<ClientConfig>,
    settings: &Settings,
    stop: &Stop,
) -> Result<Stream, Fault> {
    let fault = |source| Fault::Tls { host: host.to_owned(), source };
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|_| fault(rustls::Error::General("no valid host name".to_owned())))?;
    let tls = ClientConnection::new(config, name).map_err(fault)?;
    let mut stream = StreamOwned::new(tls, stream);
    let until = Instant::now() + settings.patience;
    while stream.conn.is_handshaking() {
        stop.check()?;
        match stream.conn.complete_io(&mut stream.sock) {
            Ok(_) => {}
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut if Instant::now() < until => {}
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    return Err(Fault::Silent(settings.patience));
                }
                ErrorKind::Interrupted => {}
                ErrorKind::InvalidData => {
                    let inner = error.downcast::<rustls::Error>();
                    return Err(inner.map_or_else(Fault::Connection, fault));
                }
                _ => return Err(Fault::Connection(error)),
            },
        }
    }
    Ok(Stream::Tls(Box::new(stream)))
}

/// The value of an `Authorization` of the Basic scheme (RFC 7617).
pub(crate) fn basic(login: &Login) -> String {
    format!("Basic {}", STANDARD.encode(format!("{}:{}", login.user, login.password)))
}
