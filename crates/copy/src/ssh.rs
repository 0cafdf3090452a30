//! How the far side is started: the user's own `ssh`, told what scp would tell it.

use crate::location::Remote;
use std::ffi::{OsStr, OsString};

/// What the user said that concerns `ssh`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SshOptions {
    /// The program; `ssh` by default (`-S`).
    pub program: Option<OsString>,
    /// Only this address family (`-4`, `-6`).
    pub family: Option<Family>,
    /// Forward the agent (`-A`).
    pub forward_agent: bool,
    /// Never ask for a password (`-B`).
    pub batch: bool,
    /// Say nothing (`-q`).
    pub quiet: bool,
    /// How often `-v` was said.
    pub verbose: u8,
    /// `-c`: ssh's cipher, of the start-up only.
    pub cipher: Option<OsString>,
    /// `-F`.
    pub config: Option<OsString>,
    /// `-i`, each.
    pub identities: Vec<OsString>,
    /// `-J`.
    pub jump: Option<OsString>,
    /// `-o`, each.
    pub options: Vec<OsString>,
    /// `-P`.
    pub port: Option<u16>,
}

/// An address family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// A path of the far side's program that could mean something to a shell.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "'{0}': a path on the far side may have letters, digits and any of / . _ - + ~ only, \
     because a shell there reads it"
)]
pub struct BadRemotePath(String);

/// Settings of the user's `ssh` that a copy must not inherit: scp sets the same.
const ALWAYS: [&str; 6] = [
    "-x",
    "-oPermitLocalCommand=no",
    "-oClearAllForwardings=yes",
    "-oRemoteCommand=none",
    "-oRequestTTY=no",
    "-oForwardAgent=no",
];

/// Where `cargo install` and `pip install --user` put programs, which a shell without a terminal
/// does not always look in.
const FIND: &str = "PATH=$PATH:$HOME/.local/bin:$HOME/.cargo/bin; export PATH; ";

impl SshOptions {
    /// The program and its arguments that start `hikyaku serve --stdio` at `remote`. `path` is where
    /// the program is there, if it is not to be looked for.
    pub fn command(
        &self,
        remote: &Remote,
        path: Option<&str>,
    ) -> Result<Vec<OsString>, BadRemotePath> {
        let script = script(path)?;
        let mut words = vec![self.program.clone().unwrap_or_else(|| "ssh".into())];
        // The first setting of a kind wins: what the user says comes before what we say.
        self.add_flags(&mut words);
        words.extend(ALWAYS.map(OsString::from));
        if let Some(port) = remote.port.or(self.port) {
            words.extend(["-p".into(), port.to_string().into()]);
        }
        if let Some(user) = &remote.user {
            words.extend(["-l".into(), user.into()]);
        }
        words.extend(["--".into(), remote.host.clone().into(), script.into()]);
        Ok(words)
    }

    fn add_flags(&self, words: &mut Vec<OsString>) {
        match self.family {
            Some(Family::V4) => words.push("-4".into()),
            Some(Family::V6) => words.push("-6".into()),
            None => {}
        }
        if self.forward_agent {
            words.push("-A".into());
        }
        if self.batch {
            words.push("-oBatchMode=yes".into());
        }
        if self.quiet {
            words.push("-q".into());
        }
        words.extend((0..self.verbose).map(|_| OsString::from("-v")));
        let mut pair = |flag: &str, value: &OsStr| words.extend([flag.into(), value.to_owned()]);
        for (flag, value) in [("-c", &self.cipher), ("-F", &self.config), ("-J", &self.jump)] {
            if let Some(value) = value {
                pair(flag, value);
            }
        }
        self.identities.iter().for_each(|value| pair("-i", value));
        self.options.iter().for_each(|value| pair("-o", value));
    }
}

/// What the far side's login shell is given: one command with one quoted word, which Bourne, C and
/// fish shells read alike.
fn script(path: Option<&str>) -> Result<String, BadRemotePath> {
    let program = match path {
        None => "hikyaku",
        Some(path) => {
            is_harmless(path)?;
            path
        }
    };
    Ok(format!("exec sh -c '{FIND}exec {program} serve --stdio'"))
}

/// Whether no shell finds a meaning in it.
pub(crate) fn is_harmless(path: &str) -> Result<(), BadRemotePath> {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "/._-+~".contains(c);
    if path.is_empty() || path.starts_with('-') || !path.chars().all(harmless) {
        return Err(BadRemotePath(path.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
