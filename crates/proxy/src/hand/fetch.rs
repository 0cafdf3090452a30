//! Fetches a download for the browser, on a thread of its own.

use super::Order;
use super::link::Link;
use crate::http;
use crate::socket::Socket;
use anyhow::{Context, Result, bail, ensure};
use hikyaku_forward::{Host, Scheme};
use httparse::{Response, Status};
use rustix::net::sockopt::set_socket_linger;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::task::spawn_blocking;

/// Redirections that are followed.
const REDIRECTIONS_MAX: usize = 10;
/// Bytes of the head of a response at most.
const HEAD_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 128;
/// Bytes that are read at once.
const PIECE_BYTES: usize = 256 << 10;
/// A site that says nothing for so long before its response is given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Headers of a response that pass to the browser: what describes the file and its parts. All others are left out, because
/// they would be rights of this address in the browser, or orders to it.
const PASSED: [&str; 13] = [
    "accept-ranges",
    "age",
    "cache-control",
    "content-encoding",
    "content-language",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expires",
    "last-modified",
    "transfer-encoding",
];

/// A connection to a site.
enum Site {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// Answers the browser's request with the download.
pub(crate) async fn run(socket: Socket, order: Order) {
    let Socket::Tcp(socket) = socket else { return };
    let Ok(browser) = socket.into_std() else { return };
    // A download that breaks resets the browser's connection, as the socket was prepared.
    let _ = spawn_blocking(move || {
        let mut has_begun = false;
        let fetched = fetch(&browser, &order, &mut has_begun);
        if let Err(error) = &fetched
            && !has_begun
        {
            let text = format!("{error:#}");
            let _ = (&browser).write_all(&http::response(502, &text));
        }
        if fetched.is_ok() || !has_begun {
            let _ = set_socket_linger(&browser, None);
        }
    })
    .await;
}

fn fetch(mut browser: &TcpStream, order: &Order, has_begun: &mut bool) -> Result<()> {
    browser.set_nonblocking(false)?;
    let mut link = order.link.clone();
    for _ in 0..=REDIRECTIONS_MAX {
        let mut site = Site::connect(order.proxy, &link)?;
        let is_same = link.target == order.link.target && link.scheme == order.link.scheme;
        site.write_all(&request(&link, order, is_same))?;
        let (head, rest) = read_head(&mut site)?;
        let response = Rewritten::of(&head, &link)?;
        if let Some(location) = response.location {
            let next =
                link.join(&location).with_context(|| format!("{link} leads to {location}"))?;
            link = link.redirected(next)?;
            continue;
        }
        *has_begun = true;
        browser.write_all(&response.head)?;
        return pass(&mut site, browser, (rest, response.length));
    }
    bail!("{} leads from page to page", order.link)
}

/// The request to a site. Cookies and the referrer are for the site that the browser has asked for.
fn request(link: &Link, order: &Order, is_same: bool) -> Vec<u8> {
    let address = match link.scheme {
        Scheme::Http => link.to_string(),
        Scheme::Https => link.path.clone(),
    };
    let mut out = format!("GET {address} HTTP/1.1\r\nHost: {}\r\n", link.authority()).into_bytes();
    for (name, value) in &order.headers {
        if is_same || !["Cookie", "Referer"].contains(name) {
            out.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
    }
    out.extend(b"Accept: */*\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n");
    out
}

/// A response as the browser gets it.
struct Rewritten {
    head: Vec<u8>,
    /// Bytes of the body, if the head tells.
    length: Option<u64>,
    /// Where a redirection leads.
    location: Option<String>,
}

impl Rewritten {
    // fuzz: none, parsed by httparse
    fn of(head: &[u8], link: &Link) -> Result<Self> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = Response::new(&mut headers);
        response.parse(head).context("the site's response cannot be understood")?;
        let status = response.code.context("the site's response has no status")?;
        let value = |name: &str| {
            let found = response.headers.iter().find(|one| one.name.eq_ignore_ascii_case(name))?;
            Some(String::from_utf8_lossy(found.value).into_owned())
        };
        let is_redirection = matches!(status, 301 | 302 | 303 | 307 | 308);
        let location = value("location").filter(|_| is_redirection);
        let length = match value("transfer-encoding") {
            Some(_) => None,
            None => value("content-length").and_then(|length| length.trim().parse().ok()),
        };
        let mut out = format!("HTTP/1.1 {status} {}\r\n", response.reason.unwrap_or_default());
        // Never shown as a page: it would be one of this address.
        let disposition = value("content-disposition").unwrap_or_default();
        let name = disposition.split_once(';').map(|(_, name)| name.trim().to_owned());
        let name = name.unwrap_or_else(|| format!("filename=\"{}\"", link.name().replace('"', "")));
        out.push_str(&format!("Content-Disposition: attachment; {name}\r\n"));
        out.push_str("Content-Security-Policy: sandbox\r\nX-Content-Type-Options: nosniff\r\n");
        let mut head = out.into_bytes();
        for header in response.headers.iter() {
            if PASSED.iter().any(|name| header.name.eq_ignore_ascii_case(name)) {
                head.extend([header.name.as_bytes(), b": ", header.value, b"\r\n"].concat());
            }
        }
        head.extend(b"Connection: close\r\n\r\n");
        Ok(Self { head, length, location })
    }
}

/// Reads the head of the final response, and what came behind it.
fn read_head(site: &mut Site) -> Result<(Vec<u8>, Vec<u8>)> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = Response::new(&mut headers);
        if let Status::Complete(length) = response.parse(&bytes)? {
            let code = response.code;
            let rest = bytes.split_off(length);
            // An interim response comes before the final one.
            match code {
                Some(100..=199) => bytes = rest,
                _ => return Ok((bytes, rest)),
            }
            continue;
        }
        ensure!(bytes.len() <= HEAD_BYTES_MAX, "the head of the site's response is too long");
        let length = site.read(&mut piece).context("the site does not answer")?;
        ensure!(length > 0, "the site has ended the connection");
        bytes.extend_from_slice(&piece[..length]);
    }
}

/// Passes a body on, of which `rest` has come. A body that is cut off is an error.
fn pass(
    site: &mut Site,
    mut browser: &TcpStream,
    (rest, length): (Vec<u8>, Option<u64>),
) -> Result<()> {
    site.socket().set_read_timeout(None)?;
    browser.write_all(&rest)?;
    let mut left = length.map(|length| length.saturating_sub(rest.len() as u64));
    let mut piece = vec![0; PIECE_BYTES];
    while left != Some(0) {
        let most = left.map_or(PIECE_BYTES, |left| piece.len().min(left as usize));
        let length = site.read(&mut piece[..most])?;
        if length == 0 {
            ensure!(left.is_none(), "the download was cut off");
            return Ok(());
        }
        browser.write_all(&piece[..length])?;
        left = left.map(|left| left - length as u64);
    }
    Ok(())
}

impl Site {
    /// Connects through the HTTP proxy of this gateway.
    fn connect(proxy: SocketAddr, link: &Link) -> Result<Self> {
        let mut socket = TcpStream::connect(proxy).context("this gateway takes no connection")?;
        socket.set_read_timeout(Some(PATIENCE))?;
        if link.scheme == Scheme::Http {
            return Ok(Self::Plain(socket));
        }
        write!(socket, "CONNECT {} HTTP/1.1\r\n\r\n", link.target)?;
        let mut plain = Self::Plain(socket);
        let (head, _) = read_head(&mut plain)?;
        let Self::Plain(socket) = plain else { bail!("no socket") };
        let line = String::from_utf8_lossy(&head);
        let line = line.lines().next().unwrap_or_default();
        ensure!(line.starts_with("HTTP/1.1 200"), "{} is not reached: {line}", link.target);
        let name = match &link.target.host {
            Host::Address(address) => ServerName::from(*address),
            Host::Name(name) => {
                ServerName::try_from(name.clone()).context("the name of the site is none")?
            }
        };
        let tls = ClientConnection::new(tls()?, name).context("no TLS")?;
        Ok(Self::Tls(Box::new(StreamOwned::new(tls, socket))))
    }

    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => tls.get_ref(),
        }
    }
}

impl Read for Site {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(bytes),
            Self::Tls(tls) => tls.read(bytes),
        }
    }
}

impl Write for Site {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(tls) => tls.flush(),
        }
    }
}

/// Sites are trusted as the system trusts them. Only HTTP/1.1 is offered.
fn tls() -> Result<Arc<ClientConfig>> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(config.clone());
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    ensure!(!roots.is_empty(), "this machine has no certificates of authorities");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let versions = builder.with_safe_default_protocol_versions()?;
    let mut config = versions.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(CONFIG.get_or_init(|| Arc::new(config)).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_a_file_to_the_browser_and_never_a_page() {
        let link = Link::parse("https://data.example/dir/run 7.dat?x".replace(' ', "_").as_str());
        let link = link.unwrap();
        let rewrite = |head: &str| Rewritten::of(head.as_bytes(), &link).unwrap();
        let page = rewrite(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=b\r\nContent-Length: 7\r\n\
             Content-Disposition: inline; filename=a.html\r\nConnection: keep-alive\r\n\
             Refresh: 0;url=http://b/\r\nLink: <http://b/>; rel=preload\r\nX-Content-Type-Options: x\r\n\
             WWW-Authenticate: Basic realm=x\r\nService-Worker-Allowed: /\r\nETag: \"7\"\r\n\r\n",
        );
        let head = String::from_utf8(page.head).unwrap();
        assert!(head.contains("Content-Disposition: attachment; filename=a.html\r\n"), "{head}");
        assert!(head.contains("Content-Security-Policy: sandbox\r\n"), "{head}");
        let names: Vec<&str> =
            head.lines().skip(1).filter_map(|line| Some(line.split_once(':')?.0)).collect();
        let ours = ["Content-Disposition", "Content-Security-Policy", "X-Content-Type-Options"];
        let theirs = ["Content-Type", "Content-Length", "ETag", "Connection"];
        assert_eq!(names, [&ours[..], &theirs[..]].concat());
        assert!(!head.contains("inline"), "{head}");
        assert!(
            head.ends_with("Connection: close\r\n\r\n") && !head.contains("keep-alive"),
            "{head}"
        );
        assert_eq!((page.length, page.location), (Some(7), None));
        let plain = rewrite("HTTP/1.1 206 Partial Content\r\nTransfer-Encoding: chunked\r\n\r\n");
        let head = String::from_utf8(plain.head).unwrap();
        assert!(head.contains("attachment; filename=\"run_7.dat\"\r\n"), "{head}");
        assert!(
            head.contains("Transfer-Encoding: chunked\r\n") && plain.length.is_none(),
            "{head}"
        );
        let moved = rewrite("HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\n");
        assert_eq!(moved.location.as_deref(), Some("/b"));
    }

    #[test]
    fn cookies_are_sent_to_the_site_that_they_are_of() {
        let link = |text: &str| Link::parse(text).unwrap();
        let order = Order {
            link: link("https://a.example/f"),
            headers: vec![("Cookie", b"a=b".to_vec()), ("Range", b"bytes=1-".to_vec())],
            proxy: "127.0.0.1:1".parse().unwrap(),
        };
        let text =
            |link: &Link, is_same| String::from_utf8(request(link, &order, is_same)).unwrap();
        let own = text(&order.link, true);
        assert!(own.starts_with("GET /f HTTP/1.1\r\nHost: a.example\r\nCookie: a=b\r\n"), "{own}");
        let other = text(&link("http://b.example:81/g"), false);
        assert!(
            other.starts_with("GET http://b.example:81/g HTTP/1.1\r\nHost: b.example:81\r\nRange")
        );
        assert!(!other.contains("Cookie"), "{other}");
    }
}
