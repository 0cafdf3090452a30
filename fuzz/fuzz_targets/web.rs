//! What a web server says, and Metalink files.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hikyaku_web_get::read_anything(bytes));
