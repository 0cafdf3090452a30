//! A client with a state of its own, and daemons on loopback.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A scratch directory with the state of one client.
pub(crate) struct Client(PathBuf);

impl Client {
    pub(crate) fn new(name: &str) -> Self {
        let dir = crate::common::scratch(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The program with the client's state.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        command.env("XDG_STATE_HOME", self.at("state")).args(arguments);
        command
    }

    /// A list of keys with the key of this client, as `keys new` prints it, behind these options.
    pub(crate) fn authorized(&self, name: &str, options: &str) -> PathBuf {
        let shown = self.run(&["keys", "new"]);
        let shown = String::from_utf8(shown.stdout).unwrap();
        let key = shown.split_whitespace().find(|word| word.starts_with("ed25519:")).unwrap();
        let list = self.at(name);
        fs::write(&list, format!("{options} {key} the client\n")).unwrap();
        list
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) struct Daemon {
    child: Child,
    pub(crate) address: String,
}

impl Daemon {
    /// Serves `root` to the keys in `keys`, which may read it.
    pub(crate) fn start(client: &Client, root: &Path, keys: &Path) -> Self {
        Self::with(client, &["--root", root.to_str().unwrap()], keys)
    }

    /// The same with more options.
    pub(crate) fn start_with(client: &Client, root: &Path, keys: &Path, more: &[&str]) -> Self {
        Self::with(client, &[&["--root", root.to_str().unwrap()], more].concat(), keys)
    }

    /// Serves what the options say.
    pub(crate) fn with(client: &Client, options: &[&str], keys: &Path) -> Self {
        Self::at("127.0.0.1:0", client, options, keys)
    }

    /// The same at this address.
    pub(crate) fn at(listen: &str, client: &Client, options: &[&str], keys: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hikyaku"))
            .env("XDG_STATE_HOME", client.at("server-state"))
            .args(["serve", "--listen", listen])
            .args(options)
            .arg("--authorized-keys")
            .arg(keys)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        // serving ROOT at ADDRESS, key FINGERPRINT
        let address = line.split(" at ").nth(1).and_then(|rest| rest.split(',').next());
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}")).to_owned();
        Self { child, address }
    }
}

impl Daemon {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
