//! The key derivation against values from another implementation, and the independence of
//! generations.

use super::*;

const ALL: [CipherId; 3] = [CipherId::Aegis128L, CipherId::Aes128Gcm, CipherId::ChaCha20Poly1305];

fn chain(cipher: CipherId, side: Side) -> DataChain {
    let secret = Zeroizing::new(core::array::from_fn(|at| at as u8));
    DataChain::new(secret, cipher, side, 1472)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

// spec: key-0
/// Computed by an independent implementation of HMAC-SHA256 from the formula of RFC 5869.
#[test]
fn the_derivation_does_not_change() {
    let expected = [
        [
            "aaf7ee9afcec98cb467bdd2412e2580c",
            "7bfc15a9235c59fd77aef3c3f291f68f",
            "cec0c81781224671baac2ba4f6843c7e",
            "f1f7baa4df905f6279c4284a4d082243",
            "297456d7a5e50e5eaacd76c8dc2b3d0cb912850a58978bc4a80528077a3092fc",
        ],
        [
            "bf10a3deedfe39cd259bdeb70f681c8d",
            "6643270525690133c4a9ae92496cc0b2",
            "2ae85695acafa88c40dfa06c0487ccf2",
            "51bbb7eecfcba4e570d00dc069003e89",
            "75df6543b72c5c79d2944610eeb51c737105583e34d8e9e4b1de576f47b96506",
        ],
    ];
    let mut chain = chain(CipherId::Aegis128L, Side::Client);
    for numbers in expected {
        let secret = chain.secret.clone();
        let generation = Prk::new_less_safe(HKDF_SHA256, secret.as_slice());
        let _ = chain.next_pair();
        let branch = |direction| Branch { generation: &generation, direction };
        let [up, down] = [Direction::ClientToServer, Direction::ServerToClient].map(branch);
        assert_eq!(hex(up.key::<16>().as_slice()), numbers[0]);
        assert_eq!(hex(up.iv::<16>().as_slice()), numbers[1]);
        assert_eq!(hex(down.key::<16>().as_slice()), numbers[2]);
        assert_eq!(hex(down.iv::<16>().as_slice()), numbers[3]);
        assert_eq!(hex(chain.secret.as_slice()), numbers[4]);
    }
}

#[test]
fn both_sides_agree_and_keys_are_independent() {
    for cipher in ALL {
        let mut client = chain(cipher, Side::Client);
        let mut server = chain(cipher, Side::Server);
        let pairs: Vec<_> = (0..4).map(|_| (client.next_pair(), server.next_pair())).collect();
        let seals = pairs.iter().flat_map(|(client, server)| [&client.seal, &server.seal]);
        for (index, seal) in seals.enumerate() {
            let mut packet = [3; 64];
            seal.seal(5, b"header", &mut packet);
            // The server opens what the client sealed, and the other way round.
            let opens = pairs.iter().flat_map(|(client, server)| [&server.open, &client.open]);
            for (other, open) in opens.enumerate() {
                let opened = open.open(5, b"header", &mut packet.clone());
                assert_eq!(opened, (index == other).then_some(48), "{cipher:?} {index} {other}");
            }
        }
    }
}
