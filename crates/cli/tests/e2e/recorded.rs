//! Recorded cases: the outcome of the commands that move files, over a table of routes and states of the target.
//!
//! Each case is one run of the program. A record has its exit code, the keys of its events (`--json-lines`) or document (`--json`), its messages
//! without numbers, addresses and times, and the tree at the target. The records stand in `recorded/*.txt`, so that a
//! change of any of them is a diff to be reviewed.
//! `HIKYAKU_RECORD=1 cargo test --workspace --test e2e -- recorded::` takes them again.

mod calls;
mod counts;
mod cp;
mod get;
mod ground;
mod guc;
mod plain;
mod sftp;
mod sync;

use ground::Ground;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use xtask::on_path;

/// Set to take the records again.
const RECORD: &str = "HIKYAKU_RECORD";

/// The records of a command: the text of each case by its title.
struct Records(BTreeMap<String, String>);

/// A kind of system call, as strace names it, and its number among those of a thread, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Call(&'static str, u32);

/// Before the file of a download gets its name.
const NAMING: Call = Call("/^renameat", 1);
/// Before the file of an upload is read.
const READING: Call = Call("pread64", 1);

/// The state of the target at the beginning of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Begin {
    /// The directory at the target is empty.
    New,
    /// An earlier run of the command has succeeded.
    Again,
    /// An earlier run of the command was killed before a call.
    Killed(Call),
    /// The target has a directory where the command makes a file.
    Taken,
}

impl Begin {
    /// The state of a case in its title.
    const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Again => "again",
            Self::Killed(_) => "interrupted",
            Self::Taken => "taken",
        }
    }
}

impl Records {
    const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Runs a command and records the outcome under this title.
    fn add(&mut self, ground: &Ground, title: &str, begin: Begin, command: &dyn Fn() -> Command) {
        ground.fill();
        match begin {
            Begin::New => {}
            Begin::Again => {
                let output = run(command());
                assert!(output.status.success(), "{title}: {}", plain::stderr(&output));
            }
            // Without strace the first run succeeds, and the second run has an equal record.
            Begin::Killed(call) if on_path("strace") => {
                let output = run(killed(&command(), call, ground));
                assert!(!output.status.success(), "{title}: made no call {call:?}");
            }
            Begin::Killed(_) => drop(run(command())),
            Begin::Taken => ground.take(),
        }
        let output = run(command());
        let title = format!("{title}: {}", begin.name());
        let mut text = format!("exit {}\n", output.status.code().unwrap());
        plain::add(&mut text, &output, &ground.names(), begin);
        ground.add_tree(&mut text, begin);
        assert!(self.0.insert(title.clone(), text).is_none(), "{title} stands twice");
    }

    /// Compares with the file, or writes it.
    fn check(&self, name: &str) {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join(format!("tests/e2e/recorded/{name}.txt"));
        if std::env::var_os(RECORD).is_some() {
            let entries = self.0.iter().map(|(title, text)| format!("== {title}\n{text}\n"));
            fs::write(path, entries.collect::<String>()).unwrap();
            return;
        }
        let recorded = fs::read_to_string(&path).unwrap();
        let recorded: BTreeMap<&str, &str> = recorded
            .split("== ")
            .filter_map(|entry| entry.split_once('\n'))
            .map(|(title, text)| (title, text.trim_end()))
            .collect();
        let mut differences = String::new();
        for (title, text) in &self.0 {
            let before = recorded.get(title.as_str()).copied().unwrap_or("no record");
            if before != text.trim_end() {
                differences += &format!("== {title}\nrecorded:\n{before}\nfound:\n{text}\n");
            }
        }
        for title in recorded.keys().filter(|title| !self.0.contains_key(**title)) {
            differences += &format!("== {title}\nis recorded, and no case any more\n");
        }
        let again = "take them again with HIKYAKU_RECORD=1, and review the diff";
        assert!(differences.is_empty(), "{differences}{}: {again}", path.display());
    }
}

/// Runs a command without input, with the usual mask for new files.
fn run(command: Command) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 022; exec \"$0\" \"$@\""]);
    wrapped(shell, &command).stdin(Stdio::null()).output().unwrap()
}

/// A command that strace kills before it makes a system call.
fn killed(command: &Command, call: Call, ground: &Ground) -> Command {
    let mut strace = Command::new("strace");
    if call == READING {
        // Calls on other files do not count: the loader of the program reads its libraries.
        strace.arg("-P").arg(ground.source("f"));
    }
    let Call(call, number) = call;
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e"]).arg(format!("trace={call}"));
    strace.arg("-e").arg(format!("inject={call}:signal=KILL:when={number}"));
    wrapped(strace, command)
}

/// `outer` with the words, the environment and the directory of a command.
fn wrapped(mut outer: Command, command: &Command) -> Command {
    outer.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        outer.current_dir(folder);
    }
    outer
}
