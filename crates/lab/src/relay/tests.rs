//! Compares split super-packets with what the kernel would have sent: every piece has to be a valid
//! packet, and together they have to contain the whole payload.

use super::arena::{Arena, Slice};
use super::checksum::{add, fold};
use super::cut::{Piece, cut};
use super::packet::{self, Layout};
use super::rebuild::{Corruption, Packet};
use hikyaku_link::{Ecn, Link, LinkSpec, LossModel};
use hikyaku_tun::{Checksum, Cwr, Gso, Header};
use hikyaku_units::{DataSize, Instant, Probability, Rate};
use std::time::Duration;

const PAYLOAD_BYTES: usize = 10_000;
const SEGMENT_BYTES: u16 = 1448;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Tcp4,
    Tcp6,
    Udp4,
}

const KINDS: [Kind; 3] = [Kind::Tcp4, Kind::Tcp6, Kind::Udp4];

/// A super-packet as the kernel passes it to a TUN device.
fn super_packet(kind: Kind) -> Vec<u8> {
    let mut ip = match kind {
        Kind::Tcp4 | Kind::Udp4 => {
            let mut ip = vec![0x45, 2, 0, 0, 0xff, 0xfe, 0x40, 0, 64, 6, 0, 0, 10, 77, 0, 1];
            ip.extend([10, 77, 1, 1]);
            ip
        }
        Kind::Tcp6 => {
            let mut ip = vec![0x60, 0x20, 0, 0, 0, 0, 6, 64];
            ip.extend((0..32).map(|n| n * 7));
            ip
        }
    };
    let start = ip.len() as u16;
    let (offset, gso) = match kind {
        Kind::Tcp4 => (16, Gso::Tcp4(Cwr::Set)),
        Kind::Tcp6 => (16, Gso::Tcp6(Cwr::Set)),
        Kind::Udp4 => (6, Gso::Udp),
    };
    if kind == Kind::Udp4 {
        ip[9] = 17;
        ip.extend([1, 2, 3, 4, 0, 0, 0, 0]);
    } else {
        // Ports, a sequence number that wraps around, ACK number, 32 bytes of header, flags CWR,
        // ACK, PSH, FIN.
        ip.extend([1, 2, 3, 4, 0xff, 0xff, 0xf0, 0, 9, 9, 9, 9, 0x80, 0x99, 1, 0, 0, 0, 0, 0]);
        ip.extend([1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
    }
    ip.extend((0..PAYLOAD_BYTES).map(|n| (n * n % 251) as u8));
    let checksum = Some(Checksum { start, offset });
    let header = Header { checksum, gso, gso_size: SEGMENT_BYTES, header_len: 0 };
    let mut bytes = header.to_bytes().to_vec();
    bytes.extend(ip);
    let layout = Layout::parse(&bytes, bytes.len()).unwrap();
    let packet = &mut bytes[Header::LEN..];
    packet::set_lengths(packet, &layout, layout.len);
    packet::set_partial_checksum(packet, &layout, layout.len);
    bytes
}

fn pieces_of(bytes: &[u8], spec: LinkSpec) -> (Arena, Packet, Layout, Vec<Piece>) {
    let mut arena = Arena::new(0, 1 << 24).unwrap();
    let packet = Packet { head: arena.put(bytes).unwrap(), body: Slice::EMPTY };
    let layout = Layout::parse(bytes, bytes.len()).unwrap();
    let mut pieces = Vec::new();
    cut(&mut Link::new(spec, 5), Instant::ZERO, &layout, Ecn::Capable, &mut pieces);
    (arena, packet, layout, pieces)
}

fn bytes_of(arena: &Arena, packet: Packet) -> Vec<u8> {
    [arena.get(packet.head), arena.get(packet.body)].concat()
}

/// Checks one piece and returns its payload.
fn check(bytes: &[u8], kind: Kind, first: usize, all: usize) -> Vec<u8> {
    let layout = Layout::parse(bytes, bytes.len()).unwrap();
    let last = first + layout.segments() == all;
    let ip = &bytes[Header::LEN..];
    let mut whole = ip.to_vec();
    packet::set_lengths(&mut whole, &layout, ip.len());
    packet::set_partial_checksum(&mut whole, &layout, ip.len());
    assert_eq!(whole, ip, "lengths and checksums fit");
    if kind != Kind::Tcp6 {
        assert_eq!(fold(add(0, &ip[..20])), 0xffff);
        assert_eq!(ip[4..6], 0xfffe_u16.wrapping_add(first as u16).to_be_bytes());
    }
    if kind != Kind::Udp4 {
        let tcp = &ip[layout.transport_at..];
        let sequence = 0xffff_f000_u32.wrapping_add(first as u32 * u32::from(SEGMENT_BYTES));
        assert_eq!(tcp[4..8], sequence.to_be_bytes());
        let (cwr, end) = (if first == 0 { 0x80 } else { 0 }, if last { 0x09 } else { 0 });
        assert_eq!(tcp[13], 0x10 | cwr | end);
        let marked = matches!(layout.offload.gso, Gso::Tcp4(Cwr::Set) | Gso::Tcp6(Cwr::Set));
        assert!(layout.segments() == 1 || marked == (first == 0));
    }
    assert_eq!(layout.offload.gso == Gso::None, layout.segments() == 1);
    ip[layout.payload_at..].to_vec()
}

#[test]
fn a_packet_without_events_is_not_split() {
    for kind in KINDS {
        let bytes = super_packet(kind);
        let (mut arena, packet, layout, pieces) = pieces_of(&bytes, LinkSpec::default());
        let [piece] = &pieces[..] else { panic!("{pieces:?}") };
        let made = packet.piece(&mut arena, &layout, piece).unwrap();
        assert_eq!(bytes_of(&arena, made), bytes);
    }
}

#[test]
fn pieces_around_losses_are_valid_packets() {
    for kind in KINDS {
        for every in 2..7 {
            let bytes = super_packet(kind);
            let spec = LinkSpec { loss: LossModel::Periodic(every), ..LinkSpec::default() };
            let (mut arena, packet, layout, pieces) = pieces_of(&bytes, spec);
            let whole = &bytes[Header::LEN + layout.payload_at..];
            let mut seen = 0;
            for piece in &pieces {
                let made = packet.piece(&mut arena, &layout, piece).unwrap();
                let payload =
                    check(&bytes_of(&arena, made), kind, piece.segments.start, layout.segments());
                assert_eq!(payload, whole[piece.segments.start * 1448..][..payload.len()]);
                seen += piece.segments.len();
            }
            assert_eq!(seen, 7 - 7 / every as usize);
        }
    }
}

#[test]
fn a_slow_link_splits_packets_into_short_runs() {
    // A segment of 1500 bytes takes 12.3 us at 1 Gbit/s, and 61.5 us at 200 Mbit/s.
    let spec = |rate| {
        let rate = Some(Rate::from_bits_per_sec(rate));
        LinkSpec { rate, ..LinkSpec::default() }
    };
    let bytes = super_packet(Kind::Tcp4);
    let (mut arena, packet, layout, pieces) = pieces_of(&bytes, spec(1_000_000_000));
    assert_eq!(pieces.len(), 1);
    let pieces = pieces_of(&bytes, spec(200_000_000)).3;
    let segments: Vec<_> = pieces.iter().map(|piece| piece.segments.clone()).collect();
    assert_eq!(segments, [0..2, 2..4, 4..6, 6..7]);
    // A piece can be split again by the next link.
    let made = packet.piece(&mut arena, &layout, &pieces[1]).unwrap();
    let layout = Layout::parse(arena.get(made.head), made.len()).unwrap();
    let mut again = Vec::new();
    let spec = LinkSpec { loss: LossModel::Periodic(2), ..LinkSpec::default() };
    cut(&mut Link::new(spec, 5), Instant::ZERO, &layout, Ecn::Capable, &mut again);
    let made = made.piece(&mut arena, &layout, &again[0]).unwrap();
    check(&bytes_of(&arena, made), Kind::Tcp4, 2, 7);
}

#[test]
fn only_ecn_capable_packets_are_marked() {
    let rate = Some(Rate::from_bits_per_sec(10_000_000_000));
    let spec = LinkSpec { rate, ecn: Some(DataSize::from_bytes(3000)), ..LinkSpec::default() };
    for (tos, marked) in [(2, 3), (1, 3), (0, 0)] {
        let mut bytes = super_packet(Kind::Tcp4);
        bytes[Header::LEN + 1] = tos;
        let (mut arena, packet, layout, pieces) = pieces_of(&bytes, spec.clone());
        let marks: Vec<_> = pieces
            .iter()
            .map(|piece| {
                let made = packet.piece(&mut arena, &layout, piece).unwrap();
                let bytes = bytes_of(&arena, made);
                check(&bytes, Kind::Tcp4, piece.segments.start, 7);
                (piece.segments.clone(), bytes[Header::LEN + 1])
            })
            .collect();
        assert_eq!(marks, [(0..2, tos), (2..7, marked)]);
    }
}

#[test]
fn corruption_is_visible_to_the_checksum_or_hidden_from_it() {
    let spec = LinkSpec { corrupt: Probability::new(1.0), ..LinkSpec::default() };
    for kind in KINDS {
        for corruption in [Corruption::Wire, Corruption::PastChecksum] {
            let bytes = super_packet(kind);
            let (mut arena, packet, layout, pieces) = pieces_of(&bytes, spec.clone());
            assert_eq!(pieces.len(), 7);
            for piece in pieces {
                let sound = packet.piece(&mut arena, &layout, &piece).unwrap();
                let choice = piece.corrupt.unwrap();
                let made = sound.corrupted(&mut arena, corruption, choice).unwrap();
                let (sound, made) = (bytes_of(&arena, sound), bytes_of(&arena, made));
                assert_eq!(made[..Header::LEN], [0; Header::LEN]);
                let valid = has_valid_checksum(&made[Header::LEN..], &layout);
                assert_eq!(valid, corruption == Corruption::PastChecksum && kind == Kind::Udp4);
                assert_ne!(made[Header::LEN..], sound[Header::LEN..]);
            }
        }
    }
}

fn has_valid_checksum(ip: &[u8], layout: &Layout) -> bool {
    let mut copy = ip.to_vec();
    packet::set_partial_checksum(&mut copy, layout, ip.len());
    packet::complete_checksum(&mut copy, layout);
    copy == ip
}

#[test]
fn a_run_is_limited_in_time() {
    let spec = LinkSpec { jitter: Duration::from_millis(5), ..LinkSpec::default() };
    let (.., pieces) = pieces_of(&super_packet(Kind::Tcp4), spec);
    assert_eq!(pieces.len(), 1, "jitter alone does not split a run");
}
