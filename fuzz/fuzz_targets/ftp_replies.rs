//! What a GridFTP or FTP server sends: replies, addresses, features, facts and headers of blocks.
#![no_main]

use hikyaku_gridftp::read_anything;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| read_anything(bytes));
