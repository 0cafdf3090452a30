//! What each end accepts and sends before both have data keys.

use super::{HALF, run_alone, short};
use hikyaku_proto::{
    CipherId, CloseReason, Config, Event, KeyChain, KeyPair, PacketKey, PathHint, Side, StreamKind,
};
use hikyaku_sim::{Duo, FIRST, SimSession, id};
use hikyaku_units::Rate;
use hikyaku_wire::{KeyPhase, LongHeader, LongType, MIN_INITIAL_LEN, Params, Version};
use std::time::Duration;

fn apart() -> Duo {
    Duo::apart(&Config::default(), &Config::default())
}

fn head(packet: &[u8]) -> LongHeader {
    LongHeader::decode(packet).expect("a long packet").0
}

/// An unprotected packet to the client in the server's name.
fn answer(kind: LongType, token: &[u8], tail: &[u8]) -> Vec<u8> {
    let version = if kind == LongType::Retry { Version::CURRENT } else { Version(0) };
    let header = LongHeader {
        kind,
        version,
        destination: id(Side::Client),
        source: FIRST,
        packet_number: 0,
        token: token.to_vec(),
    };
    let mut packet = Vec::new();
    header.encode(&mut packet);
    packet.extend_from_slice(tail);
    packet
}

// spec: hs-1
#[test]
fn a_clients_initial_packets_are_padded() {
    let mut duo = apart();
    let until = duo.now + Duration::from_secs(2);
    let mut first = run_alone(&mut duo, Side::Client, until);
    duo.give(Side::Client, [answer(LongType::Retry, b"token", &[])]);
    first.extend(run_alone(&mut duo, Side::Client, until + Duration::from_secs(2)));
    assert!(first.len() > 4);
    for (_, packet) in first {
        assert_eq!(head(&packet).kind, LongType::Initial);
        assert!(packet.len() >= MIN_INITIAL_LEN, "{}", packet.len());
    }
}

// spec: hs-2
#[test]
fn a_client_reports_the_versions_of_a_version_negotiation() {
    let list = [5u32, 6].map(u32::to_le_bytes).concat();
    let mut duo = apart();
    duo.take(Side::Client);
    duo.give(Side::Client, [answer(LongType::VersionNegotiation, &[], &list)]);
    let named = Event::Closed(CloseReason::Version(vec![Version(5), Version(6)]));
    assert_eq!(duo.events(Side::Client), [named]);
    // A list with the client's own version, or one after a part of the real answer, is forged.
    let with_ours = [list.clone(), Version::CURRENT.0.to_le_bytes().to_vec()].concat();
    let mut duo = apart();
    duo.give(Side::Client, [answer(LongType::VersionNegotiation, &[], &with_ours)]);
    let flight = duo.take(Side::Client);
    duo.give(Side::Server, flight);
    // A part of the real answer is enough.
    let answers = duo.take(Side::Server);
    duo.give(Side::Client, answers.into_iter().take(1));
    duo.give(Side::Client, [answer(LongType::VersionNegotiation, &[], &list)]);
    duo.meet(HALF);
}

// spec: hs-3
#[test]
fn an_unvalidated_address_gets_at_most_three_times_the_received_bytes() {
    let mut duo = apart();
    let mut came = 0;
    let mut said = 0;
    for packet in duo.take(Side::Client) {
        came += packet.len();
        duo.give(Side::Server, [packet]);
        let until = duo.now + Duration::from_secs(4);
        said +=
            run_alone(&mut duo, Side::Server, until).iter().map(|(_, p)| p.len()).sum::<usize>();
        assert!(said <= 3 * came, "{said} for {came}");
    }
    assert!(said > 2 * came, "it would have said more: {said} for {came}");
    // Not even for a CLOSE packet.
    duo.end(Side::Server).close(0, "going");
    let last = duo.take(Side::Server);
    said += last.iter().map(Vec::len).sum::<usize>();
    assert!(said <= 3 * came, "{said} for {came}");
}

// spec: hs-4
#[test]
fn a_client_repeats_its_initial_packet_with_the_retry_token() {
    let mut duo = apart();
    let flight = duo.take(Side::Client);
    duo.now += HALF;
    duo.give(Side::Client, [answer(LongType::Retry, b"proof", &[])]);
    let again = duo.take(Side::Client);
    assert!(again.len() >= flight.len());
    assert!(again.iter().all(|packet| head(packet).token == b"proof"));
    // Only the first Retry counts.
    duo.give(Side::Client, [answer(LongType::Retry, b"other", &[])]);
    let until = duo.now + Duration::from_secs(1);
    let later = run_alone(&mut duo, Side::Client, until);
    assert!(!later.is_empty() && later.iter().all(|(_, packet)| head(packet).token == b"proof"));
}

// spec: hs-6
#[test]
fn a_client_retransmits_at_increasing_intervals() {
    let mut duo = apart();
    let until = duo.now + Duration::from_secs(9);
    let said = run_alone(&mut duo, Side::Client, until);
    let mut times: Vec<_> = said.iter().map(|(at, _)| *at).collect();
    times.dedup();
    assert_eq!(said.len() % times.len(), 0, "the whole flight each time");
    let waits: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
    let expected = [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2000, 2000, 2000];
    assert_eq!(waits, expected);
}

// spec: hs-6
#[test]
fn a_server_answers_a_repeated_flight_with_its_own() {
    let mut duo = apart();
    let flight = duo.take(Side::Client);
    duo.give(Side::Server, flight.clone());
    assert!(!duo.take(Side::Server).is_empty());
    duo.now += Duration::from_millis(10);
    assert!(duo.take(Side::Server).is_empty(), "nobody asked");
    duo.give(Side::Server, flight);
    assert!(!duo.take(Side::Server).is_empty());
}

/// Two ends, of which one announces wrong transport parameters.
fn wrong_params(liar: Side, lie: impl Fn(&mut Params)) -> Duo {
    Duo::over(&Config::default(), &Config::default(), |side, mut params| {
        if side == liar {
            lie(&mut params);
        }
        Box::new(SimSession::new(side, params.encode()))
    })
}

// spec: hs-5
#[test]
fn ids_that_are_not_those_of_the_packets_end_the_handshake() {
    let strange = |params: &mut Params| params.source_id = 77;
    let other = |params: &mut Params| params.original_destination = 78;
    for (mut duo, side) in [
        (wrong_params(Side::Server, strange), Side::Client),
        (wrong_params(Side::Client, strange), Side::Server),
        (wrong_params(Side::Server, other), Side::Client),
    ] {
        (0..10).for_each(|_| duo.exchange(HALF));
        let events = duo.events(side);
        let is_refusal = |event: &Event| matches!(event, Event::Closed(CloseReason::Handshake(_)));
        assert!(events.iter().any(is_refusal), "{side:?}: {events:?}");
        assert!(!events.contains(&Event::Connected));
    }
}

// spec: hs-5
#[test]
fn the_cipher_is_the_first_of_the_clients_that_the_server_supports() {
    use CipherId::{Aegis128L, Aes128Gcm, ChaCha20Poly1305};
    let with = |ciphers: &[CipherId]| Config { ciphers: ciphers.to_vec(), ..Config::default() };
    let client = with(&[Aegis128L, ChaCha20Poly1305, Aes128Gcm]);
    let mut duo = Duo::met(&client, &with(&[Aes128Gcm, ChaCha20Poly1305]), HALF);
    for side in [Side::Client, Side::Server] {
        assert_eq!(duo.end(side).stats().cipher, Some(ChaCha20Poly1305), "{side:?}");
    }
}

/// The packet limit of a key that is soon used up.
const KEY_PACKETS_MAX: u64 = 200;

struct LimitedChain(Box<dyn KeyChain>);

impl KeyChain for LimitedChain {
    fn next_pair(&mut self) -> KeyPair {
        let KeyPair { seal, open } = self.0.next_pair();
        KeyPair { seal: Box::new(LimitedKey(seal)), open: Box::new(LimitedKey(open)) }
    }
}

struct LimitedKey(Box<dyn PacketKey>);

impl PacketKey for LimitedKey {
    fn seal(&self, packet_number: u64, header: &[u8], buffer: &mut [u8]) {
        self.0.seal(packet_number, header, buffer);
    }

    fn open(&self, packet_number: u64, header: &[u8], buffer: &mut [u8]) -> Option<usize> {
        self.0.open(packet_number, header, buffer)
    }

    fn packet_limit(&self) -> u64 {
        KEY_PACKETS_MAX
    }
}

/// A client with much data to send over a path with a one-way delay of `half` milliseconds.
fn limited_keys(client: &Config, half: u64) -> Duo {
    let mut duo = Duo::over(client, &Config::default(), |side, params| {
        Box::new(SimSession::new(side, params.encode()).with_keys(LimitedChain))
    });
    duo.meet(Duration::from_millis(half));
    duo.events(Side::Client);
    let id = duo.end(Side::Client).open(StreamKind::Ordered).expect("a stream");
    duo.end(Side::Client).write(id, vec![7; 4_000_000].into());
    duo
}

// spec: key-1, key-2
#[test]
fn both_ends_update_keys_while_packets_are_in_flight() {
    let slow =
        Config { payload_rate: Some(Rate::from_bits_per_sec(100_000_000)), ..Config::default() };
    let mut duo = limited_keys(&slow, 1);
    (0..200).for_each(|_| duo.exchange(Duration::from_millis(1)));
    for side in [Side::Client, Side::Server] {
        let stats = duo.end(side).stats();
        assert!(stats.key_updates > 5, "{side:?}: {}", stats.key_updates);
        assert_eq!(stats.undecryptable, 0, "{side:?}");
    }
}

// spec: key-1, key-4
#[test]
fn a_key_used_up_before_an_acknowledgement_ends_the_connection() {
    let rate = Rate::from_bits_per_sec(1_000_000_000);
    let hint = Some(PathHint { rate, base_rtt: HALF * 2 });
    let mut duo = limited_keys(&Config { hint, ..Config::default() }, 50);
    // The client receives no acknowledgement of the many packets of this round trip.
    let until = duo.now + HALF;
    let said = run_alone(&mut duo, Side::Client, until);
    let events = duo.events(Side::Client);
    let [Event::Closed(CloseReason::Violation(text))] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert!(text.contains("used up"), "{text}");
    let phases = said.iter().filter_map(|(_, packet)| short(packet)).map(|header| header.phase);
    let sealed: Vec<KeyPhase> = phases.collect();
    assert_eq!(duo.end(Side::Client).stats().key_updates, 1);
    // The limit is checked before each batch, and CLOSE packets are sealed as well.
    let count = sealed.iter().filter(|phase| **phase == KeyPhase::Odd).count() as u64;
    assert!(
        (KEY_PACKETS_MAX..KEY_PACKETS_MAX + 70).contains(&count),
        "{count} of {}",
        sealed.len()
    );
}
