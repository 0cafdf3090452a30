//! Nonce and additional data against published test vectors; forgeries; limits.

use super::*;

const ALL: [CipherId; 3] = [CipherId::Aegis128L, CipherId::Aes128Gcm, CipherId::ChaCha20Poly1305];

/// Key material from the test.
struct GivenMaterial {
    key: Vec<u8>,
    iv: Vec<u8>,
}

impl KeyMaterial for GivenMaterial {
    fn key<const N: usize>(&self) -> Zeroizing<[u8; N]> {
        Zeroizing::new(self.key.as_slice().try_into().unwrap())
    }

    fn iv<const N: usize>(&self) -> Zeroizing<[u8; N]> {
        Zeroizing::new(self.iv.as_slice().try_into().unwrap())
    }
}

fn hex(text: &str) -> Vec<u8> {
    let digit = |c: u8| char::from(c).to_digit(16).unwrap() as u8;
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).map(digit).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

struct Vector {
    cipher: CipherId,
    key: &'static str,
    iv: &'static str,
    packet_number: u64,
    header: &'static str,
    plaintext: &'static str,
    sealed: &'static str,
}

/// RFC 9001, appendix A.3: a server's Initial packet.
const GCM_PACKET: Vector = Vector {
    cipher: CipherId::Aes128Gcm,
    key: "cf3a5331653c364c88f0f379b6067e37",
    iv: "0ac1493ca1905853b0bba03e",
    packet_number: 1,
    header: "c1000000010008f067a5502a4262b50040750001",
    plaintext: "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf73988cfc79825df566d
        c5430b9a045a1200130100002e00330024001d00209d3c940d89690b84d08a60993c144eca684d1081287c834d
        5311bcf32bb9da1a002b00020304",
    sealed: "5a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1
        839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84022f8ef4cdd93795d77d0
        6edbb7aaf2f58891850abbdca3d20398c276456cbc42158407dd074ee",
};

/// RFC 9001, appendix A.5: a short header packet.
const CHACHA_PACKET: Vector = Vector {
    cipher: CipherId::ChaCha20Poly1305,
    key: "c6d98ff3441c3fe1b2182094f69caa2ed4b716b65488960a7a984979fb23e1c8",
    iv: "e0459b3474bdd0e44a41c144",
    packet_number: 654_360_564,
    header: "4200bff4",
    plaintext: "01",
    sealed: "655e5cd55c41f69080575d7999c25a5bfb",
};

/// draft-irtf-cfrg-aegis-aead, appendix A.2, test vector 3. Its nonce is this IV XOR this packet
/// number.
const AEGIS_PACKET: Vector = Vector {
    cipher: CipherId::Aegis128L,
    key: "10010000000000000000000000000000",
    iv: "10000200000000000102030405060708",
    packet_number: 0x0102_0304_0506_0708,
    header: "0001020304050607",
    plaintext: "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
    sealed: "79d94593d8c2119d7e8fd9b8fc77845c5c077a05b2528b6ac54b563aed8efe84
        cc6f3372f6aa1bb82388d695c3962d9a",
};

#[test]
fn published_test_vectors_are_met() {
    for vector in [GCM_PACKET, CHACHA_PACKET, AEGIS_PACKET] {
        let material = GivenMaterial { key: hex(vector.key), iv: hex(vector.iv) };
        let key = packet_key(vector.cipher, &material, 1472);
        let (header, plaintext) = (hex(vector.header), hex(vector.plaintext));
        let mut buffer = plaintext.clone();
        buffer.resize(buffer.len() + TAG_LEN, 0xee);
        key.seal(vector.packet_number, &header, &mut buffer);
        assert_eq!(buffer, hex(vector.sealed), "{:?}", vector.cipher);
        let opened = key.open(vector.packet_number, &header, &mut buffer);
        assert_eq!(opened, Some(plaintext.len()));
        assert_eq!(buffer[..plaintext.len()], plaintext);
    }
}

fn some_key(cipher: CipherId) -> Box<dyn PacketKey> {
    let (key, iv) = match cipher {
        CipherId::Aegis128L => (16, 16),
        CipherId::Aes128Gcm => (16, 12),
        CipherId::ChaCha20Poly1305 => (32, 12),
    };
    packet_key(cipher, &GivenMaterial { key: vec![7; key], iv: vec![9; iv] }, 1472)
}

fn sealed(key: &dyn PacketKey, packet_number: u64, header: &[u8], body: usize) -> Vec<u8> {
    let mut buffer = vec![0x55; body + TAG_LEN];
    key.seal(packet_number, header, &mut buffer);
    buffer
}

#[test]
fn every_flipped_bit_is_detected() {
    for cipher in ALL {
        let key = some_key(cipher);
        let header: Vec<u8> = (0..16).collect();
        let packet = sealed(&*key, 77, &header, 40);
        for bit in 0..packet.len() * 8 {
            let mut bad = packet.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.open(77, &header, &mut bad), None, "{cipher:?}, body bit {bit}");
        }
        for bit in 0..header.len() * 8 {
            let mut bad = header.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let opened = key.open(77, &bad, &mut packet.clone());
            assert_eq!(opened, None, "{cipher:?}, header bit {bit}");
        }
        for bit in 0..64 {
            let opened = key.open(77 ^ 1 << bit, &header, &mut packet.clone());
            assert_eq!(opened, None, "{cipher:?}, packet number bit {bit}");
        }
        assert_eq!(key.open(77, &header, &mut packet.clone()), Some(40));
    }
}

#[test]
fn packets_of_all_lengths_open_completely_or_not_at_all() {
    for cipher in ALL {
        let key = some_key(cipher);
        for len in [0, 1, 15, 16, 17, 1400, 8948, 65_000] {
            let packet = sealed(&*key, 1, b"h", len);
            assert_eq!(key.open(1, b"h", &mut packet.clone()), Some(len));
            let cut = packet.len() - 1;
            assert_eq!(key.open(1, b"h", &mut packet[..cut].to_vec()), None);
        }
        for len in 0..TAG_LEN {
            assert_eq!(key.open(1, b"h", &mut vec![0; len]), None);
        }
    }
}

#[test]
fn a_gcm_key_stays_within_its_block_limit() {
    for (datagram, least, most) in
        [(1472, 28.8, 29.0), (9000, 26.3, 26.4), (DATAGRAM_BYTES_MAX, 23.4, 23.6)]
    {
        let packets = gcm_packets(datagram);
        assert!(((packets as f64).log2()) > least && ((packets as f64).log2()) < most);
        // 2^35.5 squared is 2^71, and 2^71 / 2^128 is 2^-57.
        let blocks = packets * (datagram / 16 + 3);
        assert!((blocks as f64).log2() * 2.0 - 128.0 <= -57.0);
    }
    for cipher in ALL {
        let limit = some_key(cipher).packet_limit();
        assert!((1 << 28..=1 << 36).contains(&limit), "{cipher:?}: {limit}");
    }
}
