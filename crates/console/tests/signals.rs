//! Signals of the system. A test starts this test program again as a child process, because a signal ends the process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use hikyaku_console::Interrupt;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Stdio};

/// What the child process registers.
const REGISTERED: &str = "HIKYAKU_TEST_REGISTERED";
const ALL: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];

/// A child process that listens for signals until its standard input ends, and then ends by the signal it received.
struct Listener {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Listener {
    /// Starts it with the options of env(1), and waits until it listens.
    fn start(options: &[&str], registered: &str) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new("env");
        command.arg("--default-signal=INT,TERM,HUP").args(options).arg(program);
        command.args(["--exact", "a_process_that_listens", "--ignored", "--nocapture"]);
        command.env(REGISTERED, registered).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut listener = Self { child, output };
        listener.await_line("listening");
        listener
    }

    fn await_line(&mut self, wanted: &str) {
        let mut line = String::new();
        while line.trim_end() != wanted {
            line.clear();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "it has not said '{wanted}'");
        }
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// The signal that ended it. Its standard input stays open until then.
    fn signal(mut self) -> Option<Signal> {
        // `wait` would close it.
        let _input = self.child.stdin.take();
        self.child.wait().unwrap().signal().and_then(Signal::from_named_raw)
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "\n{line}").and_then(|()| out.flush()).unwrap();
}

#[test]
#[ignore = "a process that the other tests start"]
fn a_process_that_listens() {
    let Ok(registered) = std::env::var(REGISTERED) else { return };
    let interrupt = Interrupt::default();
    interrupt.listen().unwrap();
    let scope = interrupt.scope();
    let _registration = (registered == "action").then(|| scope.on_stop(|| say("stopping")));
    say("listening");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    interrupt.end_by_signal();
}

#[test]
fn the_first_signal_ends_a_process_that_registered_nothing() {
    for signal in ALL {
        let listener = Listener::start(&[], "nothing");
        listener.send(signal);
        assert_eq!(listener.signal(), Some(signal));
    }
}

#[test]
fn the_second_signal_ends_the_process() {
    for signal in ALL {
        let mut listener = Listener::start(&[], "action");
        listener.send(Signal::TERM);
        listener.await_line("stopping");
        listener.send(signal);
        assert_eq!(listener.signal(), Some(signal));
    }
}

#[test]
fn a_process_ends_by_the_signal_when_its_work_has_ended() {
    for signal in ALL {
        let mut listener = Listener::start(&[], "action");
        listener.send(signal);
        listener.await_line("stopping");
        drop(listener.child.stdin.take());
        assert_eq!(listener.signal(), Some(signal));
    }
}

#[test]
fn a_signal_that_the_parent_process_ignores_stays_ignored() {
    let mut listener = Listener::start(&["--ignore-signal=HUP,INT"], "action");
    listener.send(Signal::HUP);
    listener.send(Signal::INT);
    listener.send(Signal::TERM);
    listener.await_line("stopping");
    drop(listener.child.stdin.take());
    assert_eq!(listener.signal(), Some(Signal::TERM));
}
