//! The sizes of reads from the socket.

use super::*;
use crate::testing::Watched;
use crate::tls;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, duplex};
use tokio_rustls::TlsAcceptor;

/// Bytes of a body.
const BODY_BYTES: usize = 8 << 20;
/// Bytes that may be on their way to the client.
const PIPE_BYTES: usize = 1 << 20;
const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../web-get/tests/get");

fn acceptor() -> TlsAcceptor {
    let file = |name: &str| Path::new(FILES).join(name);
    let chain = vec![CertificateDer::from_pem_file(file("localhost.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("localhost.key")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    TlsAcceptor::from(Arc::new(config.with_single_cert(chain, key).unwrap()))
}

/// Answers one request with a long body.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    let _ = stream.read(&mut [0; 4096]).await?;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&vec![7; BODY_BYTES]).await?;
    stream.flush().await
}

/// The number of reads for a body, and the sizes of its pieces.
fn reads(scheme: Scheme) -> (usize, Vec<usize>) {
    let wire = Wire::new(Duration::from_secs(60), Stop::default()).unwrap();
    let (stream, far) = duplex(PIPE_BYTES);
    let reads = Arc::<AtomicUsize>::default();
    let count = reads.clone();
    let on_read = move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    };
    let mut stream: Box<dyn Stream> = Box::new(Watched { stream, on_read });
    match scheme {
        Scheme::Http => drop(wire.runtime().spawn(answer(far))),
        Scheme::Https => {
            let accepted = acceptor().accept(far);
            drop(wire.runtime().spawn(async move { answer(accepted.await?).await }));
            let config = tls::config(Some(&Path::new(FILES).join("localhost.pem"))).unwrap();
            stream = secured(&wire, stream, "localhost", config).unwrap();
        }
    }
    let mut exchange = Exchange::new(wire, stream).unwrap();
    exchange.ask(Request::builder()).unwrap();
    let mut pieces = Vec::new();
    loop {
        match exchange.read(usize::MAX).unwrap().len() {
            0 => break,
            bytes => pieces.push(bytes),
        }
    }
    (reads.load(Ordering::Relaxed), pieces)
}

#[test]
fn bodies_are_read_in_large_pieces() {
    for scheme in [Scheme::Http, Scheme::Https] {
        let (reads, pieces) = reads(scheme);
        assert_eq!(pieces.iter().sum::<usize>(), BODY_BYTES);
        let mean = |count: usize| BODY_BYTES / count;
        assert!(mean(reads) >= 48 << 10, "{scheme:?}: {reads} reads of the socket");
        assert!(mean(pieces.len()) >= 96 << 10, "{scheme:?}: {} pieces", pieces.len());
    }
}
