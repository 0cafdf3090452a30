//! What the gateways of carried TCP flows say, and what programs ask them: a message that can be read is written again as
//! the same.
#![no_main]

use hikyaku_forward::{
    Answer, Arrived, Gather, Goal, Hello, Host, Listen, Listening, Open, Report, check, framed,
};
use hikyaku_proxy::is_request;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(open) = Open::decode(bytes) {
        let name = match &open.target {
            Goal::Tcp(target) => match &target.host {
                Host::Name(name) => Some(name.len()),
                Host::Address(_) => None,
            },
            Goal::Socket(_) => None,
        };
        match name {
            None => assert_eq!(open.encode(), bytes),
            // A name that is an address is read as one.
            Some(length) => assert!(length <= 255 && Open::decode(&open.encode()) == Ok(open)),
        }
    }
    if let Ok(answer) = Answer::decode(bytes) {
        // Control characters are replaced, which makes a text longer.
        let again = Answer::decode(&answer.encode());
        assert!(again.is_ok_and(|again| again.verdict == answer.verdict));
    }
    if let Ok(hello) = Hello::decode(bytes) {
        assert_eq!(hello.encode(), bytes);
    }
    if let Ok(listen) = Listen::decode(bytes) {
        assert_eq!(listen.encode(), bytes);
    }
    if let Ok(arrived) = Arrived::decode(bytes) {
        assert_eq!(arrived.encode(), bytes);
    }
    if let Ok(listening) = Listening::decode(bytes) {
        // Control characters are replaced, which makes a text longer.
        let again = Listening::decode(&listening.encode());
        assert!(again.is_ok_and(|again| again.result.is_ok() == listening.result.is_ok()));
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
