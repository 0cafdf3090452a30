//! A journal torn or written by anybody: it ends where it stops making sense.
#![no_main]

use hikyaku_transfer::{Journal, Remains, read_earlier};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for bytes in [bytes, &[&b"hikyaku1"[..], bytes].concat()] {
        let files = read_earlier(bytes).into_iter().flatten();
        files.for_each(|(_, file)| assert!(file.written <= file.size));
    }
    // Half of the time as if the head were right, or the fuzzer would seldom get behind it.
    let framed = [Journal::magic(), bytes].concat();
    for bytes in [bytes, &framed] {
        let Ok(journal) = Journal::read(bytes) else { continue };
        assert!(journal.whole <= bytes.len());
        for remains in journal.files.values() {
            if let Remains::Part(part) = remains {
                assert!(part.proven.bytes() <= part.record.size);
                assert!(part.claimed.bytes() <= part.record.size);
            }
        }
        // What is whole is whole without what follows.
        let again = Journal::read(&bytes[..journal.whole]);
        assert_eq!(again.as_ref().map(|journal| journal.whole), Ok(journal.whole));
    }
});
