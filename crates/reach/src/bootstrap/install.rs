//! From a far side without hikyaku to one with it.

use super::asked::{NoAnswer, ask};
use super::programs::{Program, Programs};
use super::store::{self, NotStored};
use super::system::{QUESTION, system};
use crate::destination::Destination;
use crate::ssh::SshOptions;
use blake3::Hash;
use hikyaku_console::Scope;
use hikyaku_sftp::{Client, Failed};

/// Puts a program on a far side.
#[derive(Clone, Copy)]
pub struct Install<'a> {
    /// What ssh is told.
    pub ssh: &'a SshOptions,
    /// The far side.
    pub login: &'a Destination,
    /// What may be sent.
    pub programs: &'a Programs,
    /// Ends what runs when it is stopped.
    pub scope: &'a Scope,
    /// Is told before a program is sent, with its size in bytes.
    pub sending: &'a dyn Fn(u64),
}

/// A program that runs on a far side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Installed {
    /// Where it is, for [`crate::Way::remote_path`].
    pub path: String,
    /// Whether it was sent, or was there.
    pub was: Was,
}

/// Whether a program had to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Was {
    /// It was there.
    There,
    /// It was sent.
    Sent,
}

/// Why no program of ours runs on a far side. Each error tells its host.
#[derive(Debug, thiserror::Error)]
pub enum NotInstalled {
    /// It does not say what machine it is.
    #[error("cannot ask {host} what machine it is: {source}")]
    NoAnswer {
        /// The host.
        host: String,
        /// Why.
        source: NoAnswer,
    },
    /// There is no program for it.
    #[error("{host} says that it is '{said}', for which hikyaku is not made")]
    Unknown {
        /// The host.
        host: String,
        /// What it says of itself, fit to be shown.
        said: String,
    },
    /// There is none here to send.
    #[error("{host} is a Linux on {architecture}, for which there is no program here")]
    NoProgram {
        /// The host.
        host: String,
        /// Its processor.
        architecture: &'static str,
    },
    /// The program cannot be put there.
    #[error("hikyaku was not sent to {host}: {source}")]
    NotStored {
        /// The host.
        host: String,
        /// Why.
        source: NotStored,
    },
    /// The SFTP server is no more.
    #[error("hikyaku was not sent to {host}: {source}")]
    Lost {
        /// The host.
        host: String,
        /// Why.
        source: Failed,
    },
    /// The program does not start there, as where the home directory is mounted with noexec.
    #[error("{host} does not run a program below ~/.cache{}", shown(*.code))]
    DoesNotRun {
        /// The host.
        host: String,
        /// What ssh ended with.
        code: Option<i32>,
    },
    /// The program that runs there is not the one that was sent.
    #[error("what {host} runs is not what was sent to it")]
    Other {
        /// The host.
        host: String,
    },
}

/// How the line begins by which a program tells what it is.
const MARK: &str = "hikyaku-program";
/// The arguments with which a program does that.
const VERB: &str = "far id";

fn shown(code: Option<i32>) -> String {
    code.map(|code| format!(" (exit code {code})")).unwrap_or_default()
}

/// The line by which a program with this hash tells what it is.
pub fn identity(hash: &Hash) -> String {
    format!("{MARK} {} {}\n", env!("CARGO_PKG_VERSION"), hash.to_hex())
}

/// The hash in such a line, which may stand behind what a start-up file of the shell says.
// fuzz: lines
pub fn identified(said: &[u8]) -> Option<Hash> {
    let mut lines = said.rsplit(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.find_map(|line| {
        let mut words = std::str::from_utf8(line).ok()?.split(' ');
        let (mark, _version, hash) = (words.next()?, words.next()?, words.next()?);
        (mark == MARK).then(|| Hash::from_hex(hash).ok())?
    })
}

impl Install<'_> {
    /// Makes sure that the program is at the far side and runs, and removes versions that are too old. `client` speaks
    /// with an SFTP server there.
    ///
    /// # Errors
    ///
    /// See [`NotInstalled`]. What was sent and does not run has been removed.
    pub fn run(&self, client: &Client) -> Result<Installed, NotInstalled> {
        let host = self.login.host.clone();
        let lost = |source| NotInstalled::Lost { host: host.clone(), source };
        let program = self.program()?;
        let opened = program.open().map_err(|source| NotInstalled::NotStored {
            host: host.clone(),
            source: NotStored::Read { path: program.path.clone(), source },
        });
        let (file, hash) = opened?;
        let closed = store::close_folders(client, &hash);
        let folders =
            closed.map_err(|source| NotInstalled::NotStored { host: host.clone(), source })?;
        let is_there = folders == store::Folders::Private
            && store::has(client, &hash, program.size).map_err(lost)?;
        if !is_there {
            (self.sending)(program.size);
            let stored = store::send(client, program, (&file, &hash));
            stored.map_err(|source| NotInstalled::NotStored { host: host.clone(), source })?;
        }
        let path = format!("~/{}", store::path(&hash));
        if let Err(error) = self.check(&path, hash) {
            // It is of no use there. If it cannot be removed, it stays.
            let _ = store::remove(client, &hash);
            return Err(error);
        }
        if !is_there {
            // What is not removed now is removed the next time.
            let _ = store::remove_old(client, &hash);
        }
        Ok(Installed { path, was: if is_there { Was::There } else { Was::Sent } })
    }

    /// The program for the far side.
    fn program(&self) -> Result<&Program, NotInstalled> {
        let host = self.login.host.clone();
        let answer = ask(&self.ssh.plain(self.login, QUESTION), self.scope);
        let answer =
            answer.map_err(|source| NotInstalled::NoAnswer { host: host.clone(), source })?;
        let architecture = system(&answer.text)
            .map_err(|said| NotInstalled::Unknown { host: host.clone(), said })?;
        let architecture_name = architecture.name();
        self.programs
            .of(architecture)
            .ok_or(NotInstalled::NoProgram { host, architecture: architecture_name })
    }

    /// Runs the program once: it tells its hash.
    fn check(&self, path: &str, hash: Hash) -> Result<(), NotInstalled> {
        let host = self.login.host.clone();
        let answer = ask(&self.ssh.plain(self.login, &format!("{path} {VERB}")), self.scope);
        let answer =
            answer.map_err(|source| NotInstalled::NoAnswer { host: host.clone(), source })?;
        match identified(&answer.text) {
            Some(found) if found == hash => Ok(()),
            Some(_) => Err(NotInstalled::Other { host }),
            None => Err(NotInstalled::DoesNotRun { host, code: answer.code }),
        }
    }
}

impl NotInstalled {
    /// What the user can do, as a text that begins with `try: `.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::NoProgram { architecture, .. } => {
                Some(format!("try: --far-binary PATH, a hikyaku for Linux on {architecture}"))
            }
            Self::DoesNotRun { host, .. } => Some(format!(
                "try: install hikyaku on {host} where programs may run, and say where: --remote-path PATH"
            )),
            _ => None,
        }
    }
}
