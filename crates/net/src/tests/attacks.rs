//! Who sends what it should not to a real socket: noise (T01), floods of first packets (T03), forged
//! messages of the network (T04). Every address of 127/8 is this machine's, so that one process is many.

use super::*;
use hikyaku_crypto::{ClientCredentials, PeerName, Secret, random_u64};
use hikyaku_proto::{ClientIds, Config, ConnectionId};
use hikyaku_units::Instant;
use hikyaku_wire::{LongHeader, LongType, MIN_INITIAL_LEN};
use rustix::net::{AddressFamily, SendFlags, SocketType};
use std::collections::BTreeSet;
use std::net::UdpSocket;

/// What a client says first: a flight as an honest one would send it.
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
    // Each bit of the header by somebody who is not known yet; then the same of another version, cut.
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
    // What is repeated to those that never answer.
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
    // Ids are random in every bit, and no two the same (T05).
    assert_eq!(ids.len(), signed);
    let (and, or) = ids.iter().fold((u64::MAX, 0), |(and, or), id| (and & id, or | id));
    assert_eq!((and, or), (0, u64::MAX));
}

/// How many of these heard a server's signature.
fn signed(strangers: &[UdpSocket]) -> usize {
    let is_signed = |answer: &Vec<u8>| {
        LongHeader::decode(answer).is_ok_and(|(header, _)| header.kind == LongType::Handshake)
    };
    strangers.iter().filter(|socket| answers(socket).iter().any(is_signed)).count()
}

// spec: hs-10
#[test]
fn a_host_that_only_begins_keeps_nobody_out() {
    const FLOOD: usize = 100;
    // Nobody is asked for proof: as if all had given it.
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

/// A message of the network about a datagram that `from` is to have sent `to`.
fn icmp(code: u8, mtu: u16, from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let mut packet = vec![3, code, 0, 0, 0, 0];
    packet.extend_from_slice(&mtu.to_be_bytes());
    packet.extend_from_slice(&[0x45, 0, 5, 0, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    for address in [from, to] {
        let SocketAddr::V4(address) = address else { panic!("this is about IPv4") };
        packet.extend_from_slice(&address.ip().octets());
    }
    for port in [from.port(), to.port()] {
        packet.extend_from_slice(&port.to_be_bytes());
    }
    packet.extend_from_slice(&[4, 0xec, 0, 0]);
    let words = packet.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[2..4].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// Unreachable host, unreachable port, forbidden; and too big, from absurd to usual.
const MESSAGES: [(u8, u16); 6] = [(1, 0), (3, 0), (13, 0), (4, 68), (4, 600), (4, 1300)];

/// An address of this run of the test alone: the kernel remembers for minutes what it is told of one.
fn here() -> SocketAddr {
    let [.., a, b] = std::process::id().to_be_bytes();
    SocketAddr::from(([127, 76, a, b], 0))
}

#[test]
fn forged_messages_of_the_network_end_nothing() {
    let socket =
        rustix::net::socket(AddressFamily::INET, SocketType::RAW, Some(rustix::net::ipproto::ICMP));
    let Ok(socket) = socket else {
        println!("SKIPPED: forging messages of the network takes root");
        return;
    };
    let forge = move |code, mtu, from: SocketAddr, to: SocketAddr| {
        let packet = icmp(code, mtu, from, to);
        rustix::net::sendto(&socket, &packet, SendFlags::empty(), &here()).unwrap();
    };
    // The kernel believes them: a socket that asks for such messages gets them.
    let [one, other] = [(); 2].map(|()| UdpSocket::bind(here()).unwrap());
    one.connect(other.local_addr().unwrap()).unwrap();
    one.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    forge(3, 0, one.local_addr().unwrap(), other.local_addr().unwrap());
    let error = one.recv(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused, "{error}");

    let lab = Lab::with(&here().to_string(), |_| {});
    let (client, server) = lab.connect();
    let transfer = || {
        let mut stream = block_on(client.open_stream()).unwrap();
        let sender = thread::spawn(move || block_on(send_pattern(stream.halves().0, 60_000_000)));
        let mut other = block_on(server.accept_stream()).unwrap();
        let receiver = thread::spawn(move || block_on(receive_pattern(other.halves().1)).unwrap());
        (sender, receiver)
    };
    // What a path carries that nobody tells lies about.
    let (sender, receiver) = transfer();
    assert_eq!(receiver.join().unwrap(), 60_000_000);
    sender.join().unwrap();
    let datagrams = || [&client, &server].map(|end| block_on(end.stats()).unwrap().datagram);
    let calm = datagrams();
    assert!(calm[0] > 1300, "{calm:?}");
    let addresses = [lab.endpoint.local_addr(), lab.listener.local_addr()];
    let (sender, receiver) = transfer();
    let mut forged = 0;
    while !receiver.is_finished() && forged < 1_000_000 {
        for (code, mtu) in MESSAGES {
            forge(code, mtu, addresses[0], addresses[1]);
            forge(code, mtu, addresses[1], addresses[0]);
            forged += 2;
        }
        thread::sleep(Duration::from_micros(200));
    }
    assert_eq!(receiver.join().unwrap(), 60_000_000);
    sender.join().unwrap();
    assert!(forged > 100, "{forged}");
    for end in [&client, &server] {
        assert_eq!(end.close_reason(), None);
    }
    assert_eq!(datagrams(), calm);
    // And who comes later gets in.
    lab.connect();
}
