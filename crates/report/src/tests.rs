//! The page as a whole.

use super::*;
use hikyaku_run_log::{
    Begin, End, FileLine, FileStage, Flow, Load, Machine, MachineId, Point, Role,
};
use std::fs;

/// A name of a file or machine that an attacker has chosen.
const ATTACK: &str =
    "</title></style><script>alert(1)</script><img src=x onerror='a()'>\" onload=\"a()\u{202e}";

fn hostile(title: &str) -> Run {
    let (here, there) = (MachineId(0), MachineId(1));
    let machine = |m, role| Machine { m, name: format!("{ATTACK}{}", m.0), role };
    let mut run = Run {
        begin: Begin { title: title.to_owned(), began: ATTACK.to_owned(), ..Begin::default() },
        machines: vec![machine(here, Role::Client), machine(there, Role::Server)],
        points: vec![Point { target_bits_per_second: 1e6, ..Point::default() }],
        end: Some(End { t: 5.0, ..End::default() }),
        ..Run::default()
    };
    for n in 0..10_u32 {
        let t = f64::from(n) / 2.0;
        let mut flow =
            Flow { t, m: there, received_bytes: Some(u64::from(n) * 1_000_000), ..Flow::default() };
        flow.sent_packets = Some(u64::from(n) * 1000);
        (flow.lost_packets, flow.resent_bytes) = (Some(u64::from(n)), Some(u64::from(n) * 1400));
        (flow.rtt_ms, flow.queue_ms) = (Some(150.0), Some(0.5));
        flow.limited_by = Some(ATTACK.to_owned());
        run.flows.push(flow);
        for m in [here, there] {
            let mut load = Load { t, m, cpu_percent: Some(50.0), ..Load::default() };
            (load.memory_used_bytes, load.memory_total_bytes) = (Some(1 << 30), Some(4 << 30));
            (load.disk_free_bytes, load.disk_total_bytes) = (Some(1 << 40), Some(2 << 40));
            load.disk_busy_percent = Some(5.0);
            run.loads.push(load);
        }
    }
    for (t, stage) in [(0.5, FileStage::Begin), (4.0, FileStage::End)] {
        let path = ATTACK.to_owned();
        run.files.push(FileLine { t, stage, path, bytes: Some(9_000_000), m: Some(there) });
    }
    run
}

#[test]
fn no_text_of_a_log_becomes_markup() {
    let page = page::page(&[hostile(ATTACK), hostile("b")], &[ATTACK.to_owned()]);
    for markup in ["<script", "<img", "</style><", " onload=\"", "onerror='", "\u{202e}"] {
        assert!(!page.contains(markup), "{markup}");
    }
    assert!(page.matches("&lt;script&gt;").count() > 10);
    // The policy that forbids loading and running anything comes before all other content.
    let policy = page.find("default-src 'none'").unwrap();
    assert!(policy < page.find("<title>").unwrap());
    assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("url("));
}

#[test]
fn a_page_has_a_chart_for_whatever_was_sampled() {
    let page = page::page(&[hostile("a")], &[]);
    for title in [
        "Rate of all",
        "Retransmissions",
        "Packets declared lost",
        "Round-trip time",
        "Delay in queues",
        "Files",
        "Processors",
        "Memory in use",
        "Disk busy",
        "Disk in use",
        "Measured rate against target rate",
    ] {
        assert!(page.contains(&format!("<figcaption>{title} <small>")), "{title}");
    }
    assert!(!page.contains("<h2>Comparison"), "one run has nothing beside it");
    assert!(!page.contains("NaN") && !page.contains("inf "), "numbers that are none");
    // A run of nothing is a page as well.
    assert!(page::page(&[Run::default()], &[]).contains("the log has no end"));
}

#[test]
fn several_runs_are_compared_and_older_ones_left_out() {
    let dir = std::env::temp_dir().join(format!("hikyaku-report-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    for name in ["1", "2", "3"] {
        let line = format!(
            "{{\"type\":\"run\",\"version\":1,\"command\":\"cp\",\"title\":\"run {name}\",\"program\":\"\",\"began\":\"\",\"began_unix\":0}}\n"
        );
        fs::write(dir.join(format!("{name}.jsonl")), line).unwrap();
    }
    fs::write(dir.join("4.jsonl"), "no log").unwrap();
    let (found, left_out) = runs(std::slice::from_ref(&dir), 3).unwrap();
    let titles: Vec<&str> = found.iter().map(|run| run.begin.title.as_str()).collect();
    assert_eq!((titles, left_out.len()), (vec!["run 2", "run 3"], 2));
    let page = page::page(&found, &left_out);
    assert!(page.contains("<h2>Comparison") && page.contains("1 older runs"), "{page}");
    let target = dir.join("page.html");
    write(&target, &page).unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), page);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 5, "no draft is left");
    fs::remove_dir_all(dir).unwrap();
}
