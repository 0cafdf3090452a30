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
    judge(datagram, load, |stranger, token| *stranger == STRANGER && token == b"good")
}

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

#[test]
fn a_token_that_fills_the_packet_leaves_nothing_to_open() {
    let long = initial(LongType::Initial, Version::CURRENT, &[1; 1180], 1200);
    assert_eq!(judged(&long, 0), Verdict::Silence);
}

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
