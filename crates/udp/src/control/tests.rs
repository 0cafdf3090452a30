//! What is written reads back, and hostile or truncated buffers end the reading.

use super::*;

#[test]
fn the_layout_is_the_kernels() {
    assert_eq!(HEADER, size_of::<libc::cmsghdr>());
    assert_eq!(size_of::<libc::in_pktinfo>(), 12);
    assert_eq!(size_of::<libc::in6_pktinfo>(), 20);
}

#[test]
fn every_message_fits_at_once() {
    let mut control = Control::new();
    control.push_segment_size(1452);
    control.push_traffic_class(SocketFamily::V6, 0b10);
    control.push_source("2001:db8::1".parse().unwrap());
    let received = parse(control.written());
    assert_eq!(received.ecn, Some(Ecn::Ect0));
    assert_eq!(received.destination, Some("2001:db8::1".parse().unwrap()));
}

#[test]
fn any_cut_of_a_buffer_is_read_without_panic() {
    let mut control = Control::new();
    control.push_traffic_class(SocketFamily::V4, 0b01);
    control.push_source("2001:db8::1".parse().unwrap());
    for end in 0..control.written().len() {
        parse(&control.written()[..end]);
    }
}

#[test]
fn lengths_that_lie_end_the_reading() {
    for length in [0, 1, HEADER - 1, CAPACITY + 1, usize::MAX - 3, usize::MAX] {
        let mut buffer = [0; 64];
        buffer[..ALIGN].copy_from_slice(&length.to_ne_bytes());
        assert_eq!(parse(&buffer), Received::default(), "{length}");
    }
}
