//! The keys detect every change of a packet.

use super::*;

#[test]
fn any_two_flipped_bits_of_a_packet_are_detected() {
    let keys = SimSession::data_pair(Side::Client, 0);
    let header = [7; 13];
    let mut packet: Vec<u8> = (0..48).collect();
    keys.seal.seal(5, &header, &mut packet);
    let opener = SimSession::data_pair(Side::Server, 0).open;
    assert!(opener.open(5, &header, &mut packet.clone()).is_some());
    for first in 0..packet.len() * 8 {
        for second in 0..first {
            let mut changed = packet.clone();
            for bit in [first, second] {
                changed[bit / 8] ^= 1 << (bit % 8);
            }
            assert!(opener.open(5, &header, &mut changed).is_none(), "bits {first} and {second}");
        }
    }
}
