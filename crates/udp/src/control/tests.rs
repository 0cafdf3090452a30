//! Encoded messages decode to the same values, and malformed buffers end the decoding.

use super::*;

#[test]
fn the_layout_matches_the_c_structs() {
    assert_eq!(HEADER, size_of::<libc::cmsghdr>());
    assert_eq!(size_of::<libc::in_pktinfo>(), 12);
    assert_eq!(size_of::<libc::in6_pktinfo>(), 20);
}

#[test]
fn all_messages_fit_the_buffer() {
    let mut control = Control::new();
    control.push_segment_size(1452);
    control.push_traffic_class(SocketFamily::V6, 0b10);
    control.push_source("2001:db8::1".parse().unwrap());
    let received = parse(control.written());
    assert_eq!(received.ecn, Some(Ecn::Ect0));
    assert_eq!(received.destination, Some("2001:db8::1".parse().unwrap()));
}

#[test]
fn a_buffer_truncated_anywhere_decodes_without_panic() {
    let mut control = Control::new();
    control.push_traffic_class(SocketFamily::V4, 0b01);
    control.push_source("2001:db8::1".parse().unwrap());
    for end in 0..control.written().len() {
        parse(&control.written()[..end]);
    }
}

#[test]
fn wrong_lengths_end_the_decoding() {
    for length in [0, 1, HEADER - 1, CAPACITY + 1, usize::MAX - 3, usize::MAX] {
        let mut buffer = [0; 64];
        buffer[..ALIGN].copy_from_slice(&system::encoded(length));
        assert_eq!(parse(&buffer), Received::default(), "{length}");
    }
}
