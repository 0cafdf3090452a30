//! How endpoints end: `shutdown`, and what a drop leaves to the driver thread.

use super::failures::far_away;
use super::*;
use std::net::UdpSocket;

/// An endpoint whose drop does not block.
fn detached() -> Endpoint {
    Endpoint::bind("127.0.0.1:0".parse().unwrap(), EndpointConfig::default()).unwrap()
}

/// Both ends of a connection of `endpoint` whose datagrams take 300 ms each way.
fn connect_far(lab: &Lab, endpoint: &Endpoint) -> (Connection, Connection) {
    let address = far_away(lab.listener.local_addr(), Duration::from_millis(300));
    let client = block_on(endpoint.connect(address, lab.trusting())).unwrap();
    (client, block_on(lab.listener.accept()).unwrap())
}

fn is_done(reason: &CloseReason) -> bool {
    matches!(reason, CloseReason::Peer { code: code::DONE, .. })
}

#[test]
fn a_shutdown_waits_until_the_peer_has_acknowledged_the_close() {
    let lab = Lab::new();
    let endpoint = detached();
    let (client, server) = connect_far(&lab, &endpoint);
    let address = endpoint.local_addr();
    block_on(endpoint.shutdown());
    let reason = server.close_reason().expect("the close has arrived");
    assert!(is_done(&reason), "{reason}");
    assert_eq!(client.close_reason(), Some(CloseReason::Local));
    UdpSocket::bind(address).expect("the port is free again");
}

#[test]
fn a_shutdown_first_delivers_what_was_finished() {
    let lab = Lab::new();
    let endpoint = detached();
    let (client, server) = connect_far(&lab, &endpoint);
    let mut stream = block_on(client.open_stream()).unwrap();
    block_on(send_pattern(stream.halves().0, 1_000_000));
    drop((stream, client));
    block_on(endpoint.shutdown());
    let mut stream = block_on(server.accept_stream()).unwrap();
    assert_eq!(block_on(receive_pattern(stream.halves().1)).unwrap(), 1_000_000);
}

#[test]
fn a_drop_leaves_the_close_to_the_driver_thread() {
    let lab = Lab::new();
    let endpoint = detached();
    let (client, server) = connect_far(&lab, &endpoint);
    drop(endpoint);
    assert_eq!(server.close_reason(), None, "the close is on its way for 300 ms");
    let reason = block_on(server.closed());
    assert!(is_done(&reason), "{reason}");
    assert_eq!(block_on(client.closed()), CloseReason::Local);
}

#[test]
fn a_shutdown_that_is_given_up_goes_on_without_its_future() {
    let lab = Lab::new();
    let endpoint = detached();
    let (_client, server) = connect_far(&lab, &endpoint);
    let mut shutdown = Box::pin(endpoint.shutdown());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(shutdown.as_mut().poll(&mut context).is_pending());
    drop(shutdown);
    let reason = block_on(server.closed());
    assert!(is_done(&reason), "{reason}");
}

#[test]
fn a_listener_shuts_down_and_its_clients_know() {
    let Lab { listener, endpoint, fingerprint } = Lab::new();
    let config = ConnectConfig::new(Trust::Pinned(fingerprint));
    let client = block_on(endpoint.connect(listener.local_addr(), config)).unwrap();
    let server = block_on(listener.accept()).unwrap();
    block_on(listener.shutdown());
    assert_eq!(server.close_reason(), Some(CloseReason::Local));
    let reason = block_on(client.closed());
    assert!(is_done(&reason), "{reason}");
}
