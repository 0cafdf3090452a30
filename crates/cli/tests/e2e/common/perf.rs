//! `hikyaku perf -s` as a separate process.

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// A server with its own state directory for keys; its clients use the same one.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) lines: BufReader<ChildStdout>,
    pub(crate) port: u16,
    pub(crate) state: PathBuf,
}

impl Server {
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::with_errors_to(Stdio::inherit(), options)
    }

    pub(crate) fn with_errors_to(errors: Stdio, options: &[&str]) -> Self {
        let state = super::scratch("perf");
        let command = hikyaku(&state);
        Self::spawn(command, state, errors, options)
    }

    /// Starts a server by `command`, which contains the program and its environment.
    pub(crate) fn spawn(
        mut command: Command,
        state: PathBuf,
        errors: Stdio,
        options: &[&str],
    ) -> Self {
        let mut child = command
            .args(["perf", "-s", "-p", "0"])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let port = loop {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0, "the server ended");
            if let Some(rest) = line.strip_prefix("listening on ") {
                let address = rest.split_whitespace().next().unwrap();
                break address.rsplit(':').next().unwrap().parse().unwrap();
            }
        };
        Self { child, lines, port, state }
    }

    pub(crate) fn client(&self, options: &[&str]) -> Command {
        let mut command = hikyaku(&self.state);
        command.args(["perf", "-c", "127.0.0.1", "-p", &self.port.to_string()]).args(options);
        command
    }

    pub(crate) fn run(&self, options: &[&str]) -> Output {
        self.client(options).output().unwrap()
    }

    /// The report of a test that has to succeed.
    pub(crate) fn report(&self, options: &[&str]) -> Value {
        report(&self.client(options).arg("-J").output().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.state);
    }
}

pub(crate) fn hikyaku(state: &PathBuf) -> Command {
    let mut command = Command::new(program());
    command.env("XDG_STATE_HOME", state).env("XDG_CACHE_HOME", state).stdin(Stdio::null());
    command
}

/// The program under test. HK_BIN names another binary, to see a test fail.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("HK_BIN").map_or_else(|| env!("CARGO_BIN_EXE_hikyaku").into(), PathBuf::from)
}

pub(crate) fn report(output: &Output) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The number at `pointer` in a report.
pub(crate) fn number(report: &Value, pointer: &str) -> f64 {
    let value = report.pointer(pointer).and_then(Value::as_f64);
    value.unwrap_or_else(|| panic!("no number at {pointer}: {report:#}"))
}
