//! What the tests with real servers have in common: the program, a folder, files whose bytes follow from a seed.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// A folder of a test, with a folder for the program's state in it. It is removed at the end.
#[derive(Debug)]
pub struct Scene(PathBuf);

impl Scene {
    /// A new folder; `name` is unique among the tests.
    ///
    /// # Panics
    /// It cannot be made.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hikyaku-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("state")).expect("a folder for the test");
        Self(path)
    }

    /// A path in it.
    pub fn at(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// `hikyaku` with its state in this folder.
    pub fn hikyaku(&self) -> Command {
        let mut command = Command::new(program());
        command.env("XDG_STATE_HOME", self.at("state")).env("XDG_CONFIG_HOME", self.at("config"));
        command.current_dir(&self.0);
        command
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The program under test.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| xtask::program().expect("hikyaku is built"))
}

/// Writes a file of random bytes that follow from its size.
///
/// # Panics
/// It cannot be written.
pub fn write_file(path: &Path, bytes: usize) {
    let mut content = vec![0; bytes];
    fastrand::Rng::with_seed(bytes as u64).fill(&mut content);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).expect("a folder for the file");
    }
    fs::write(path, content).expect("a file for the test");
}

/// Whether two files have the same bytes.
pub fn is_same(a: &Path, b: &Path) -> bool {
    matches!((fs::read(a), fs::read(b)), (Ok(a), Ok(b)) if a == b)
}

/// What a program wrote to standard error.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The events that a program printed.
pub fn events(output: &Output) -> Vec<serde_json::Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
