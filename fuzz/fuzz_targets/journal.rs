//! A journal torn or written by anybody: it ends where it stops making sense.
#![no_main]

use hikyaku_transfer::{Journal, Remains};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // Half of the time as if the head were right, or the fuzzer would seldom get behind it.
    let framed = [Journal::magic(), bytes].concat();
    for bytes in [bytes, &framed] {
        let Ok(journal) = Journal::read(bytes, [7; 16]) else { continue };
        assert!(journal.whole <= bytes.len());
        for remains in journal.files.values() {
            if let Remains::Part(record, proven) = remains {
                assert!(proven.bytes() <= record.size);
            }
        }
        // What is whole is whole without what follows.
        let again = Journal::read(&bytes[..journal.whole], [7; 16]);
        assert_eq!(again.as_ref().map(|journal| journal.whole), Ok(journal.whole));
    }
});
