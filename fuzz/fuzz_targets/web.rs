//! What a web server says, also the server of a bucket, and Metalink files.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    hikyaku_http::read_anything(bytes);
    hikyaku_web_get::read_anything(bytes);
    hikyaku_store_s3::read_anything(bytes);
});
