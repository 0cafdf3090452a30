//! Copies and sessions by SFTP whose far side answers nothing any more: `--timeout` ends them.

use crate::by_sftp::{has_begun, server};
use crate::common::{random, wait_until};
use std::fs;
use std::process::Stdio;

const TIMEOUT: [&str; 4] = ["--via", "sftp", "--timeout", "5s"];

#[test]
fn a_copy_whose_far_side_falls_silent_is_given_up() {
    for way in ["put", "get"] {
        let sshd = server(&format!("sftp-silent-{way}"));
        fs::write(sshd.at("big"), random(2, 40_000_000)).unwrap();
        fs::create_dir(sshd.at(way)).unwrap();
        let here = |name: &str| sshd.at(name).display().to_string();
        let ends = match way {
            "put" => [here("big"), sshd.far(way)],
            _ => [sshd.far("big"), here(way)],
        };
        let mut command = sshd.cp(&["--retry-for", "0", "-l", "16m", &ends[0], &ends[1]]);
        let mut child = command.args(TIMEOUT).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("progress", || has_begun(&sshd.at(way), 3_000_000));
        sshd.freeze_sessions();
        wait_until("the end", || child.try_wait().unwrap().is_some());
        sshd.end_sessions();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{way}: {said}");
        assert!(said.contains("connection is lost"), "{way}: {said}");
    }
}

#[test]
fn a_session_whose_far_side_falls_silent_is_given_up() {
    let sshd = server("sftp-silent-session");
    fs::write(sshd.at("big"), random(2, 40_000_000)).unwrap();
    let lines = format!("get {} {}\n", sshd.at("big").display(), sshd.at("copy").display());
    fs::write(sshd.at("lines"), lines).unwrap();
    let batch = sshd.at("lines").display().to_string();
    let mut command = sshd.sftp(&["-l", "16m", "-b", &batch]);
    let mut child = command.args(TIMEOUT).arg("far").stderr(Stdio::piped()).spawn().unwrap();
    let length = || fs::metadata(sshd.at("copy")).map_or(0, |found| found.len());
    wait_until("progress", || length() > 3_000_000);
    sshd.freeze_sessions();
    wait_until("the end", || child.try_wait().unwrap().is_some());
    sshd.end_sessions();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("lost"), "{said}");
    // The bytes that came stay.
    assert!(random(2, 40_000_000).starts_with(&fs::read(sshd.at("copy")).unwrap()));
}
