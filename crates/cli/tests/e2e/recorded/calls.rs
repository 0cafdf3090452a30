//! The number of calls to the kernel about files that a daemon and its client make in a copy: one for each call to the
//! store at either end, and more if an end does too much.
//!
//! strace counts the calls that name a file below the directories of the case. Without strace, or without root, nothing is
//! tested.

use super::counts::{Counts, SOURCES, sources};
use super::{Begin, Ground, run, wrapped};
use crate::common::daemon::{Client, Daemon};
use crate::common::{skipped, wait_until};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Calls about names. Those about bytes come in any sizes.
const CALLS: &str = "openat,openat2,mkdirat,unlinkat,getdents64,/^rename,/^link,/^symlink";

/// strace of a process that runs already.
struct Watch(Child);

impl Watch {
    /// Writes the calls of a process to `log`.
    fn begin(pid: u32, log: &Path) -> Self {
        let notes = log.with_extension("notes");
        let mut strace = options(log);
        strace.arg("-p").arg(pid.to_string());
        let child = strace.stdin(Stdio::null()).stderr(fs::File::create(&notes).unwrap()).spawn();
        let watch = Self(child.unwrap());
        wait_until("strace attaches", || {
            fs::read_to_string(&notes).is_ok_and(|text| text.contains("attached"))
        });
        watch
    }

    fn end(mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.0.wait().unwrap();
    }
}

/// `strace` with the path of each descriptor, since files are opened below an open directory.
fn options(log: &Path) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "--seccomp-bpf", "-e"]).arg(format!("trace={CALLS}"));
    strace.arg("-o").arg(log);
    strace
}

/// The calls in a log that name something below `root`.
fn calls(log: &Path, end: &str, root: &str) -> Vec<String> {
    let text = fs::read_to_string(log).unwrap();
    let named = text.lines().filter(|line| line.contains(root) && !line.contains("resumed>"));
    let call = |line: &str| {
        let call = line.split_whitespace().nth(1)?.split('(').next()?;
        Some(format!("{end} {call}"))
    };
    named.filter_map(call).collect()
}

#[test]
fn calls_about_names_do_not_grow() {
    // Only root may watch a process that is no child.
    if !xtask::on_path("strace") || !rustix::process::geteuid().is_root() {
        return skipped("calls of a copy", "no strace, or not root");
    }
    let ground = Ground::new("counted-calls");
    let client = Client::new("counted-calls-client");
    let keys = client.authorized("keys", "");
    fs::rename(client.at("state"), ground.at("state")).unwrap();
    let served = ground.at("served");
    fs::create_dir_all(&served).unwrap();
    let daemon = Daemon::start_with(&client, &served, &keys, &["--writable"]);
    sources(&ground.at("near/from"));
    sources(&ground.at("served/from"));
    let mut counts = Counts::default();
    for way in ["up", "down"] {
        // A large file is requested in pieces, whose number depends on the measured rate.
        for (source, options_of_cp) in SOURCES.into_iter().filter(|(source, _)| *source != "large")
        {
            for dir in ["near/to", "served/to"] {
                let _ = fs::remove_dir_all(ground.at(dir));
                fs::create_dir_all(ground.at(dir)).unwrap();
            }
            for begin in [Begin::New, Begin::Again] {
                let far = |name: &str| format!("hikyaku://{}/{name}", daemon.address);
                let (here, from) = (ground.path("near/to"), format!("from/{source}"));
                let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
                command.arg("cp").args(options_of_cp);
                match way {
                    "up" => command.args([ground.path(&format!("near/{from}")), far("to")]),
                    _ => command.args([far(&from), here]),
                };
                ground.is_home_of(&mut command);
                let [near_log, far_log] = ["near.log", "far.log"].map(|name| ground.at(name));
                let watch = Watch::begin(daemon.pid(), &far_log);
                let output = run(wrapped(options(&near_log), &command));
                watch.end();
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{way} {source}: {said}");
                let title = format!("calls cp {way}, {source}, {}", begin.name());
                counts.add(&title, calls(&near_log, "client", &ground.path("near")));
                let mut of_daemon = calls(&far_log, "daemon", &ground.path("served"));
                if (way, source) == ("down", "small") {
                    // The client may request a file twice, if the first answer is late.
                    of_daemon.retain(|call| call != "daemon openat2");
                }
                counts.add(&title, of_daemon);
            }
        }
    }
    counts.check("calls");
}
