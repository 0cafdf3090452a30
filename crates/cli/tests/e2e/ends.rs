//! How a failing copy ends: its exit code, its messages, and its JSON events.

use crate::common::{Sshd, random};
use serde_json::Value;
use std::fs::{self, File};
use std::process::{Command, Output};

fn run(command: &mut Command) -> (Output, String) {
    let output = command.output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

/// The last event, which every run writes, and the events before it.
fn events(output: &Output) -> (Value, Vec<Value>) {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut all: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    (all.pop().expect("an event"), all)
}

#[test]
fn copies_end_with_the_documented_exit_codes() {
    let sshd = Sshd::start("ends-codes");
    fs::write(sshd.at("a"), b"a").unwrap();
    fs::create_dir_all(sshd.at("full/a/x")).unwrap();
    let (a, here) = (sshd.at("a").display().to_string(), sshd.at("b").display().to_string());
    let full = sshd.at("full").display().to_string();
    let cases: [(&[&str], i32, &str); 8] = [
        (&[&a, &here], 0, ""),
        (&[&a, &sshd.far("c")], 0, ""),
        (&["--no-such-flag", &a, &here], 1, "no-such-flag"),
        (&[&format!("{a}x"), &here], 6, "no such file or directory"),
        (&[&sshd.far("nothing"), &here], 6, "nothing"),
        (&[&a, &sshd.far("no/such/b")], 6, "no such directory"),
        (&[&a, &full], 6, "is a directory"),
        (&[&a, "broken:b"], 5, "broken: ssh did not log in"),
    ];
    for (arguments, code, text) in cases {
        let (output, said) = run(&mut sshd.cp(arguments));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(text), "{arguments:?}: {said}");
        assert!(!said.contains("os error"), "{said}");
        if arguments[0].starts_with("--") {
            continue;
        }
        let (output, said) = run(sshd.cp(arguments).arg("--json-lines"));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        let (end, _) = events(&output);
        assert_eq!((&end["event"], &end["exit_code"]), (&"end".into(), &code.into()), "{end}");
    }
}

#[test]
fn a_failure_names_host_path_and_kind() {
    let sshd = Sshd::start("ends-names");
    fs::create_dir_all(sshd.at("run7")).unwrap();
    for name in ["a", "b"] {
        fs::write(sshd.at("run7").join(name), random(1, 1000)).unwrap();
    }
    // The target has a directory with the name of the file.
    fs::create_dir_all(sshd.at("into/run7/b/x")).unwrap();
    let (tree, into) = (sshd.at("run7").display().to_string(), sshd.far("into"));
    let (output, said) = run(&mut sshd.cp(&["-r", "--json-lines", &tree, &into]));
    let place = sshd.at("into/run7/b").display().to_string();
    assert!(said.contains(&format!("far:{place}: is a directory")), "{said}");
    let (end, before) = events(&output);
    let failure = before.iter().find(|event| event["event"] == "failure").unwrap();
    assert_eq!((&failure["host"], &failure["path"]), (&"far".into(), &place.as_str().into()));
    assert_eq!(failure["kind"], "is_directory");
    assert_eq!((&end["files"], &end["exit_code"]), (&1.into(), &6.into()), "{end}");
    let (output, _) = run(&mut sshd.cp(&["-r", "--json", &tree, &into]));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let listed = &document["failures"][0];
    assert_eq!((&listed["path"], &listed["kind"]), (&failure["path"], &failure["kind"]));
    assert_eq!((&document["format"], &document["exit_code"]), (&1.into(), &6.into()));
    let (output, _) = run(&mut sshd.cp(&["-r", "-n", "--json", &tree, &into]));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["would"], serde_json::json!(["run7/a"]));
    let (output, said) = run(&mut sshd.cp(&["-r", "-n", "--json-lines", &tree, &into]));
    let (_, before) = events(&output);
    let would: Vec<&Value> = before.iter().filter(|event| event["event"] == "would").collect();
    assert_eq!(would.len(), 1, "{before:?} {said}");
    assert_eq!(would[0]["path"], "run7/a");
}

#[test]
fn a_cause_common_to_many_files_is_reported_once() {
    let sshd = Sshd::start("ends-once");
    fs::create_dir_all(sshd.at("run7/d")).unwrap();
    for n in 0..100 {
        fs::write(sshd.at("run7/d").join(n.to_string()), b"x").unwrap();
    }
    fs::create_dir_all(sshd.at("into/run7")).unwrap();
    fs::write(sshd.at("into/run7/d"), b"a file").unwrap();
    let (tree, into) = (sshd.at("run7").display().to_string(), sshd.at("into"));
    let (output, said) = run(&mut sshd.cp(&["-r", &tree, &into.display().to_string()]));
    assert_eq!(output.status.code(), Some(6), "{said}");
    // The options of ssh have no effect here, which is told.
    let reasons = said.lines().filter(|line| !line.contains("has no effect"));
    assert_eq!(reasons.count(), 2, "{said}");
    assert!(said.contains("run7/d: not a directory"), "{said}");
    assert!(said.contains("100 more could not be copied for these reasons"), "{said}");
    assert_eq!(fs::read(sshd.at("into/run7/d")).unwrap(), b"a file");
}

#[test]
fn a_write_error_on_stdout_is_a_failure_and_a_closed_reader_is_not() {
    let sshd = Sshd::start("ends-output");
    fs::write(sshd.at("a"), b"a").unwrap();
    let (a, b) = (sshd.at("a").display().to_string(), sshd.at("b").display().to_string());
    for flag in ["--json", "-n"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = sshd.cp(&[flag, &a, &b]).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flag}: {said}");
        assert!(said.contains("standard output"), "{flag}: {said}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = sshd.cp(&[flag, &a, &b]).stdout(writer).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{flag}: {said}");
    }
}
