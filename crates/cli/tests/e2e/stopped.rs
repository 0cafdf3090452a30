//! Commands that are stopped by Ctrl-C after some megabytes: the sentence is compared with the next run.

mod sftp;
mod sync;

use crate::common::wait_until;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

/// Starts the command, and interrupts it when `is_far` returns true. Returns its messages.
pub(crate) fn stopped(command: &mut Command, mut is_far: impl FnMut() -> bool) -> String {
    let pipes = command.stdout(Stdio::null()).stderr(Stdio::piped());
    interrupted(pipes.spawn().unwrap(), &mut is_far)
}

pub(crate) fn interrupted(mut child: Child, is_far: &mut dyn FnMut() -> bool) -> String {
    let mut has_ended = false;
    wait_until("progress", || {
        has_ended = child.try_wait().unwrap().is_some();
        has_ended || is_far()
    });
    if has_ended {
        panic!("it ended before it could be stopped: {:?}", child.wait_with_output());
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()), "{said}");
    said
}
