//! Connections over loopback.

use super::*;
use crate::{control_of, default_control, info};
use std::io::{Read, Write};
use std::net::Ipv4Addr;

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const PATIENCE: Duration = Duration::from_secs(30);

fn with_buffer(bytes: u64) -> Options {
    Options { buffer: Some(DataSize::from_bytes(bytes)), ..Options::default() }
}

#[test]
fn buffers_are_set_at_both_ends_and_inherited_from_the_listener() {
    let options = with_buffer(65_536);
    let listener = listen(LOOPBACK, &options).unwrap();
    let near = connect(listener.local_addr().unwrap(), &options, PATIENCE).unwrap();
    let (far, _) = listener.accept().unwrap();
    let want = DataSize::from_bytes(65_536);
    for stream in [near, far] {
        assert_eq!(buffers(&stream).unwrap(), Buffers { send: want, receive: want });
    }
}

#[test]
fn a_connection_leaves_from_the_address_and_with_the_control_that_were_chosen() {
    let listener = listen(LOOPBACK, &Options::default()).unwrap();
    let local = IpAddr::from([127, 0, 0, 9]);
    let options =
        Options { local: Some(local), congestion: Some("reno".to_owned()), ..Options::default() };
    let near = connect(listener.local_addr().unwrap(), &options, PATIENCE).unwrap();
    let (far, from) = listener.accept().unwrap();
    assert_eq!(from.ip(), local);
    assert_eq!(control_of(&near).unwrap(), "reno");
    assert_eq!(control_of(&far).unwrap(), default_control().unwrap());
}

#[test]
fn an_unknown_congestion_control_is_refused_with_a_list_of_the_known() {
    let options = Options { congestion: Some("no_such_law".to_owned()), ..Options::default() };
    let error = listen(LOOPBACK, &options).unwrap_err();
    assert!(matches!(error, ConnectError::Control(ControlError::Unknown { .. })), "{error}");
    let text = error.to_string();
    assert!(text.contains("'no_such_law'") && text.contains("reno"), "{text}");
}

#[test]
fn a_port_without_a_listener_refuses() {
    let listener = listen(LOOPBACK, &Options::default()).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = connect(address, &Options::default(), PATIENCE).unwrap_err();
    let ConnectError::Io(error) = error else { panic!("{error}") };
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn what_was_acknowledged_is_known() {
    let listener = listen(LOOPBACK, &Options::default()).unwrap();
    let address = listener.local_addr().unwrap();
    let mut near = connect(address, &Options::default(), PATIENCE).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    near.write_all(&[7; 1000]).unwrap();
    far.read_exact(&mut [0; 1000]).unwrap();
    // The acknowledgement travels with the answer.
    far.write_all(b"!").unwrap();
    near.read_exact(&mut [0]).unwrap();
    let known = info(&near).unwrap();
    assert!(known.acknowledged >= DataSize::from_bytes(1000), "{known:?}");
    assert!(known.rtt > Duration::ZERO && known.window_packets > 0, "{known:?}");
}

#[test]
fn a_reset_connection_does_not_deliver_the_rest() {
    let listener = listen(LOOPBACK, &Options::default()).unwrap();
    let near = connect(listener.local_addr().unwrap(), &Options::default(), PATIENCE).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    reset(near);
    let error = far.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}
