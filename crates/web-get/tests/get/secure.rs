//! TLS. The certificate is for localhost, signed by itself, and valid for a hundred years.

use crate::server::{Body, Duplex, Reply, Server};
use crate::{Folder, check, get, got, payload};
use hikyaku_console::ExitCode;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

const MIB: usize = 1 << 20;
const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/get/localhost.pem");
const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/get/localhost.key");

fn config(versions: &[&'static rustls::SupportedProtocolVersion]) -> Arc<ServerConfig> {
    let chain = vec![CertificateDer::from_pem_file(Path::new(CERTIFICATE)).unwrap()];
    let key = PrivateKeyDer::from_pem_file(Path::new(KEY)).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_protocol_versions(versions);
    let config = config.unwrap().with_no_client_auth().with_single_cert(chain, key).unwrap();
    Arc::new(config)
}

fn secured(stream: TcpStream, config: &Arc<ServerConfig>) -> Option<Box<dyn Duplex>> {
    let tls = ServerConnection::new(Arc::clone(config)).ok()?;
    Some(Box::new(StreamOwned::new(tls, stream)))
}

fn start(
    config: Arc<ServerConfig>,
    answer: impl Fn(&crate::server::Request) -> Reply + Send + Sync + 'static,
) -> Server {
    Server::start_with(answer, move |stream| secured(stream, &config))
}

#[test]
fn a_file_comes_by_https() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let (folder, content) = (Folder::new(), payload(1, 9 * MIB));
        let data = content.clone();
        let server =
            start(config(&[version]), move |request| Reply::honest(request, &data, "\"a\""));
        got(
            &folder,
            &format!("-n 3 --ca {CERTIFICATE} -o DIR/a https://localhost:{}/a", server.port),
        );
        check(&folder, "a", &content);
    }
}

#[test]
fn a_certificate_of_nobody_known_is_refused() {
    let folder = Folder::new();
    let server = start(config(rustls::ALL_VERSIONS), |_| Reply::whole(b"x"));
    let (code, error) = get(&folder, &format!("-o DIR/a https://localhost:{}/a", server.port));
    assert_eq!(code, ExitCode::WillFail, "{error}");
    assert_eq!(server.requests().len(), 0, "nothing was asked");
}

#[test]
fn a_certificate_for_another_host_is_refused() {
    let folder = Folder::new();
    let server = start(config(rustls::ALL_VERSIONS), |_| Reply::whole(b"x"));
    let line = format!("--ca {CERTIFICATE} -o DIR/a https://127.0.0.2:{}/a", server.port);
    // The server listens on 127.0.0.1 only, so the other name is that of a proxy's CONNECT.
    let proxy = tunnel(server.port);
    let (code, error) = get(&folder, &format!("--proxy http://127.0.0.1:{proxy} {line}"));
    assert_eq!(code, ExitCode::WillFail, "{error}");
    assert!(error.contains("no secure connection"), "{error}");
    assert_eq!(server.requests().len(), 0, "nothing was asked");
}

#[test]
fn https_goes_through_a_proxy() {
    let (folder, content) = (Folder::new(), payload(2, 9 * MIB));
    let data = content.clone();
    let server =
        start(config(rustls::ALL_VERSIONS), move |request| Reply::honest(request, &data, "\"a\""));
    let proxy = tunnel(server.port);
    let line = format!("--proxy http://127.0.0.1:{proxy} --ca {CERTIFICATE} -n 2 -o DIR/a");
    got(&folder, &format!("{line} https://localhost:1/a"));
    check(&folder, "a", &content);
}

#[test]
fn the_target_of_a_redirect_gets_the_login_that_the_user_has_for_its_host() {
    use std::os::unix::fs::PermissionsExt;
    for (entry, want) in [
        ("machine localhost login me password secret", Some("Basic bWU6c2VjcmV0")),
        ("default login me password secret", None),
    ] {
        let folder = Folder::new();
        let netrc = folder.path("netrc");
        std::fs::write(&netrc, entry).unwrap();
        std::fs::set_permissions(&netrc, std::fs::Permissions::from_mode(0o600)).unwrap();
        let login = start(config(rustls::ALL_VERSIONS), |_| Reply::whole(b"x"));
        let to = format!("https://localhost:{}/x", login.port);
        let server = Server::start(move |_| Reply::status(302).with("Location", &to));
        let line = format!("--netrc-file DIR/netrc --ca {CERTIFICATE} -o DIR/a");
        got(&folder, &format!("{line} {}", server.url("/a")));
        assert_eq!(login.requests()[0].header("authorization"), want, "{entry}");
    }
}

#[test]
fn https_never_leads_to_http() {
    let folder = Folder::new();
    let plain = Server::start(|_| Reply::whole(b"x"));
    let to = plain.url("/x");
    let server =
        start(config(rustls::ALL_VERSIONS), move |_| Reply::status(302).with("Location", &to));
    let (code, error) =
        get(&folder, &format!("--ca {CERTIFICATE} -o DIR/a https://localhost:{}/a", server.port));
    assert_eq!(code, ExitCode::WillFail, "{error}");
    assert_eq!(plain.requests().len(), 0);
}

#[test]
fn a_body_that_anybody_could_have_cut_off_is_no_file() {
    let folder = Folder::new();
    // Without a length, only TLS can say that this was all, and the connection ends without its alert.
    let server = start(config(rustls::ALL_VERSIONS), |_| Reply::whole(b"half").body(Body::Raw));
    let line =
        format!("--retries 1 --ca {CERTIFICATE} -o DIR/a https://localhost:{}/a", server.port);
    let (code, error) = get(&folder, &line);
    assert_eq!(code, ExitCode::MayPass, "{error}");
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn a_proxy_that_sends_bytes_of_its_own_is_refused() {
    let folder = Folder::new();
    let server = start(config(rustls::ALL_VERSIONS), |_| Reply::whole(b"x"));
    let proxy = tunnel_with(server.port, b"HTTP/1.1 200 Connected\r\n\r\nmore");
    let line = format!("--proxy http://127.0.0.1:{proxy} --ca {CERTIFICATE} --retries 0 -o DIR/a");
    let (code, error) = get(&folder, &format!("{line} https://localhost:1/a"));
    assert_ne!(code, ExitCode::Success, "{error}");
    assert!(error.contains("says something of its own"), "{error}");
    assert_eq!(server.requests().len(), 0);
}

/// A proxy that connects everybody to one port of this host. Returns its own.
fn tunnel(to: u16) -> u16 {
    tunnel_with(to, b"HTTP/1.1 200 Connected\r\n\r\n")
}

/// A proxy with this answer to CONNECT.
fn tunnel_with(to: u16, answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || relay(stream, to, answer));
        }
    });
    port
}

fn relay(stream: TcpStream, to: u16, answer: &[u8]) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|length| length > 2) {
        line.clear();
    }
    let server = TcpStream::connect(("127.0.0.1", to)).unwrap();
    let mut client = stream;
    client.write_all(answer).unwrap();
    let (mut up, mut down) = (server.try_clone().unwrap(), server);
    thread::spawn(move || copy(&mut reader, &mut up));
    copy(&mut down, &mut client);
}

fn copy(from: &mut impl Read, to: &mut TcpStream) {
    let _ = std::io::copy(from, to);
    let _ = to.shutdown(std::net::Shutdown::Write);
}
