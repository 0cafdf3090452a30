//! Strangers and what they get.

use super::*;

const PROVE_FROM: usize = 64;
const STRANGER: Stranger = Stranger { destination: ConnectionId(7), source: ConnectionId(9) };

fn initial(kind: LongType, version: Version, token: &[u8], len: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let header = LongHeader {
        kind,
        version,
        destination: STRANGER.destination,
        source: STRANGER.source,
        packet_number: 0,
        token: token.to_vec(),
    };
    header.encode(&mut out);
    out.resize(len, 0xaa);
    out
}

fn judged(datagram: &[u8], half_open: usize) -> Verdict {
    let load = Load { half_open, prove_from: PROVE_FROM };
    judge(datagram, load, Entrance::Open, |stranger, token| {
        *stranger == STRANGER && token == b"good"
    })
}

// spec: hs-1, hs-4
#[test]
fn strangers_get_what_they_deserve() {
    use LongType::{Handshake, Initial, Retry, VersionNegotiation};
    let now = Version::CURRENT;
    let claimed = Verdict::Accept(STRANGER, Address::Claimed);
    let proven = Verdict::Accept(STRANGER, Address::Proven);
    let cases = [
        (initial(Initial, now, b"", 1200), 0, claimed.clone()),
        (initial(Initial, now, b"good", 1200), 0, proven.clone()),
        (initial(Initial, now, b"bad", 1200), 0, claimed),
        (initial(Initial, now, b"", 1200), PROVE_FROM, Verdict::Prove(STRANGER)),
        (initial(Initial, now, b"good", 1200), PROVE_FROM, proven),
        (initial(Initial, now, b"bad", 1200), PROVE_FROM, Verdict::Silence),
        (initial(Initial, now, b"good", 1200), MAX_HALF_OPEN, Verdict::Silence),
        (initial(Initial, now, b"", 1199), 0, Verdict::Silence),
        (initial(Initial, Version(5), b"", 1199), 0, Verdict::Silence),
        (initial(Handshake, now, b"", 1200), 0, Verdict::Silence),
        (initial(Retry, now, b"", 1200), 0, Verdict::Silence),
        (initial(VersionNegotiation, now, b"", 1200), 0, Verdict::Silence),
        (vec![0; 1400], 0, Verdict::Silence),
        (vec![0xff; 1400], 0, Verdict::Silence),
        (vec![], 0, Verdict::Silence),
    ];
    for (index, (datagram, half_open, verdict)) in cases.into_iter().enumerate() {
        assert_eq!(judged(&datagram, half_open), verdict, "case {index}");
    }
}

// spec: hs-7
#[test]
fn only_the_invited_learn_that_somebody_is_here() {
    let judged = |datagram: &[u8], half_open: usize| {
        let load = Load { half_open, prove_from: PROVE_FROM };
        judge(datagram, load, Entrance::Invited, |_, token| token == b"good")
    };
    let now = Version::CURRENT;
    let first = |version, token: &[u8]| initial(LongType::Initial, version, token, 1200);
    let claimed = Verdict::Accept(STRANGER, Address::Claimed);
    assert_eq!(judged(&first(now, b"good"), 0), claimed);
    assert_eq!(judged(&first(now, b"good"), PROVE_FROM), claimed, "no second question");
    for (datagram, half_open) in [
        (first(now, b""), 0),
        (first(now, b"bad"), 0),
        (first(now, b""), PROVE_FROM),
        (first(Version(5), b"good"), 0),
        (first(now, b"good"), MAX_HALF_OPEN),
        (first(now, b"good")[..1199].to_vec(), 0),
    ] {
        assert_eq!(judged(&datagram, half_open), Verdict::Silence);
    }
}

#[test]
fn a_token_that_fills_the_packet_leaves_nothing_to_open() {
    let long = initial(LongType::Initial, Version::CURRENT, &[1; 1180], 1200);
    assert_eq!(judged(&long, 0), Verdict::Silence);
}

// spec: hs-2, hs-4
#[test]
fn answers_are_short_and_go_back() {
    let question = initial(LongType::Initial, Version(5), b"", 1200);
    let Verdict::Versions(packet) = judged(&question, 0) else { panic!("no versions") };
    let (header, used) = LongHeader::decode(&packet).unwrap();
    assert_eq!((header.kind, header.destination), (LongType::VersionNegotiation, STRANGER.source));
    assert_eq!(packet[used..], Version::CURRENT.0.to_le_bytes());
    let packet = retry(&STRANGER, vec![3; 40]);
    let (header, used) = LongHeader::decode(&packet).unwrap();
    assert_eq!((header.kind, header.token), (LongType::Retry, vec![3; 40]));
    assert_eq!((header.destination, used), (STRANGER.source, packet.len()));
    assert!(packet.len() < MIN_INITIAL_LEN);
}
