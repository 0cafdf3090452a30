//! `-`, FIFOs and open descriptors as sources and targets, through a real ssh server.

use crate::common::{Sshd, partials, random, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;

/// Larger than the pipe, the queued messages and the receiver's initial window together, in bytes.
const LONG_BYTES: usize = 40_000_000;

fn spawn(mut command: Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs the command with this standard input. Returns its exit code, standard output and standard
/// error.
fn piped(command: Command, input: Vec<u8>) -> (Option<i32>, Vec<u8>, String) {
    let mut child = spawn(command);
    let mut stdin = child.stdin.take().unwrap();
    // The program may have ended before it has read all its input.
    let writer = thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), output.stdout, said)
}

#[test]
fn standard_input_and_output_can_be_copied_to_and_from_the_far_side() {
    let sshd = Sshd::start("pipes");
    for len in [0, 5, 3_000_000] {
        let (code, _, said) = piped(sshd.cp(&["-", &sshd.far("b")]), random(1, len));
        assert_eq!(code, Some(0), "{said}");
        assert!(fs::read(sshd.at("b")).unwrap() == random(1, len));
        let (code, out, said) = piped(sshd.cp(&[&sshd.far("b"), "-"]), Vec::new());
        assert_eq!(code, Some(0), "{said}");
        assert!(out == random(1, len));
    }
    // On the far side standard input and output carry the copy itself.
    let (code, out, said) = piped(sshd.cp(&["far:/dev/stdin", "-"]), Vec::new());
    assert!(code != Some(0) && out.is_empty(), "{code:?} {said}");
    assert!(said.contains("it carries the copy itself"), "{said}");
    // A file named `-` has to be given with its directory.
    fs::write(sshd.at("-"), b"dash").unwrap();
    let mut command = sshd.cp(&["./-", &sshd.far("c")]);
    command.current_dir(sshd.at(""));
    assert_eq!(piped(command, Vec::new()).0, Some(0));
    assert_eq!(fs::read(sshd.at("c")).unwrap(), b"dash");
}

#[test]
fn a_fifo_on_the_far_side_can_be_copied_to_a_third_host() {
    let sshd = Sshd::start("pipes-fifo");
    let fifo = sshd.at("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for (target, there) in [(sshd.at("here").display().to_string(), "here"), (sshd.far("d"), "d")] {
        let fill = thread::spawn({
            let fifo = fifo.clone();
            move || fs::write(fifo, random(2, 3_000_000)).unwrap()
        });
        let source = sshd.far("fifo");
        let (code, _, said) = piped(sshd.cp(&["-q", &source, &target]), Vec::new());
        fill.join().unwrap();
        assert_eq!((code, &*said), (Some(0), ""));
        assert!(fs::read(sshd.at(there)).unwrap() == random(2, 3_000_000));
    }
}

#[test]
fn an_interrupted_pipe_is_not_retried_and_leaves_no_file() {
    let sshd = Sshd::start("pipes-cut");
    let mut child = spawn(sshd.cp(&["-", &sshd.far("b")]));
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&random(3, LONG_BYTES)).unwrap();
    wait_until("its unfinished file", || !partials(&sshd.at("")).is_empty());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let code = child.wait().unwrap().code();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_ne!(code, Some(0), "{said}");
    assert!(
        said.contains("stopped; the bytes that went through the pipe cannot be copied again"),
        "{said}"
    );
    wait_until("its end over there", || partials(&sshd.at("")).is_empty());
    assert!(!sshd.at("b").exists());
}

/// The processes of a far side whose state is in this directory.
fn far_sides(state: &std::path::Path) -> Vec<i32> {
    let wanted = format!("XDG_STATE_HOME={}", state.display());
    let is_it = |process: &std::path::Path| {
        let read = |name: &str| fs::read(process.join(name)).unwrap_or_default();
        let has =
            |bytes: Vec<u8>, word: &str| bytes.split(|&b| b == 0).any(|w| w == word.as_bytes());
        has(read("cmdline"), "serve") && has(read("environ"), &wanted)
    };
    let all = fs::read_dir("/proc").unwrap().flatten().filter(|entry| is_it(&entry.path()));
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[test]
fn a_far_side_that_waits_for_the_reader_of_a_fifo_ends_with_the_near_side() {
    let sshd = Sshd::start("pipes-no-reader");
    assert!(Command::new("mkfifo").arg(sshd.at("fifo")).status().unwrap().success());
    fs::write(sshd.at("a"), "a").unwrap();
    let source = sshd.at("a").display().to_string();
    let mut near = spawn(sshd.cp(&[&source, &sshd.far("fifo")]));
    wait_until("the far side", || !far_sides(&sshd.at("state")).is_empty());
    // Long enough for it to be told of its target.
    thread::sleep(std::time::Duration::from_secs(2));
    assert!(near.try_wait().unwrap().is_none(), "nobody reads the FIFO");
    near.kill().unwrap();
    near.wait().unwrap();
    wait_until("the end of the far side", || far_sides(&sshd.at("state")).is_empty());
}
