//! Every way of sealing fits every way of opening, and a changed packet does not open.

use super::*;

const SEALING: [Cipher; 4] =
    [Cipher::Aegis128l, Cipher::Aegis128x2, Cipher::Aes128gcm, Cipher::Chacha20];
const PAYLOAD: [u8; 1000] = [0x5a; 1000];

fn sealed(aead: &Aead, mode: Mode) -> Vec<u8> {
    let mut packet = vec![3; HEADER + PAYLOAD.len() + TRAILER + TAG];
    match mode {
        Mode::Outofplace => aead.seal_from(9, &PAYLOAD, &[1; TRAILER], &mut packet).unwrap(),
        Mode::Inplace | Mode::Copy => {
            let (payload, trailer) = body(&mut packet).split_at_mut(PAYLOAD.len());
            payload.copy_from_slice(&PAYLOAD);
            trailer.fill(1);
            aead.seal_in_place(9, &mut packet).unwrap();
        }
    }
    packet
}

#[test]
fn in_place_and_out_of_place_agree() {
    for cipher in SEALING {
        let aead = Aead::new(cipher).unwrap();
        let mut packet = sealed(&aead, Mode::Inplace);
        assert_eq!(packet, sealed(&aead, Mode::Outofplace), "{cipher:?}");
        let mut plain = vec![0; PAYLOAD.len() + TRAILER];
        aead.open_into(9, &mut packet, &mut plain).unwrap();
        assert_eq!(plain[..PAYLOAD.len()], PAYLOAD);
        aead.open_in_place(9, &mut packet).unwrap();
        assert_eq!(body(&mut packet), plain);
    }
}

#[test]
fn a_changed_packet_does_not_open() {
    for cipher in SEALING {
        let aead = Aead::new(cipher).unwrap();
        let packet = sealed(&aead, Mode::Inplace);
        for place in [0, HEADER, packet.len() - 1] {
            let mut changed = packet.clone();
            changed[place] ^= 1;
            let mut plain = vec![0; PAYLOAD.len() + TRAILER];
            assert!(aead.open_into(9, &mut changed.clone(), &mut plain).is_err(), "{cipher:?}");
            assert!(aead.open_in_place(9, &mut changed).is_err(), "{cipher:?}");
        }
        assert!(aead.open_in_place(10, &mut packet.clone()).is_err(), "{cipher:?}");
    }
}
