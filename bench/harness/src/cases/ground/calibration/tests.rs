//! What other programs print.

use super::*;

#[test]
fn pings_are_read() {
    let said = "64 bytes from 10.77.1.1: icmp_seq=1 ttl=64 time=200.3 ms\n\
                64 bytes from 10.77.1.1: icmp_seq=2 ttl=64 time=200.1 ms\n\
                64 bytes from 10.77.1.1: icmp_seq=3 ttl=64 time=200 ms\n\
                rtt min/avg/max/mdev = 1/2/3/4 ms\n";
    assert_eq!(median_ping(said), Some(200.1));
    assert_eq!(median_ping(""), None);
}

#[test]
fn a_full_rate_is_off_by_nothing() {
    let row = rate_row(tcp_fits(1e9), 1e9);
    assert_eq!(row.value("measured").map(f64::round), Some(1000.0));
    assert!(row.value("off by").unwrap() < 1e-9);
}
