//! Tests of the contents of a log.

use super::*;
use crate::line::Flow;
use crate::read::read;
use std::fs;

#[test]
fn a_log_has_what_happened_and_what_was_not_told() {
    let dir = std::env::temp_dir().join(format!("hikyaku-recorder-{}", std::process::id()));
    let recorder = Recorder::create(&dir, ("cp", "a to b"), Some(dir.clone())).unwrap();
    let path = recorder.path().to_owned();
    let m = recorder.add_machine("node1:5209", Role::Server);
    recorder.file(FileStage::Begin, b"a\xff\n<b>", Some(3), Some(m));
    let begin = recorder.began;
    // Not due, due, and not due again.
    for millis in [0, 600, 700] {
        recorder.poll(begin + Duration::from_millis(millis), |t, lines| {
            lines.push(Line::Flow(Flow { t, m, sent_bytes: Some(7), ..Flow::default() }));
        });
    }
    recorder.add_untold(2);
    // A program that is killed may leave half a line.
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(dir.join("cut.jsonl"), &whole[..whole.len() - 9]).unwrap();
    assert!(recorder.end(End { exit_code: 5, ..End::default() }).is_none());
    let run = read(&path).unwrap();
    assert_eq!((run.begin.command.as_str(), run.begin.title.as_str()), ("cp", "a to b"));
    assert_eq!(run.machines.len(), 2);
    assert_eq!((run.loads.len(), run.flows.len(), run.files.len()), (1, 1, 1));
    assert_eq!(run.flows[0].t, 0.6);
    assert_eq!(run.files[0].path, "a\u{fffd}\n<b>");
    let end = run.end.unwrap();
    assert_eq!((end.exit_code, end.untold_files), (5, 2));
    let cut = read(&dir.join("cut.jsonl")).unwrap();
    assert_eq!((cut.machines.len(), cut.end, cut.skipped), (2, None, 1));
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn files_beyond_the_limit_are_counted() {
    let dir = std::env::temp_dir().join(format!("hikyaku-many-{}", std::process::id()));
    let recorder = Recorder::create(&dir, ("cp", ""), None).unwrap();
    let path = recorder.path().to_owned();
    recorder.state().files = FILES_MAX - 1;
    (0..3).for_each(|_| recorder.file(FileStage::End, b"a", None, None));
    recorder.end(End::default());
    let run = read(&path).unwrap();
    assert_eq!((run.files.len(), run.end.unwrap().untold_files), (1, 2));
    fs::remove_dir_all(dir).unwrap();
}
