//! Reports as the programs print them.

use super::*;

#[test]
fn perfs_report_is_read() {
    let text = r#"{"start":{"since_first_packet":0.31,"warnings":["small"]},
        "intervals":[
            {"streams":[{"start":0,"end":0.5,"bytes":10},{"start":0,"end":0.5,"bytes":20}],
             "sum":{"start":0,"end":0.5,"bytes":30}},
            {"streams":[{"start":0.5,"end":1,"bytes":30},{"start":0.5,"end":1,"bytes":40}],
             "sum":{"start":0.5,"end":1,"bytes":70}}],
        "end":{"sum_received":{"seconds":1.0,"bytes":100},
            "cpu":{"local_seconds":0.5,"remote_seconds":0.25},"limited_by":"link",
            "max_rss_local_bytes":7,"max_rss_remote_bytes":9}}"#;
    let transfer = Transfer::of_perf(text).unwrap();
    assert_eq!((transfer.bytes, transfer.seconds, transfer.whole()), (100.0, 1.0, 800.0));
    assert_eq!(transfer.goodput.second_half(1.0), 70.0 * 8.0 * 2.0);
    let ours = transfer.ours;
    assert_eq!((ours.since_first_packet, ours.limited_by.as_str()), (0.31, "link"));
    assert_eq!(ours.warnings, ["small"]);
    assert_eq!(ours.streams[1].mean(0.0, 1.0), 60.0 * 8.0);
    assert_eq!((ours.client.cpu_seconds, ours.server.rss_bytes), (0.5, 9.0));
}

#[test]
fn a_failure_is_not_a_figure() {
    assert!(Transfer::of_perf(r#"{"error":"refused"}"#).is_err());
    assert!(Transfer::of_perf("{}").is_err());
    assert!(Transfer::of_iperf3(r#"{"error":"unable to connect"}"#, "").is_err());
}

#[test]
fn others_are_read_as_well() {
    let peer = r#"{"intervals":[{"start":0,"end":0.2,"bytes":25}],"bytes":25,"seconds":0.2,
        "cpu_seconds":0.1,"error":"too many gaps"}"#;
    let transfer = Transfer::of_peer(peer).unwrap();
    assert_eq!(
        (transfer.whole().round(), transfer.error.as_deref()),
        (1000.0, Some("too many gaps"))
    );
    let iperf3 = r#"{"intervals":[],"end":{"sum_received":{"seconds":2,"bytes":250}}}"#;
    let server = r#"{"intervals":[{"sum":{"start":0,"end":1,"bytes":100}}]}"#;
    let transfer = Transfer::of_iperf3(iperf3, server).unwrap();
    assert_eq!((transfer.whole(), transfer.goodput.mean(0.0, 1.0)), (1000.0, 800.0));
    assert_eq!(Transfer::of_iperf3(iperf3, "killed").unwrap().whole(), 1000.0);
    let raw = r#"{"end":"recv","seconds":2.0,"gbit_per_s":9.0}"#;
    assert_eq!(Transfer::of_rawloop(raw).unwrap().whole().round(), 9e9);
}
