//! Bytes can be sent again until they have arrived, and no longer.

use super::*;
use alloc::vec;
use alloc::vec::Vec;

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
    assert_eq!(out.take_fin(), None);
    out.set_limit(100);
    out.advance(11);
    assert_eq!(out.take_fin(), Some(11));
    assert_eq!(out.take_fin(), None);
    assert!(!out.is_delivered());
    out.on_arrived(0, 11);
    assert!(!out.is_delivered(), "the peer may not know the end");
    out.on_fin_arrived();
    assert!(out.is_delivered());
}
