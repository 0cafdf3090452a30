//! The debug output of the handles.

use super::*;

#[test]
fn debug_output_names_the_peer_and_the_end_but_no_secret() {
    let lab = Lab::new();
    let (client, _server) = lab.connect();
    let stream = block_on(client.open_stream()).unwrap();
    let port = lab.listener.local_addr().port().to_string();
    let secret = Secret::generate();
    let mut config = lab.trusting();
    config.secret = Some(secret.clone());
    let open = format!("{client:?} {stream:?} {:?} {:?}", lab.listener, lab.endpoint);
    assert!(open.contains(&port), "{open}");
    assert!(open.contains("close_reason: None"), "{open}");
    client.close(AppCode::DONE, "");
    block_on(client.closed());
    let closed = format!("{client:?}");
    assert!(closed.contains("Local"), "{closed}");
    let settings = format!("{config:?}");
    assert!(!settings.contains(secret.to_hex().as_str()), "{settings}");
    assert!(settings.contains("Secret(..)"), "{settings}");
}
