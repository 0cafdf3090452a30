//! The cost of sealing and opening a packet, by cipher, with its bytes in the cache ("hot") and out
//! of it ("cold").
//!
//! Run by `cargo bench -p hikyaku-crypto`. Hot: the same packet again and again, in the first-level
//! cache. Cold: packets one after the other in 256 MB, which exceeds every cache, in the order in
//! which a driver goes through its buffers.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hikyaku_crypto::{
    ClientCredentials, Identity, PeerName, ServerCredentials, Trust, cipher_name,
};
use hikyaku_proto::{CipherId, KeyPair, Session};

const HEADER: [u8; 16] = [1; 16];
/// Payload, trailer and tag of a packet of 1472 bytes.
const BODY: usize = 1456;
const COLD: usize = 256 << 20;
const CIPHERS: [CipherId; 3] =
    [CipherId::Aegis128L, CipherId::Aes128Gcm, CipherId::ChaCha20Poly1305];

/// The first data keys of both ends of a complete handshake.
fn keys(cipher: CipherId) -> [KeyPair; 2] {
    let identity = Identity::generate().expect("an identity");
    let peer = PeerName::new("example.org", 4433).expect("a name");
    let trust = Trust::Pinned(identity.fingerprint());
    let (client, _) = ClientCredentials::new(trust).session(&peer, vec![1]).expect("a session");
    let server = ServerCredentials::new(&identity).session(vec![1]).expect("a session");
    let mut ends = [client, server];
    for turn in 0..6 {
        let (speaker, listener) = (turn % 2, 1 - turn % 2);
        let mut levels = vec![Vec::new()];
        while ends[speaker].write(levels.last_mut().expect("a level")).is_some() {
            levels.push(Vec::new());
        }
        levels.iter().for_each(|bytes| ends[listener].read(bytes).expect("a handshake"));
    }
    ends.map(|mut end| end.data_keys(cipher).expect("data keys").next_pair())
}

fn benches(criterion: &mut Criterion) {
    let mut cold = vec![0x5a; COLD / BODY * BODY];
    for cipher in CIPHERS {
        let [client, server] = keys(cipher);
        let mut group = criterion.benchmark_group(cipher_name(cipher));
        group.throughput(Throughput::Bytes(BODY as u64));
        for (name, memory) in [("hot", BODY), ("cold", cold.len())] {
            let memory = &mut cold[..memory];
            let places = memory.len() / BODY;
            group.bench_function(BenchmarkId::new("seal", name), |bencher| {
                let mut number = 0;
                bencher.iter(|| {
                    let at = number as usize % places * BODY;
                    client.seal.seal(number, &HEADER, &mut memory[at..at + BODY]);
                    number += 1;
                });
            });
            let fill = |memory: &mut [u8]| {
                for (body, number) in memory.chunks_exact_mut(BODY).zip(0..) {
                    client.seal.seal(number, &HEADER, body);
                }
            };
            // Opening overwrites the sealed packet, so only a pass over freshly sealed packets is
            // timed.
            group.bench_function(BenchmarkId::new("open", name), |bencher| {
                bencher.iter_custom(|packets| {
                    let (mut time, mut left) = (std::time::Duration::ZERO, packets);
                    while left > 0 {
                        fill(memory);
                        let count = left.min(places as u64);
                        let begin = std::time::Instant::now();
                        for number in 0..count {
                            let at = number as usize * BODY;
                            let body = &mut memory[at..at + BODY];
                            assert!(server.open.open(number, &HEADER, body).is_some());
                        }
                        time += begin.elapsed();
                        left -= count;
                    }
                    time
                });
            });
        }
        group.finish();
    }
}

criterion_group!(all, benches);
criterion_main!(all);
