//! Two sockets on loopback.

use super::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

#[test]
fn bytes_count_until_the_other_end_has_them() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut reader, _) = listener.accept().unwrap();
    writer.set_nonblocking(true).unwrap();
    let mut written = 0;
    while let Ok(bytes) = writer.write(&[7; 1 << 20]) {
        written += bytes;
    }
    // The buffers of both ends are full.
    assert!(unacknowledged(&writer).unwrap() > 0);
    let mut all = vec![0; written];
    reader.read_exact(&mut all).unwrap();
    while unacknowledged(&writer).unwrap() > 0 {
        std::thread::yield_now();
    }
    assert!(unacknowledged(std::fs::File::open("/dev/null").unwrap()).is_err());
}
