//! Tests of parsing the number and interval of flows.

use super::*;

#[test]
fn flows_and_their_interval_are_parsed() {
    let spec = |flows, seconds| RivalSpec { flows, every: Duration::from_secs(seconds) };
    assert_eq!("4".parse(), Ok(spec(4, 0)));
    assert_eq!("4:100s".parse(), Ok(spec(4, 100)));
    assert_eq!("0".parse(), Ok(spec(0, 0)));
    for wrong in ["", "-1", "65", "4:", "4:100", "tcp:4", "1.5"] {
        assert!(wrong.parse::<RivalSpec>().is_err(), "{wrong}");
    }
}
