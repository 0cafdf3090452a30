//! Tests of the checks of another host.

use super::*;
use hikyaku_perf::End;

fn host() -> Destination {
    Destination::parse(b"far").unwrap()
}

fn test(drops_local: u64, drops_remote: u64, granted: u64) -> Measured {
    let end = |drops| End { drops, granted_recv_buffer: granted, ..End::default() };
    Measured {
        bits_per_second: 1e9,
        bytes: 1_400_000_000,
        near: end(drops_local),
        far: end(drops_remote),
        ..Measured::default()
    }
}

#[test]
fn the_answer_of_the_other_host_is_told_apart() {
    let own = concat!("hikyaku ", env!("CARGO_PKG_VERSION"), "\n");
    let cases = [
        (own, "", Some(0), State::Ok, Program::Runs),
        ("a start-up file\nhikyaku 0.0.1\n", "", Some(0), State::Note, Program::Runs),
        ("", "", Some(121), State::Fail, Program::Missing),
        ("", "sh: not found", Some(127), State::Fail, Program::Missing),
        (
            "This service allows sftp connections only.\n",
            "",
            Some(1),
            State::Fail,
            Program::Unknown,
        ),
        ("", "", None, State::Fail, Program::Unknown),
    ];
    for (printed, said, code, state, wanted) in cases {
        let (check, found) = program(printed, said, code, &host());
        assert_eq!((check.state, found), (state, wanted), "{check:?}");
        assert_eq!(check.remedy.is_some(), state == State::Fail, "{check:?}");
    }
}

#[test]
fn a_buffer_is_blamed_only_if_it_is_small_and_dropped_datagrams() {
    let of = |up: Measured, down: Measured| Path { up: Some(up), down: Some(down) }.drops("far");
    let small = 212_992;
    let none = of(test(0, 0, small), test(0, 0, small));
    assert_eq!((none.state, none.remedy), (State::Ok, None));
    let far = of(test(0, 20_000, small), test(0, 0, small));
    assert_eq!(far.state, State::Warn);
    assert!(far.remedy.unwrap().contains("on far, as root: sysctl -w net.core.rmem_max="));
    let near = of(test(0, 0, small), test(20_000, 0, small));
    assert!(near.remedy.unwrap().contains("on this machine"));
    let large = of(test(0, 20_000, 16 << 20), test(0, 0, small));
    assert_eq!((large.state, large.remedy), (State::Warn, None));
    let few = of(test(0, 1, small), test(0, 0, small));
    assert_eq!((few.state, few.remedy), (State::Note, None));
}

#[test]
fn a_path_without_udp_is_a_failure_with_a_remedy() {
    let error = ReachError::NoUdp {
        host: "far".to_owned(),
        tried: "192.0.2.1:60001".to_owned(),
        ports: 60_001..=60_999,
        only: String::new(),
    };
    let check = not_measured(&Error::new(error).context("try: other ports"), &host());
    assert_eq!((check.id, check.state), (Id::Udp, State::Fail));
    assert!(check.remedy.unwrap().contains("60001 to 60999"));
}
