//! What the servers of a Gfarm file system answer, and what its users write.
#![no_main]

use hikyaku_gfarm::{Address, SharedKey, readable};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // A reply cut short is never a whole one of more kinds.
    let whole = readable(bytes);
    assert!(readable(&bytes[..bytes.len() / 2]) <= whole);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = SharedKey::parse(text);
    if let Some(address) = Address::parse(text) {
        assert_eq!(Address::parse(&address.to_string()), Some(address));
    }
});
