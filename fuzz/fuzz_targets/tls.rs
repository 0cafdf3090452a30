//! Handshake messages of either side, as TLS reads them, and the transport parameters in them.
#![no_main]

use hikyaku_crypto::{ClientCredentials, Identity, PeerName, ServerCredentials, TlsSession, Trust};
use hikyaku_proto::Session;
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

struct Ends {
    identity: Identity,
    /// A client's first flight, for what only comes behind one.
    hello: Vec<u8>,
}

fn client(ends: &Identity) -> TlsSession {
    let peer = PeerName::new("example.org", 4433).expect("a name");
    let trust = Trust::Pinned(ends.fingerprint());
    ClientCredentials::new(trust).session(&peer, vec![1; 20]).expect("a session").0
}

fuzz_target!(|bytes: &[u8]| {
    static ENDS: OnceLock<Ends> = OnceLock::new();
    let ends = ENDS.get_or_init(|| {
        let identity = Identity::generate().expect("an identity");
        let mut hello = Vec::new();
        client(&identity).write(&mut hello);
        Ends { identity, hello }
    });
    let Some((&what, rest)) = bytes.split_first() else { return };
    let server = || ServerCredentials::new(&ends.identity).session(vec![1; 20]).expect("a session");
    let mut session = if what & 1 == 0 { server() } else { client(&ends.identity) };
    if what & 1 == 1 {
        while session.write(&mut Vec::new()).is_some() {}
    }
    // A hello that is nearly right goes further than noise.
    let mut words = rest.to_vec();
    if what & 2 == 2 && what & 1 == 0 {
        words.clone_from(&ends.hello);
        for change in rest.chunks_exact(3) {
            let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % words.len();
            words[at] ^= change[2];
        }
    }
    for part in words.chunks(1 + usize::from(what >> 2) * 40) {
        if session.read(part).is_err() {
            return;
        }
        let mut answer = Vec::new();
        while session.write(&mut answer).is_some() {}
        let _ = (session.peer_params(), session.is_complete(), session.peer_fingerprint());
    }
});
