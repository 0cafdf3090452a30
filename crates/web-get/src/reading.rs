//! For the fuzzer: every reader of a server's bytes in this crate.

use crate::links::mirrors;
use crate::metalink;
use hikyaku_http::head_of;

/// Passes `bytes` to each reader of a server's bytes. Wrong input is an error and never a panic.
// fuzz: web
pub fn read_anything(bytes: &[u8]) {
    if let Ok(head) = head_of(bytes) {
        let _ = mirrors(&head, &[]);
    }
    let Ok(text) = str::from_utf8(bytes) else { return };
    let _ = metalink::parse(text);
}
