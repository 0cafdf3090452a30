//! Lines for people and for programs.

use super::*;
use crate::exit_code::ExitCode;
use std::sync::{Arc, Mutex};

const COUNTS: Counts = Counts {
    total_files: 10,
    total_bytes: 4_000_000_000,
    is_counted: true,
    files: 3,
    bytes: 1_000_000_000,
    kept_bytes: 250_000_000,
};
const PATH: PathFigures = PathFigures {
    sent_packets: 1000,
    lost_packets: 12,
    resent_bytes: 14_440,
    packet: 1444,
    rtt: 0.2,
    queue: 0.0,
    limited_by: LimitedBy::Link,
};

/// A stream whose text the test reads.
#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl Text {
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A board, its standard output and its standard error.
fn board(renderer: Renderer) -> (Board, Text, Text) {
    let (out, err) = (Text::default(), Text::default());
    let streams = Streams {
        out: Box::new(out.clone()),
        err: Box::new(err.clone()),
        stream: Stream::Plain,
        lost: None,
    };
    (Board { renderer, stats_every: None, meters: Vec::new(), next_id: 0, streams }, out, err)
}

fn person() -> Renderer {
    Renderer::Person(Terminal::new(|| 40))
}

fn failure() -> Message {
    Message::Failure(Failed {
        line: "far:a: gone\nb".to_owned(),
        host: Some("far".to_owned()),
        path: "a".to_owned(),
        kind: "not_found".to_owned(),
        text: "gone\nb".to_owned(),
    })
}

fn json(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn a_line_says_how_far_and_how_long() {
    let rate = Some(hikyaku_units::Rate::from_bits_per_sec(800_000_000));
    let line = text::line(&COUNTS, rate, &PathFigures::default());
    assert_eq!(line, " 25 %  1.00 GB of 4.00 GB  3/10 files  800 Mbit/s  0:30 left");
    let line = text::line(&COUNTS, rate, &PATH);
    assert!(line.ends_with("0:30 left  loss 1.2 %  limited by the link"), "{line}");
    assert_eq!((terminal::cut(&line, 9), terminal::cut("short", 80)), (" 25 %  1", "short"));
    assert_eq!(text::clock(3725.0), "1:02:05");
}

#[test]
fn nothing_is_said_of_a_whole_that_is_not_counted() {
    let rate = Some(hikyaku_units::Rate::from_bits_per_sec(800_000_000));
    let walking = Counts { is_counted: false, ..COUNTS };
    let line = text::line(&walking, rate, &PathFigures::default());
    assert_eq!(line, "counting  1.00 GB of at least 4.00 GB  3/10+ files  800 Mbit/s");
    let unknown = Counts { total_files: 0, total_bytes: 0, ..walking };
    let line = text::line(&unknown, rate, &PathFigures::default());
    assert_eq!(line, "counting  1.00 GB  3 files  800 Mbit/s");
    assert!(text::still_line(&unknown, Duration::from_secs(5)).starts_with("1.00 GB  nothing"));
}

#[test]
fn the_summary_counts_what_was_sent() {
    let text = text::summary(&COUNTS, Duration::from_secs(10));
    assert_eq!(text, "3 files, 750.0 MB in 10.0 s, 600 Mbit/s; 250.0 MB did not need to be sent");
}

#[test]
fn a_line_of_figures_is_about_its_interval() {
    let now = PathFigures {
        sent_packets: 2000,
        lost_packets: 22,
        resent_bytes: 43_320,
        rtt: 0.2015,
        queue: 0.0015,
        ..PATH
    };
    assert_eq!(
        text::stats_line(&now, &PATH, 100_000_000, Duration::from_secs(1)),
        "800 Mbit/s, re-sent 20 packets, lost 1.00 %, RTT 201.5 ms, queue 1.5 ms"
    );
}

#[test]
fn the_last_event_has_sums_code_and_error() {
    let end =
        json(&Event::end(&COUNTS, Duration::from_secs(10), ExitCode::Success.into(), None).line());
    assert_eq!((&end["event"], &end["version"]), (&"end".into(), &1.into()));
    assert_eq!((&end["bits_per_second"], &end["exit_code"]), (&600_000_000.into(), &0.into()));
    let took = Duration::from_secs(1);
    let end = json(&Event::end(&COUNTS, took, ExitCode::WillFail.into(), Some("gone")).line());
    assert_eq!((&end["exit_code"], &end["error"]), (&6.into(), &"gone".into()));
}

#[test]
fn a_document_has_the_last_figures_and_lists_of_the_other_events() {
    let gathered: &'static Gathered = Box::leak(Box::new(Gathered::new()));
    let (mut board, out, err) = board(Renderer::Document(gathered));
    let (now, took) = (Instant::now(), Duration::from_secs(10));
    let id = board.add(None, now);
    let own = |text: &str| Message::Event(text.to_owned());
    let messages = [
        failure(),
        Message::Would("x".to_owned()),
        own(r#"{"event":"entry","path":"a","kind":"file"}"#),
        own(r#"{"event":"chunk","connections":4}"#),
    ];
    board.update(id, (COUNTS, PATH), &messages, now);
    board.finish(id, Ending::Done, now);
    assert!(out.take().is_empty() && err.take().contains("far:a: gone"));
    let end = Event::end(&COUNTS, took, ExitCode::WillFail.into(), Some("gone"));
    let text = gathered.document(end).unwrap();
    assert!(
        text.starts_with("{\"format\":1,\"seconds\":10.0,") && text.lines().count() == 1,
        "{text}"
    );
    let document = json(&text);
    assert_eq!((&document["files"], &document["exit_code"]), (&3.into(), &6.into()));
    assert_eq!((&document["error"], &document["would"]), (&"gone".into(), &json(r#"["x"]"#)));
    let failure = &document["failures"][0];
    assert_eq!((&failure["path"], &failure["kind"]), (&"a".into(), &"not_found".into()));
    assert_eq!(document["entries"], json(r#"[{"path":"a","kind":"file"}]"#));
    let absent = ["event", "version", "chunk"];
    assert!(absent.iter().all(|key| document.get(key).is_none()), "{text}");
}

#[test]
fn a_program_gets_events_on_standard_output() {
    let (mut board, out, err) = board(Renderer::Events);
    let now = Instant::now();
    let id = board.add(None, now);
    board.update(id, (COUNTS, PATH), &[failure(), Message::Would("x".to_owned())], now);
    // The next one is not due before 500 ms.
    board.update(id, (COUNTS, PATH), &[], now + Duration::from_millis(499));
    let text = out.take();
    let lines: Vec<_> = text.lines().map(json).collect();
    let kinds: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["failure", "would", "progress"]);
    assert_eq!((&lines[0]["host"], &lines[0]["path"]), (&"far".into(), &"a".into()));
    assert_eq!((&lines[0]["kind"], &lines[0]["text"]), (&"not_found".into(), &"gone\nb".into()));
    assert_eq!(lines[2].get("meter"), None);
    assert_eq!((&lines[2]["lost_percent"], &lines[2]["limited_by"]), (&1.2.into(), &"link".into()));
    assert_eq!(err.take(), "hikyaku: far:a: gone\nb\n");
    board.update(id, (COUNTS, PATH), &[], now + Duration::from_millis(500));
    assert_eq!(out.take().lines().count(), 1);
}

#[test]
fn meters_with_names_are_told_apart() {
    let (mut board, out, _) = board(Renderer::Events);
    let now = Instant::now();
    for name in ["one", "other"] {
        let id = board.add(Some(name.to_owned()), now);
        board.update(id, (COUNTS, PATH), &[], now);
        assert_eq!(json(&out.take())["meter"], name);
    }
}

#[test]
fn a_line_a_second_is_not_written_over() {
    let (mut board, out, err) = board(Renderer::Lines);
    let now = Instant::now();
    let id = board.add(None, now);
    for (millis, lines) in [(0, 0), (999, 0), (1000, 1), (1999, 0), (2000, 1)] {
        board.update(id, (COUNTS, PATH), &[], now + Duration::from_millis(millis));
        assert_eq!(err.take().lines().count(), lines, "{millis}");
    }
    board.finish(id, Ending::Done, now + Duration::from_secs(10));
    assert!(err.take().starts_with("3 files, 750.0 MB in 10.0 s"));
    assert_eq!(out.take(), "");
}

#[test]
fn nobody_is_told_errors_only() {
    let (mut board, out, err) = board(Renderer::Quiet);
    let now = Instant::now();
    let id = board.add(None, now);
    board.update(id, (COUNTS, PATH), &[failure()], now + Duration::from_secs(9));
    board.finish(id, Ending::Done, now + Duration::from_secs(10));
    assert_eq!((out.take().as_str(), err.take().as_str()), ("", "hikyaku: far:a: gone\nb\n"));
}

#[test]
fn the_only_line_of_a_person_is_written_over() {
    let (mut board, _, err) = board(person());
    let now = Instant::now();
    let id = board.add(None, now);
    for _ in 0..2 {
        board.update(id, (COUNTS, PATH), &[], now);
        assert_eq!(err.take(), "\r 25 %  1.00 GB of 4.00 GB  3/10 files  \x1b[K");
    }
    board.update(id, (COUNTS, PATH), &[Message::Remark("slow".to_owned())], now);
    assert!(err.take().starts_with("\r\x1b[Khikyaku: slow\n\r 25 %"));
    board.finish(id, Ending::Untold, now);
    assert_eq!(err.take(), "\r\x1b[K");
}

#[test]
fn several_lines_of_a_person_are_written_over_together() {
    let (mut board, _, err) = board(person());
    let now = Instant::now();
    let [one, other] = ["a", "b"].map(|name| board.add(Some(name.to_owned()), now));
    board.update(one, (COUNTS, PATH), &[], now);
    let first = err.take();
    assert_eq!(first.matches('\n').count(), 1, "the cursor stays in the last line: {first:?}");
    assert!(first.starts_with("\ra:  25 %") && first.contains("\n\rb: counting"), "{first:?}");
    board.update(other, (COUNTS, PATH), &[Message::Remark("slow".to_owned())], now);
    let second = err.take();
    assert!(second.starts_with("\r\x1b[K\x1b[A\r\x1b[Khikyaku: slow\n\ra: "), "{second:?}");
    board.update(other, (COUNTS, PATH), &[], now);
    assert!(err.take().starts_with("\x1b[A\ra: "));
    board.finish(one, Ending::Done, now + Duration::from_secs(10));
    assert!(err.take().ends_with(
        "\r\x1b[Ka: 3 files, 750.0 MB in 10.0 s, 600 Mbit/s; 250.0 MB did not need to be sent\n"
    ));
    board.update(other, (COUNTS, PATH), &[], now);
    assert!(err.take().starts_with("\rb:  25 %"));
}

#[test]
fn a_meter_to_which_nothing_comes_says_so() {
    let (mut board, _, err) = board(Renderer::Lines);
    let now = Instant::now();
    let id = board.add(None, now);
    board.update(id, (COUNTS, PATH), &[], now);
    board.update(id, (COUNTS, PATH), &[], now + Duration::from_secs(3));
    assert!(err.take().contains("nothing has arrived for 3 s"));
}

#[test]
fn the_first_error_of_standard_output_is_kept() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (mut board, _, _) = board(Renderer::Events);
    board.streams.out = Box::new(Full);
    let id = board.add(None, Instant::now());
    board.update(id, (COUNTS, PATH), &[failure(), failure()], Instant::now());
    assert_eq!(board.into_lost().map(|error| error.kind()), Some(io::ErrorKind::StorageFull));
}
