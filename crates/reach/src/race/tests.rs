//! The race with attempts that fail.

use super::*;
use crate::dial::Address;
use crate::tcp::{Decisions, Pipes, SILENCE};
use crate::watch::Fate;
use hikyaku_crypto::{ClientCredentials, Identity, Trust};
use std::future::{pending, ready};
use std::net::TcpListener;

/// The error of the attempt over UDP.
#[derive(PartialEq, Eq, Debug)]
enum Udp {
    Silent,
    Refused,
}

/// A call of an address at which the kernel refuses TCP.
fn refused() -> (SocketAddr, Call) {
    let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let key = Identity::generate().unwrap().fingerprint();
    let call = Call {
        address: Address { host: at.ip().to_string(), port: at.port() },
        at: vec![at],
        credentials: ClientCredentials::new(Trust::Pinned(key)),
        patience: Duration::from_secs(30),
        config: hikyaku_pipes::Config::default(),
        pipes: Pipes::Auto,
        silence: SILENCE,
        fate: Fate::default(),
        memory: Memory::Off,
        decisions: Decisions::default(),
    };
    (at, call)
}

fn run(
    udp: impl Future<Output = Result<Connection, Udp>>,
    udp_time: Option<Duration>,
) -> Result<Met, NotMet<Udp>> {
    let (at, call) = refused();
    let race = Race { memory: Memory::Off, at: &[at], closed: ClosedPort::default(), udp_time };
    race.run(udp, call, |error| *error == Udp::Silent)
}

#[test]
fn a_refusal_over_udp_ends_the_race_without_tcp() {
    let ended = run(ready(Err(Udp::Refused)), None);
    assert!(matches!(ended, Err(NotMet::Udp(Udp::Refused))));
}

#[test]
fn silence_over_udp_leaves_it_to_tcp() {
    let ended = run(ready(Err(Udp::Silent)), None);
    let Err(NotMet::Both { udp: Some(Udp::Silent), tcp }) = ended else { panic!("not silent") };
    assert!(matches!(tcp, TcpError::Connect { .. }), "{tcp}");
}

#[test]
fn udp_that_never_ends_is_silent_after_its_time() {
    let ended = run(pending(), Some(Duration::ZERO));
    assert!(matches!(ended, Err(NotMet::Both { udp: None, .. })));
}
