//! Validation of ECN on paths that drop or mark all ECN-capable packets.

use super::*;

const RTT: Duration = Duration::from_millis(50);
const CALM: Report = Report { arrived: 10, lost: 0, acked: 10, marked: 0, queue: Duration::ZERO };

/// Passes the same report every 10 ms for one second. Returns the number of the report at which
/// validation failed.
fn after(report: Report) -> Option<u64> {
    let mut ecn = EcnValidation::default();
    (0..100).find(|&count| {
        let now = Instant::ZERO + Duration::from_millis(10) * count as u32;
        ecn.on_report(now, RTT, &report) == Verdict::Broken
    })
}

// spec: ecn-2
#[test]
fn a_path_that_drops_ecn_capable_packets_gets_packets_without_ecn() {
    let mut ecn = EcnValidation::default();
    let report = Report { arrived: 0, lost: 16, acked: 1, ..CALM };
    assert_eq!(ecn.marking(), Marking::Ect0);
    assert_eq!(ecn.on_report(Instant::ZERO, RTT, &report), Verdict::Unchanged);
    assert_eq!(ecn.on_report(Instant::ZERO, RTT, &report), Verdict::Broken);
    assert_eq!(ecn.marking(), Marking::NotEct);
    assert_eq!(ecn.on_report(Instant::ZERO, RTT, &report), Verdict::Unchanged);
}

#[test]
fn one_acknowledged_ecn_capable_packet_validates_the_path() {
    let mut ecn = EcnValidation::default();
    let first = Report { arrived: 1, lost: 31, ..CALM };
    assert_eq!(ecn.on_report(Instant::ZERO, RTT, &first), Verdict::Unchanged);
    let lost = Report { arrived: 0, lost: 1000, ..CALM };
    assert_eq!(ecn.on_report(Instant::ZERO, RTT, &lost), Verdict::Unchanged);
    assert_eq!(ecn.marking(), Marking::Ect0);
}

// spec: ecn-2
#[test]
fn ecn_fails_if_all_packets_are_marked_without_a_queue() {
    assert_eq!(after(CALM), None);
    assert!(after(Report { marked: 10, ..CALM }).is_some());
    assert!(after(Report { marked: 9, ..CALM }).is_some());
    // With a queue, marks on nine of ten packets are congestion, to which the sender reacts by
    // sending less.
    assert_eq!(after(Report { marked: 10, queue: Duration::from_millis(5), ..CALM }), None);
    assert_eq!(after(Report { marked: 5, ..CALM }), None);
}
