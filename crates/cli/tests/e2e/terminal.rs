//! Commands on a terminal: its lines and the processes after Ctrl-C, and pages of man(1).

mod man;
pub(crate) mod stopped;

use crate::common::{scratch, skipped, wait_until};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

/// What Ctrl-C is on a terminal.
const CTRL_C: &[u8] = b"\x03";

/// A command on a terminal of its own, which script(1) makes.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    printed: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    /// Runs a line of the shell. `None` without script(1).
    fn run(line: &str, dir: &Path, set: &[(&str, &str)]) -> Option<Self> {
        if !xtask::on_path("script") {
            skipped("a command on a terminal", "script is not installed");
            return None;
        }
        let mut command = Command::new("script");
        command.args(["-q", "-e", "-f", "-c", line, "/dev/null"]).current_dir(dir);
        command.env("TERM", "xterm").env("SHELL", "/bin/sh").env_remove("CI");
        command.envs(set.iter().copied());
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = pipes.spawn().unwrap();
        let (keys, mut out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let printed = Arc::<Mutex<Vec<u8>>>::default();
        let kept = printed.clone();
        thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(length @ 1..) = out.read(&mut some) {
                kept.lock().unwrap().extend(&some[..length]);
            }
        });
        Some(Self { child, keys, printed })
    }

    fn press(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).unwrap();
    }

    /// The lines that the terminal shows.
    fn lines(&self) -> Vec<String> {
        shown(&String::from_utf8_lossy(&self.printed.lock().unwrap()))
    }

    /// Waits until a line has this text.
    fn shows(&mut self, text: &str) {
        wait_until(text, || {
            let is_shown = self.lines().iter().any(|line| line.contains(text));
            assert!(
                is_shown || self.child.try_wait().unwrap().is_none(),
                "it ended without {text}: {:#?}",
                self.lines()
            );
            is_shown
        });
    }

    /// Waits for the end. Returns the lines of the terminal.
    fn ended(mut self) -> Vec<String> {
        wait_until("the end", || self.child.try_wait().unwrap().is_some());
        // The last of it is on its way to the thread that reads.
        let mut before = usize::MAX;
        wait_until("all of the output", || {
            let now = self.printed.lock().unwrap().len();
            std::mem::replace(&mut before, now) == now
        });
        self.lines()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines that a terminal shows: of what is written over, the last.
fn shown(printed: &str) -> Vec<String> {
    let (mut lines, mut column) = (vec![Vec::<char>::new()], 0_usize);
    let mut rest = printed.chars().peekable();
    while let Some(letter) = rest.next() {
        let Some(line) = lines.last_mut() else { break };
        match letter {
            '\r' => column = 0,
            '\n' => lines.push(Vec::new()),
            '\x08' => column = column.saturating_sub(1),
            '\x1b' if rest.next_if_eq(&'[').is_some() => {
                let mut end = ' ';
                for letter in rest.by_ref() {
                    end = letter;
                    if letter.is_ascii_alphabetic() {
                        break;
                    }
                }
                if end == 'K' {
                    line.truncate(column);
                }
            }
            letter => {
                line.resize(line.len().max(column + 1), ' ');
                line[column] = letter;
                column += 1;
            }
        }
    }
    lines.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned()).collect()
}

#[test]
fn a_line_that_is_written_over_is_shown_once() {
    let shown = shown("one\r\n 10 %  two\r\x1b[Kthree\r\n\x1b[31mfour\x1b[0m^C\rx");
    assert_eq!(shown, ["one", "three", "xour^C"]);
}

/// Processes whose environment has this path.
fn processes(path: &Path) -> Vec<String> {
    let path = path.display().to_string();
    let all = fs::read_dir("/proc").unwrap().flatten();
    let own = all.filter(|entry| {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&path)
    });
    let line = |entry: fs::DirEntry| {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).replace('\0', " ")
    };
    own.map(line).filter(|line| !line.is_empty()).collect()
}

fn folder(name: &str) -> PathBuf {
    let folder = scratch(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}
