//! Whatever an SFTP server sends: frames, its version, responses with names and metadata.
#![no_main]

use hikyaku_sftp::{Response, Version, read_frame};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = Version::decode(bytes);
    let _ = Response::decode(bytes);
    let (mut stream, mut frame) = (bytes, Vec::new());
    while read_frame(&mut stream, &mut frame).is_ok() {
        let _ = Response::decode(&frame);
    }
});
