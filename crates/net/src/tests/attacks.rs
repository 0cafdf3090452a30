//! Attackers that send noise and floods of first packets to a real socket. Every address of 127/8 is this machine's, so
//! that one process can send from many addresses.

use super::*;
use crate::link::MOST_CRUMBS;
use hikyaku_crypto::{PeerName, random_u64};
use hikyaku_proto::{ClientIds, Config, ConnectionId};
use hikyaku_units::Instant;
use hikyaku_wire::{LongHeader, LongType, MIN_INITIAL_LEN};
use std::collections::BTreeSet;
use std::net::UdpSocket;

/// The first flight of an honest client.
fn hello(fingerprint: Fingerprint, secret: Option<&Secret>) -> Vec<Vec<u8>> {
    let now = Instant::from_millis(1000);
    let [local, destination] = [(); 2].map(|()| ConnectionId(random_u64()));
    let ids = ClientIds { local, destination, seed: 1 };
    let config = Config::default();
    let params = hikyaku_proto::Connection::local_params(&config, local, destination).encode();
    let peer = PeerName::new("example.org", 4433).unwrap();
    let credentials = ClientCredentials::new(Trust::Pinned(fingerprint));
    let session = Box::new(credentials.session(&peer, params).unwrap().0);
    let nowhere = "127.0.0.1:1".parse().unwrap();
    let mut client = hikyaku_proto::Connection::client(now, config, session, nowhere, ids);
    if let Some(secret) = secret {
        client.set_token(secret.token(destination));
    }
    let (mut said, mut out) = (Vec::new(), Vec::new());
    while let Some(transmit) = client.poll_transmit(now, &mut out) {
        said.extend(out[..transmit.len].chunks(transmit.segment).map(<[u8]>::to_vec));
    }
    said
}

/// A socket of its own address.
fn stranger(number: usize) -> UdpSocket {
    let address = [127, 7, (number / 250) as u8, (1 + number % 250) as u8];
    let socket = UdpSocket::bind(SocketAddr::from((address, 0))).unwrap();
    socket.set_nonblocking(true).unwrap();
    socket
}

fn answers(socket: &UdpSocket) -> Vec<Vec<u8>> {
    let mut room = [0; 2000];
    std::iter::from_fn(|| socket.recv(&mut room).ok().map(|len| room[..len].to_vec())).collect()
}

/// A small generator: what is sent must be the same in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % below
    }

    fn datagram(&mut self, first: &[u8], index: usize) -> Vec<u8> {
        match index % 3 {
            0 => (0..self.next(1473)).map(|_| self.next(256) as u8).collect(),
            1 => first[..self.next(first.len())].to_vec(),
            _ => {
                let mut flipped = first.to_vec();
                let bit = self.next(first.len() * 8);
                flipped[bit / 8] ^= 1 << (bit % 8);
                flipped
            }
        }
    }
}

const NOISE: usize = 30_000;
/// A long header with a token.
const HEADER: usize = 62;

/// Sends noise to `lab`, from one address; what came back.
fn answers_to_noise(lab: &Lab, secret: Option<&Secret>) -> Vec<Vec<u8>> {
    let first = hello(lab.fingerprint, secret).remove(0);
    let (socket, target) = (stranger(0), lab.listener.local_addr());
    let (mut noise, mut came) = (Noise(1), Vec::new());
    for index in 0..NOISE {
        socket.send_to(&noise.datagram(&first, index), target).unwrap();
        if index % 100 == 0 {
            came.extend(answers(&socket));
            thread::yield_now();
        }
    }
    // Each bit of the header, from an unknown address; then each bit of a truncated one with another version.
    let fresh: Vec<_> = (1..=HEADER * 8).map(stranger).collect();
    for (bit, socket) in fresh.iter().enumerate() {
        let mut flipped = first.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        socket.send_to(&flipped, target).unwrap();
    }
    let mut other = first;
    other[4] ^= 1;
    let cut: Vec<_> = (HEADER..MIN_INITIAL_LEN).step_by(20).collect();
    let senders: Vec<_> = (0..cut.len()).map(|index| stranger(1000 + index)).collect();
    for (len, socket) in cut.iter().zip(&senders) {
        socket.send_to(&other[..*len], target).unwrap();
    }
    // An honest client gets in behind all of it, so that all of it has been read.
    let mut config = lab.trusting();
    config.secret = secret.cloned();
    lab.connect_with(config);
    came.extend(answers(&socket));
    came.extend(fresh.iter().flat_map(answers));
    assert!(senders.iter().all(|socket| answers(socket).is_empty()), "an answer to what is short");
    came
}

#[test]
fn noise_draws_only_the_two_short_answers() {
    let lab = Lab::new();
    let came = answers_to_noise(&lab, None);
    assert!(came.len() < NOISE / 3, "{} answers", came.len());
    for answer in came {
        let (header, _) = LongHeader::decode(&answer).unwrap();
        let is_short = matches!(header.kind, LongType::Retry | LongType::VersionNegotiation);
        assert!(is_short && answer.len() < 100, "{header:?}");
    }
}

#[test]
fn who_has_no_invitation_hears_nothing() {
    let secret = Secret::generate();
    let lab = Lab::with("127.0.0.1:0", |config| config.secret = Some(secret.clone()));
    assert_eq!(answers_to_noise(&lab, Some(&secret)), Vec::<Vec<u8>>::new());
}

#[test]
fn a_flood_of_first_packets_costs_few_signatures_and_keeps_nobody_out() {
    const FLOOD: usize = 300;
    let prove_from = 64;
    let lab = Lab::with("127.0.0.1:0", |config| config.prove_from = prove_from);
    let hellos: Vec<_> = (0..FLOOD).map(|_| hello(lab.fingerprint, None)).collect();
    let strangers: Vec<_> = (1..=FLOOD).map(stranger).collect();
    for (socket, hello) in strangers.iter().zip(&hellos) {
        for datagram in hello {
            socket.send_to(datagram, lab.listener.local_addr()).unwrap();
        }
    }
    // In the middle of it an honest client is asked for proof, and gets in.
    lab.connect();
    let mut came: Vec<Vec<Vec<u8>>> = strangers.iter().map(answers).collect();
    // Time for retransmissions to addresses that never answer.
    thread::sleep(Duration::from_millis(700));
    came.iter_mut().zip(&strangers).for_each(|(came, socket)| came.extend(answers(socket)));
    let (mut signed, mut asked, mut ids) = (0, 0, BTreeSet::new());
    for (came, hello) in came.iter().zip(&hellos) {
        let kinds: Vec<_> = came.iter().map(|one| LongHeader::decode(one).unwrap().0).collect();
        let is_signed = kinds.iter().any(|header| header.kind == LongType::Handshake);
        signed += usize::from(is_signed);
        asked += usize::from(kinds.iter().any(|header| header.kind == LongType::Retry));
        if is_signed {
            ids.extend(kinds.iter().map(|header| header.source.0));
        }
        let [said, heard] = [came, hello].map(|all| all.iter().map(Vec::len).sum::<usize>());
        assert!(said <= 3 * heard, "{said} bytes for {heard}");
    }
    assert!((1..=prove_from).contains(&signed), "{signed} of {FLOOD} drew a signature");
    // Of those that were not, more came at once than are answered at once.
    assert!(asked >= 20 && signed + asked <= FLOOD, "{asked} of {FLOOD} were asked");
    // Connection ids are random in every bit, and no two are equal.
    assert_eq!(ids.len(), signed);
    let (and, or) = ids.iter().fold((u64::MAX, 0), |(and, or), id| (and & id, or | id));
    assert_eq!((and, or), (0, u64::MAX));
}

/// Number of these sockets that received a server's signature.
fn signed(strangers: &[UdpSocket]) -> usize {
    let is_signed = |answer: &Vec<u8>| {
        LongHeader::decode(answer).is_ok_and(|(header, _)| header.kind == LongType::Handshake)
    };
    // Each driver answers in its own time: this ends when one is signed, and nothing more comes.
    let mut signed = BTreeSet::new();
    eventually("a signature is drawn, and no more", || {
        let before = signed.len();
        let news = strangers.iter().enumerate().filter(|(_, it)| answers(it).iter().any(is_signed));
        signed.extend(news.map(|(number, _)| number));
        !signed.is_empty() && signed.len() == before
    });
    signed.len()
}

// spec: hs-10
#[test]
fn a_host_that_only_begins_keeps_nobody_out() {
    const FLOOD: usize = 100;
    // No address has to be proven.
    let lab = Lab::with("127.0.0.1:0", |config| config.prove_from = 10_000);
    let strangers: Vec<_> = (0..FLOOD).map(|_| stranger(0)).collect();
    for socket in &strangers {
        for datagram in hello(lab.fingerprint, None) {
            socket.send_to(&datagram, lab.listener.local_addr()).unwrap();
        }
    }
    // Another host gets in behind it.
    lab.connect();
    let signed = signed(&strangers);
    assert!((1..=64).contains(&signed), "{signed} of {FLOOD} drew a signature");
}

// spec: hs-10
#[test]
fn an_invitation_that_was_seen_is_of_no_use_to_many() {
    const FLOOD: usize = 40;
    let secret = Secret::generate();
    let lab = Lab::with("127.0.0.1:0", |config| config.secret = Some(secret.clone()));
    let seen = hello(lab.fingerprint, Some(&secret));
    let strangers: Vec<_> = (1..=FLOOD).map(stranger).collect();
    for socket in &strangers {
        for datagram in &seen {
            socket.send_to(datagram, lab.listener.local_addr()).unwrap();
        }
    }
    let mut config = lab.trusting();
    config.secret = Some(secret);
    lab.connect_with(config);
    let signed = signed(&strangers);
    assert!((1..=4).contains(&signed), "{signed} of {FLOOD} drew a signature");
}

/// Each is over for the transport as soon as it was opened, so that the peer may open the next.
#[test]
fn streams_that_nobody_accepts_end_the_connection() {
    let lab = Lab::new();
    let (client, server) = lab.connect();
    let mut opened = 0;
    while let Ok(mut object) = block_on(client.open_object()) {
        object.reset(StreamCode::new(0));
        opened += 1;
        assert!(opened < 10_000, "an application holds what it has not asked for");
    }
    assert!(opened >= 1024, "{opened}: so many may wait");
    block_on(server.closed());
}

/// Bytes sent one by one to an application that reads nothing: each piece costs two hundred times its byte.
#[test]
fn crumbs_that_nobody_reads_do_not_pile_up() {
    /// The action of the peer while the application still reads.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Peer {
        Stays,
        Goes,
    }
    for peer in [Peer::Stays, Peer::Goes] {
        let lab = Lab::new();
        let (client, server) = lab.connect();
        let (mut send, _receive) = block_on(client.open_stream()).unwrap().split();
        let mut crumb = |at: u64| {
            block_on(send.write_chunk(patterned(3 * at, 3))).unwrap();
            // So that each leaves alone.
            thread::sleep(Duration::from_micros(100));
        };
        let full = (0..100_000).find(|&at| {
            crumb(at);
            server.crumbs() >= MOST_CRUMBS
        });
        let count = full.expect("so many crumbs come") + 3000;
        (count - 2999..count).for_each(&mut crumb);
        send.finish();
        block_on(send.delivered()).unwrap();
        assert!(server.crumbs() <= MOST_CRUMBS, "{} pieces of three bytes", server.crumbs());
        let mut stream = block_on(server.accept_stream()).unwrap();
        if peer == Peer::Goes {
            client.close(AppCode::DONE, "");
            block_on(server.closed());
        }
        assert_eq!(block_on(receive_pattern(stream.halves().1)).unwrap(), 3 * count, "{peer:?}");
        assert_eq!(server.crumbs(), 0);
    }
}
