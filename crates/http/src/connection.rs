//! A connection to a server, directly or through a proxy, and one exchange after the other on it.

use crate::client::Settings;
use crate::dial::Dial;
use crate::exchange::Exchange;
use crate::fault::Fault;
use crate::head::Head;
use crate::url::{Login, Origin, Url};
use crate::wire::{Stop, Stream, Wire};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hikyaku_forward::Scheme;
use hikyaku_tcp::{Others, Place};
use hyper::body::Bytes;
use hyper::header::{HOST, PROXY_AUTHORIZATION};
use hyper::http::request::Builder;
use hyper::{Method, Request};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::BufReader;
use tokio_rustls::TlsConnector;

/// Bytes that are read from the socket at once below TLS, at most.
const SECURED_READ_BYTES: usize = 64 << 10;

/// Whether requests name the whole URL, as RFC 9112, section 3.2.2, demands of requests to a proxy.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Form {
    Origin,
    /// The whole URL, with the value of `Proxy-Authorization` if the proxy has a login.
    Absolute(Option<String>),
}

/// An open connection.
pub struct Connection {
    exchange: Exchange,
    /// The socket, for the kernel's record of the connection.
    socket: TcpStream,
    origin: Origin,
    form: Form,
    /// The time that TCP took to connect: a round trip.
    rtt: Duration,
    /// Its place among the connections to the server.
    place: Option<Place>,
}

impl Connection {
    /// Connects to the server of `url`. `tls` is called only for `https`.
    pub(crate) fn open(
        url: &Url,
        (settings, dial): (&Settings, &Dial),
        tls: impl FnOnce() -> Result<Arc<ClientConfig>, Fault>,
        stop: &Stop,
    ) -> Result<Self, Fault> {
        let proxy = settings.proxies.of_url(url)?;
        let (socket, rtt) = dial.connect(&proxy.unwrap_or(url).origin, settings, stop)?;
        let mut wire = Wire::new(settings.patience, stop.clone())?;
        let mut stream = registered(&wire, &socket).map_err(Fault::Connection)?;
        let of_proxy = proxy.and_then(|proxy| proxy.login.as_ref()).map(basic);
        let mut form = Form::Origin;
        match (proxy, url.origin.scheme) {
            (Some(_), Scheme::Http) => form = Form::Absolute(of_proxy),
            (Some(_), Scheme::Https) => (wire, stream) = tunnel(wire, stream, url, of_proxy)?,
            (None, _) => {}
        }
        if url.origin.scheme == Scheme::Https {
            stream = secured(&wire, stream, &url.origin.host, tls()?)?;
        }
        let exchange = Exchange::new(wire, stream)?;
        Ok(Self { exchange, socket, origin: url.origin.clone(), form, rtt, place: None })
    }

    /// Whether the connection can carry another request to this origin.
    pub(crate) fn serves(&self, origin: &Origin) -> bool {
        self.exchange.is_idle() && self.is_to(origin)
    }

    /// Whether it leads to the server of this origin.
    pub(crate) fn is_to(&self, origin: &Origin) -> bool {
        self.origin == *origin
    }

    /// Keeps its place until it is closed.
    pub(crate) fn hold(&mut self, place: Place) {
        self.place = Some(place);
    }

    /// The server has answered as it does over connections that it grants.
    pub(crate) fn granted(&mut self) {
        self.place.iter_mut().for_each(Place::granted);
    }

    /// The other connections to a server that may have refused this one, if this is its first answer.
    pub(crate) fn is_refused(&mut self, stop: &Stop) -> Others {
        match self.place.as_mut().filter(|place| place.is_opening()) {
            Some(place) => place.refused(&|| !stop.is_set()),
            None => Others::None,
        }
    }

    /// Replaces the stop that ends its waits.
    pub fn end_with(&mut self, stop: &Stop) {
        self.exchange.end_with(stop);
    }

    /// The time that TCP took to connect.
    pub const fn rtt(&self) -> Duration {
        self.rtt
    }

    /// The addresses of the server, or of its proxy, and of this end. `None` if the kernel does not name them.
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        Some((self.socket.peer_addr().ok()?.ip(), self.socket.local_addr().ok()?.ip()))
    }

    /// The round-trip time of now, queues included, to the server or its proxy. `None` if the kernel has not measured it.
    pub fn receive_rtt(&self) -> Option<Duration> {
        let info = hikyaku_tcp::info(&self.socket).ok()?;
        (!info.receive_rtt.is_zero()).then_some(info.receive_rtt)
    }

    /// Sends `GET` with these headers and reads the head of the response.
    pub(crate) fn ask(&mut self, url: &Url, lines: &[(&str, String)]) -> Result<Head, Fault> {
        let authority = url.origin.authority();
        let (target, login) = match &self.form {
            Form::Origin => (url.target.clone(), None),
            Form::Absolute(login) => {
                (format!("http://{authority}{}", url.target), login.as_deref())
            }
        };
        let mut request = request(Method::GET, target, &authority, login);
        for (name, value) in lines {
            request = request.header(*name, value);
        }
        self.exchange.ask(request)
    }

    /// Reads bytes of the body, at most `most`. Returns none at its end.
    ///
    /// # Errors
    ///
    /// The connection is lost, ends before the body, or is silent for too long.
    pub fn read(&mut self, most: usize) -> Result<Bytes, Fault> {
        self.exchange.read(most)
    }

    /// Skips the rest of a body that has arrived. A longer body is left: to wait for it would cost more than another connection.
    pub(crate) fn skip_at_hand(&mut self) {
        self.exchange.skip_at_hand();
    }

    /// Reads the end of a body whose bytes have been read. Returns whether the connection can carry another request.
    pub fn finish(&mut self) -> bool {
        self.exchange.finish()
    }
}

/// A request. `login` is for the proxy.
fn request(method: Method, target: String, host: &str, login: Option<&str>) -> Builder {
    let request = Request::builder().method(method).uri(target).header(HOST, host);
    match login {
        Some(login) => request.header(PROXY_AUTHORIZATION, login),
        None => request,
    }
}

/// A second descriptor of the socket, for the runtime.
fn registered(wire: &Wire, socket: &TcpStream) -> io::Result<Box<dyn Stream>> {
    let _context = wire.runtime().enter();
    Ok(Box::new(tokio::net::TcpStream::from_std(socket.try_clone()?)?))
}

/// Requests a connection to the server from a proxy.
fn tunnel(
    wire: Wire,
    stream: Box<dyn Stream>,
    url: &Url,
    login: Option<String>,
) -> Result<(Wire, Box<dyn Stream>), Fault> {
    let address = url.origin.host_and_port();
    let request = request(Method::CONNECT, address.clone(), &address, login.as_deref());
    let mut exchange = Exchange::new(wire, stream)?;
    let head = exchange.ask(request)?;
    if !(200..300).contains(&head.status) {
        return Err(Fault::Proxy(head.status));
    }
    // In every version of TLS the client sends first, so the proxy must not have sent bytes of the server.
    exchange.into_stream().ok_or(Fault::Lie("is reached by a proxy that says something of its own"))
}

/// Establishes TLS: the certificate is checked before a request is sent.
fn secured(
    wire: &Wire,
    stream: Box<dyn Stream>,
    host: &str,
    config: Arc<ClientConfig>,
) -> Result<Box<dyn Stream>, Fault> {
    let fault = |source| Fault::Tls { host: host.to_owned(), source };
    let name = ServerName::try_from(host.to_owned());
    let name = name.map_err(|_| fault(rustls::Error::General("no valid host name".to_owned())))?;
    // rustls reads 4 KiB at once.
    let stream = BufReader::with_capacity(SECURED_READ_BYTES, stream);
    match wire.run(TlsConnector::from(config).connect(name, stream), Fault::Silent)? {
        Ok(secured) => Ok(Box::new(secured)),
        Err(error) => Err(error.downcast().map_or_else(Fault::Connection, fault)),
    }
}

/// The value of an `Authorization` of the Basic scheme (RFC 7617).
pub(crate) fn basic(login: &Login) -> String {
    format!("Basic {}", STANDARD.encode(format!("{}:{}", login.user, login.password)))
}

#[cfg(test)]
mod tests;
