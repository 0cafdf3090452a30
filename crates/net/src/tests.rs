//! Whole endpoints over loopback.

use super::blocking::block_on;
use super::*;
use hikyaku_crypto::{Fingerprint, Identity, ServerCredentials, Trust};

fn pair() -> (Listener, Endpoint, Fingerprint) {
    let identity = Identity::generate().unwrap();
    let quiet = EndpointConfig { memory: Memory::Off, ..EndpointConfig::default() };
    let config = ListenerConfig {
        endpoint: quiet.clone(),
        ..ListenerConfig::new(ServerCredentials::new(&identity))
    };
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), config).unwrap();
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), quiet).unwrap();
    (listener, endpoint, identity.fingerprint())
}

#[test]
fn an_echo_comes_back() {
    let (listener, endpoint, fingerprint) = pair();
    let address = listener.local_addr();
    let server = std::thread::spawn(move || {
        block_on(async {
            let connection = listener.accept().await.unwrap();
            let mut stream = connection.accept_stream().await.unwrap();
            while let Some(run) = stream.read_chunk().await.unwrap() {
                stream.write_chunk(run.to_vec().into()).await.unwrap();
            }
            stream.finish();
            stream.delivered().await.unwrap();
        });
    });
    block_on(async {
        let config = ConnectConfig::new(Trust::Pinned(fingerprint));
        let connection = endpoint.connect(address, config).await.unwrap();
        let mut stream = connection.open_stream().await.unwrap();
        stream.write_chunk(Bytes::from_static(b"hello")).await.unwrap();
        stream.finish();
        let mut back = Vec::new();
        while let Some(run) = stream.read_chunk().await.unwrap() {
            back.extend(run.to_vec());
        }
        assert_eq!(back, b"hello");
    });
    server.join().unwrap();
}
