//! `hikyaku get` against a server whose answers the test decides.
//!
//! Payload is computed from its offset, so that what arrived is compared with nothing that could be wrong as well.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod apache;
mod continued;
mod cookies;
mod families;
mod full;
mod lies;
mod lists;
mod mirrors;
mod ordinary;
mod piped;
mod resuming;
mod secure;
mod server;
mod steady;
mod targets;
mod versions;
mod waits;

use clap::Parser;
use hikyaku_console::{ExitCode, Interrupt};
use hikyaku_web_get::{GetArgs, exit_code, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The command line of the test.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: GetArgs,
}

/// A directory that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("hikyaku-get-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The names in it, in order.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the command in `folder`; the words are divided at spaces. Returns the exit code and the error.
fn get(folder: &Folder, words: &str) -> (ExitCode, String) {
    let dir = folder.0.display().to_string();
    let words = words.replace("DIR", &dir);
    // `{}` stands for a space within a word.
    let words = words.split_whitespace().map(|word| word.replace("{}", " "));
    let fixed = ["get", "-q", "--retry-wait", "10ms"].map(str::to_owned);
    let line = Line::try_parse_from(fixed.into_iter().chain(words)).unwrap();
    match run(&line.args, &Interrupt::default()) {
        Ok(code) => (code, String::new()),
        Err(error) => (ExitCode::of(&error, &[exit_code]), format!("{error:#}")),
    }
}

/// Fetches without an error.
fn got(folder: &Folder, words: &str) {
    assert_eq!(get(folder, words), (ExitCode::Success, String::new()), "{words}");
}

/// Whether a file has these bytes and nothing lies beside it.
fn check(folder: &Folder, name: &str, content: &[u8]) {
    let found = fs::read(folder.path(name)).unwrap();
    let wrong = found.iter().zip(content).position(|(a, b)| a != b);
    assert_eq!((found.len(), wrong), (content.len(), None), "length, first wrong byte");
    assert_eq!(folder.names(), [name]);
}

/// Payload: a byte depends on its offset and on the version of the file.
fn payload(version: u64, bytes: usize) -> Vec<u8> {
    let word = |at: u64| {
        let mixed = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(version << 17);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9).to_le_bytes()
    };
    let mut payload: Vec<u8> = (0..bytes.div_ceil(8) as u64).flat_map(word).collect();
    payload.truncate(bytes);
    payload
}

fn sha256(bytes: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
