//! Tests of `hikyaku perf --bidir` with both ends on loopback.

use crate::common::perf::{Server, number, report};
use serde_json::Value;
use std::io::Read;

const TEST_BYTES: f64 = 20_971_520.0;

#[test]
fn every_byte_of_both_directions_is_counted_once() {
    let server = Server::start(&[]);
    for (options, streams) in
        [("--bidir -n 20M -b 400M", 1), ("--bidir -n 20M -b 200M -P 2 --streams object", 2)]
    {
        let report = server.report(&options.split(' ').collect::<Vec<_>>());
        assert_eq!(report["start"]["test_start"]["bidir"], 1, "{options}");
        let connected = report["start"]["connected"].as_array().unwrap();
        let sockets: Vec<u64> = connected.iter().map(|c| c["socket"].as_u64().unwrap()).collect();
        assert_eq!(sockets, (1..=2 * streams).collect::<Vec<_>>(), "{options}");
        let ends = report["end"]["streams"].as_array().unwrap();
        let of = |end: &Value, key: &str| end["receiver"][key].as_f64().unwrap();
        for (way, name) in [(0, "sum_received"), (1, "sum_received_bidir_reverse")] {
            assert_eq!(number(&report, &format!("/end/{name}/bytes")), TEST_BYTES, "{options}");
            let own = &ends[way * streams as usize..][..streams as usize];
            assert_eq!(
                own.iter().map(|end| of(end, "bytes")).sum::<f64>(),
                TEST_BYTES,
                "{options}"
            );
        }
        for name in ["sum", "sum_bidir_reverse"] {
            let intervals = report["intervals"].as_array().unwrap();
            let bytes = intervals.iter().filter_map(|interval| interval[name]["bytes"].as_f64());
            assert_eq!(bytes.sum::<f64>(), TEST_BYTES, "{options} {name}");
        }
        assert!(number(&report, "/end/sum_sent/bytes") >= TEST_BYTES);
        assert!(number(&report, "/end/sum_sent_bidir_reverse/bytes") >= TEST_BYTES);
        let sender = |name: &str| &report["end"][name]["sender"];
        assert_eq!(
            (sender("sum_sent"), sender("sum_sent_bidir_reverse")),
            (&true.into(), &false.into())
        );
        // Known to the far side only, which sends. The smallest round trip on loopback, without the time for which the
        // acknowledgement waited, may be nothing.
        assert!(number(&report, "/end/bidir_reverse/rtt_ms") > 0.0);
    }
}

#[test]
fn both_directions_run_at_the_same_time() {
    let server = Server::start(&[]);
    let report = server.report(&["--bidir", "-t", "1", "-i", "0.2", "-b", "20M"]);
    let intervals = report["intervals"].as_array().unwrap();
    let moved =
        |interval: &&Value, name: &str| interval[name]["bytes"].as_f64().unwrap_or(0.0) > 0.0;
    let both = |interval: &&Value| moved(interval, "sum") && moved(interval, "sum_bidir_reverse");
    assert!(intervals.iter().filter(both).count() >= 3, "{intervals:#?}");
    for name in ["sum_received", "sum_received_bidir_reverse"] {
        let rate = number(&report, &format!("/end/{name}/bits_per_second"));
        assert!((1e6..=21e6).contains(&rate), "{name}: {rate}");
    }
}

#[test]
fn the_table_of_both_directions_fits_into_80_columns() {
    let server = Server::start(&[]);
    let output = server.run(&["--bidir", "-t", "1", "-i", "0.3", "-O", "0.3", "-P", "2"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    let head = lines.iter().position(|line| line.ends_with(" queue    lost")).unwrap();
    assert!(
        lines[..head].iter().any(|line| line.starts_with("TX ") && line.contains(" -> ")),
        "{text}"
    );
    assert!(
        lines[..head].iter().any(|line| line.starts_with("RX ") && line.contains(" <- ")),
        "{text}"
    );
    assert_eq!(lines.iter().filter(|line| line.contains("RTT ms")).count(), 1, "{text}");
    for way in ["TX", "RX"] {
        let sums = lines.iter().filter(|line| line.starts_with(&format!("{way} [SUM]"))).count();
        assert!(sums >= 3, "{text}");
        // The result has a line for each connection, under the number that it has in the table.
        let result = lines.iter().skip_while(|line| !line.contains("- - -"));
        let ids = if way == "TX" { ["[  1]", "[  2]"] } else { ["[  3]", "[  4]"] };
        for id in ids {
            let is_its = |line: &&&str| {
                line.starts_with(&format!("{way} {id}")) && line.ends_with("  receiver")
            };
            assert_eq!(result.clone().filter(is_its).count(), 1, "{text}");
        }
        assert!(
            lines.iter().any(|line| line.starts_with(way) && line.ends_with("  receiver")),
            "{text}"
        );
    }
    let table = lines[head..].iter().take_while(|line| !line.contains("- - -"));
    assert!(table.clone().all(|line| line.len() <= 80), "{text}");
    assert!(lines.last().unwrap().starts_with("both ways: "), "{text}");
    assert_eq!(
        lines.iter().filter(|line| line.contains("first use of this server")).count(),
        1,
        "{text}"
    );
}

#[test]
fn events_name_the_direction() {
    let server = Server::start(&[]);
    let output = server.run(&["--bidir", "-t", "0.5", "-i", "0.2", "--json-stream"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| events.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
    assert_eq!((of("start").len(), of("end").len()), (1, 1), "{text}");
    for name in ["sum", "sum_bidir_reverse"] {
        assert!(of("interval").iter().any(|event| event["data"][name].is_object()), "{text}");
    }
    assert!(of("end")[0]["data"]["bidir_reverse"].is_object(), "{text}");
}

#[test]
fn a_one_off_server_serves_both_tests_of_a_pair() {
    let mut server = Server::start(&["-1"]);
    let report = server.report(&["--bidir", "-n", "20M"]);
    assert_eq!(number(&report, "/end/sum_received_bidir_reverse/bytes"), TEST_BYTES);
    assert!(server.child.wait().unwrap().success());
    let mut rest = String::new();
    server.lines.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("[1] ") && rest.contains("[2] "), "{rest}");
}

#[test]
fn a_pair_is_refused_if_one_of_its_tests_is() {
    let server = Server::start(&["--max-tests", "1"]);
    let output = server.run(&["--bidir", "-t", "1"]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("refuses the test"), "{text}");
    assert!(!text.contains("could not begin"), "{text}");
    // The server accepts the next test.
    assert_eq!(
        number(&report(&server.run(&["-n", "20M", "-J"])), "/end/sum_received/bytes"),
        TEST_BYTES
    );
}
