//! Bytes are available for retransmission until they are acknowledged, and no longer.

use super::*;
use alloc::vec;
use alloc::vec::Vec;

const STREAM: StreamId = StreamId(4);

#[test]
fn bytes_are_kept_until_they_arrive() {
    let mut out = Outgoing::new(1000);
    let all: Vec<u8> = (0..=255).cycle().take(300).collect();
    for part in all.chunks(70) {
        out.write(Bytes::copy_from_slice(part));
    }
    assert_eq!(out.sendable(), Some((0, 300)));
    let mut buf = vec![0; 150];
    assert!(out.reader(60).copy(&mut buf));
    assert_eq!(buf, all[60..210]);
    out.on_arrived(70, 70);
    assert!(!out.reader(60).copy(&mut buf), "70..140 has been let go");
    assert!(out.reader(60).copy(&mut buf[..10]));
    assert!(out.missing(60, 100).eq([(60, 70), (140, 160)]));
}

#[test]
fn the_fin_follows_the_last_byte() {
    let mut out = Outgoing::new(5);
    out.write(Bytes::from_static(b"hello world"));
    out.finish();
    assert_eq!(out.sendable(), Some((0, 5)));
    out.advance(5);
    assert_eq!(out.sendable(), None, "held by the limit");
    assert_eq!(out.take_fin(STREAM), None);
    out.set_limit(100);
    out.advance(11);
    assert_eq!(out.take_fin(STREAM), Some(Frame::Fin { stream: STREAM, size: 11 }));
    assert_eq!(out.take_fin(STREAM), None);
    assert!(!out.is_delivered());
    out.on_arrived(0, 11);
    assert!(!out.is_delivered(), "the peer may not know the end");
    out.on_fin_arrived();
    assert!(out.is_delivered());
}

#[test]
fn a_stream_ended_with_a_code_sends_it_after_the_last_byte() {
    let mut out = Outgoing::new(1000);
    out.write(Bytes::from_static(b"hello"));
    out.break_off(7);
    out.write(Bytes::from_static(b" world"));
    assert_eq!(out.take_fin(STREAM), None);
    out.advance(5);
    assert_eq!(out.take_fin(STREAM), Some(Frame::ResetAt { stream: STREAM, code: 7, size: 5 }));
}

#[test]
fn a_cut_stream_ends_with_what_was_sent() {
    let mut out = Outgoing::new(1000);
    for _ in 0..3 {
        out.write(Bytes::from_static(b"hello"));
    }
    out.advance(7);
    assert_eq!(out.cut(), Some(7));
    assert_eq!((out.sendable(), out.unsent()), (None, 0));
    assert!(out.reader(5).copy(&mut [0; 2]), "what was sent can be sent again");
    assert_eq!(out.take_fin(STREAM), Some(Frame::Fin { stream: STREAM, size: 7 }));
    assert_eq!(out.cut(), None, "the peer knows the size");
    out.on_arrived(0, 7);
    out.on_fin_arrived();
    assert!(out.is_delivered());
}
