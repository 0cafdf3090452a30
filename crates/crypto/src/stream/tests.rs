//! Both ends over pairs of sockets.

use super::*;
use crate::{Identity, KnownPeers, Trust, TrustOutcome, testing};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::SystemTime;

fn peer() -> PeerName {
    PeerName::new("example.org", 5209).unwrap()
}

/// What both ends made of a handshake, and their sockets.
struct Shaken {
    near: Result<(TlsStream, TrustHandle), Handshake>,
    far: Result<TlsStream, Handshake>,
    sockets: [UnixStream; 2],
}

/// The client trusts `trust` and shows `client`.
fn shake_hands(server: &Identity, client: &Identity, trust: Trust) -> Shaken {
    let (mut near, mut far) = UnixStream::pair().unwrap();
    let credentials = ServerCredentials::mutual(server);
    let accepts = thread::spawn(move || {
        let accepted = credentials.accept(&mut far);
        (accepted, far)
    });
    let shown = ClientCredentials::new(trust).with_identity(client).connect(&peer(), &mut near);
    if shown.is_err() {
        near.shutdown(std::net::Shutdown::Both).unwrap();
    }
    let (accepted, far) = accepts.join().unwrap();
    Shaken { near: shown, far: accepted, sockets: [near, far] }
}

#[test]
fn both_ends_know_each_other_and_bytes_go_both_ways() {
    let (server, client) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let Shaken { near, far, sockets: [a, b] } =
        shake_hands(&server, &client, Trust::Pinned(server.fingerprint()));
    let ((near, trust), far) = (near.unwrap(), far.unwrap());
    assert_eq!(far.peer_fingerprint(), Some(client.fingerprint()));
    assert_eq!(trust.settle(SystemTime::now()).unwrap(), TrustOutcome::Known);
    let (mut near_in, mut near_out) = near.split(a.try_clone().unwrap(), a);
    let (mut far_in, mut far_out) = far.split(b.try_clone().unwrap(), b);
    let bytes: Vec<u8> = (0..3_000_000u32).map(|at| (at * 7 + at / 251) as u8).collect();
    let sent = bytes.clone();
    // The far side sends back what comes while more comes.
    let echo = thread::spawn(move || io::copy(&mut far_in, &mut far_out).unwrap());
    let sends = thread::spawn(move || {
        let (head, tail) = sent.split_at(13);
        let slices = [io::IoSlice::new(head), io::IoSlice::new(tail)];
        let written = near_out.write_vectored(&slices).unwrap();
        near_out.write_all(&sent[written..]).unwrap();
        drop(near_out);
    });
    let mut back = vec![0; bytes.len()];
    near_in.read_exact(&mut back).unwrap();
    assert!(back == bytes);
    assert_eq!(near_in.read(&mut [0; 1]).unwrap(), 0, "the end was told");
    sends.join().unwrap();
    assert_eq!(echo.join().unwrap(), bytes.len() as u64);
}

#[test]
fn another_server_key_is_refused_by_name() {
    let (server, client) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let Shaken { near, far, .. } =
        shake_hands(&server, &client, Trust::Pinned(client.fingerprint()));
    assert!(matches!(near.err().unwrap(), Handshake::Untrusted(Untrusted::Pin { .. })));
    assert!(far.is_err());
}

#[test]
fn an_unknown_server_is_remembered() {
    let folder = testing::Folder::new();
    let known = KnownPeers::at(folder.path("known"));
    let (server, client) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    for expected in [TrustOutcome::FirstUse(server.fingerprint()), TrustOutcome::Known] {
        let Shaken { near, .. } = shake_hands(&server, &client, Trust::FirstUse(known.clone()));
        assert_eq!(near.unwrap().1.settle(SystemTime::now()).unwrap(), expected);
    }
    let Shaken { near, .. } = shake_hands(&client, &client, Trust::FirstUse(known));
    assert!(matches!(near.err().unwrap(), Handshake::Untrusted(Untrusted::Changed { .. })));
}

#[test]
fn a_stream_that_was_cut_is_no_end() {
    let (server, client) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let Shaken { near, far, sockets: [a, b] } =
        shake_hands(&server, &client, Trust::Pinned(server.fingerprint()));
    let (mut near_in, _near_out) = near.unwrap().0.split(a.try_clone().unwrap(), a);
    b.shutdown(std::net::Shutdown::Write).unwrap();
    drop(far);
    let error = near_in.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn what_is_no_tls_is_told() {
    let (mut near, far) = UnixStream::pair().unwrap();
    (&far).write_all(b"SSH-2.0-OpenSSH_9.2\r\n").unwrap();
    let server = Identity::generate().unwrap();
    let credentials = ClientCredentials::new(Trust::Pinned(server.fingerprint()));
    let error = credentials.connect(&peer(), &mut near).err().unwrap();
    assert!(matches!(error, Handshake::Tls(_)), "{error}");
}
