//! What the gateways of carried TCP flows say, and what programs ask them: a message that can be read is written again as
//! the same.
#![no_main]

use hikyaku_forward::{Answer, Gather, Hello, Host, Open, Report, check, framed};
use hikyaku_proxy::is_request;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(open) = Open::decode(bytes) {
        let Host::Name(name) = &open.target.host else {
            assert_eq!(open.encode(), bytes);
            return;
        };
        // A name that is an address is read as one.
        assert!(name.len() <= 255 && Open::decode(&open.encode()) == Ok(open));
    }
    if let Ok(answer) = Answer::decode(bytes) {
        // Control characters are replaced, which makes a text longer.
        let again = Answer::decode(&answer.encode());
        assert!(again.is_ok_and(|again| again.verdict == answer.verdict));
    }
    if let Ok(hello) = Hello::decode(bytes) {
        assert_eq!(hello.encode(), bytes);
    }
    if let Ok(report) = Report::decode(bytes) {
        assert_eq!(report.encode(), bytes);
    }
    let (mut gather, mut rest) = (Gather::default(), bytes);
    while let Ok((taken, message)) = gather.take(rest) {
        let Some(message) = message else { break };
        assert!(rest[..taken].ends_with(&message) && framed(&message).len() >= taken);
        rest = &rest[taken..];
    }
    if let Ok(Ok(Host::Address(address))) = std::str::from_utf8(bytes).map(Host::parse) {
        let _ = check(address, Default::default());
    }
    is_request(bytes);
});
