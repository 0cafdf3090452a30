//! `hikyaku perf -s` as a process of its own.

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A server with a folder of its own for keys, in which its clients remember it.
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
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hikyaku-perf-{}-{number}", std::process::id());
        let state = std::env::temp_dir().join(name);
        let mut child = hikyaku(&state)
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

    /// The result of a test that must succeed.
    pub(crate) fn report(&self, options: &[&str]) -> Value {
        report(&self.client(options).arg("-J").output().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.state);
    }
}

pub(crate) fn hikyaku(state: &PathBuf) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
    command.env("XDG_STATE_HOME", state).env("XDG_CACHE_HOME", state).stdin(Stdio::null());
    command
}

pub(crate) fn report(output: &Output) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}
