//! From a remote host without hikyaku to one with it.

use super::elf::Linkage;
use super::glibc::{self, Version};
use super::place::{Place, for_shell};
use super::programs::{ChosenBy, Program, Programs};
use super::store::{self, Draft, NotStored};
use super::system::{QUESTION, system};
use crate::asked::{Answer, NoAnswer, Question};
use crate::destination::Destination;
use crate::sftp_server::NoSftp;
use crate::ssh::SshOptions;
use blake3::Hash;
use hikyaku_console::Scope;
use hikyaku_sftp::{Client, Failed};
use std::fmt;

/// Puts a program on a far side.
#[derive(Clone, Copy)]
pub struct Install<'a> {
    /// What ssh is told.
    pub ssh: &'a SshOptions,
    /// The far side.
    pub login: &'a Destination,
    /// What may be sent.
    pub programs: &'a Programs,
    /// Where the program goes.
    pub place: &'a Place,
    /// Ends what runs when it is stopped.
    pub scope: &'a Scope,
    /// Called while a program is sent, first with 0: the bytes that the remote host has, and all bytes.
    pub sending: &'a dyn Fn(u64, u64),
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

/// The C library that a dynamic program needs, and that of a remote host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Missing {
    /// The version of the GNU C library there; `None` if it has none.
    has: Option<Version>,
    /// The version that the program needs; `None` if it names none.
    needs: Option<Version>,
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
    #[error("{host} is a Linux on {architecture}, for which this host has no program")]
    NoProgram {
        /// The host.
        host: String,
        /// Its processor.
        architecture: &'static str,
        /// The origin of the programs.
        chosen_by: ChosenBy,
    },
    /// The program that could be sent is dynamic, and does not start there.
    #[error("{host}: needs a static hikyaku: {missing}")]
    NeedsStatic {
        /// The host.
        host: String,
        /// The C library that the program needs.
        missing: Missing,
        /// The origin of the program.
        chosen_by: ChosenBy,
    },
    /// The host has no SFTP server.
    #[error("hikyaku was not sent to {host}: it has no SFTP server that can be reached: {source}")]
    NoSftp {
        /// The host.
        host: String,
        /// Why.
        source: NoSftp,
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
    #[error("{host} does not run a program at {place}{}", shown(*.code))]
    DoesNotRun {
        /// The host.
        host: String,
        /// Where the program was.
        place: String,
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

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.has {
            Some(has) => write!(f, "its C library is {has}, ")?,
            None => f.write_str("its C library is not that of GNU, ")?,
        }
        match self.needs {
            Some(needs) => write!(f, "this program needs {needs}"),
            None => f.write_str("this program is dynamic"),
        }
    }
}

impl Install<'_> {
    /// Makes sure that the program is on the remote host and runs. In the cache, it removes versions that are too old.
    /// `client` is connected to an SFTP server there. A sent program gets its name when it has run once.
    ///
    /// # Errors
    ///
    /// See [`NotInstalled`]. What was sent and does not run has been removed.
    pub fn run(&self, client: &Client) -> Result<Installed, NotInstalled> {
        let program = self.program()?;
        let (file, hash) = program.open().map_err(|source| {
            self.not_stored(NotStored::Read { path: program.path.clone(), source })
        })?;
        let spot = self.place.spot(&hash);
        let path = for_shell(&spot.path());
        if self.has(client, program, &hash)? {
            return Ok(Installed { path, was: Was::There });
        }
        (self.sending)(0, program.size);
        let progress = |sent| (self.sending)(sent, program.size);
        let draft = Draft::write(client, (program, &file), &spot, &progress)
            .map_err(|error| self.not_stored(error))?;
        if let Err(error) = self.check(&for_shell(draft.path()), hash) {
            draft.remove();
            return Err(error);
        }
        draft.rename().map_err(|error| self.not_stored(error))?;
        if *self.place == Place::Cache {
            // What is not removed now is removed the next time.
            let _ = store::remove_old(client, &hash);
        }
        Ok(Installed { path, was: Was::Sent })
    }

    /// Whether the place has this program already. A program in the cache that does not run is removed.
    fn has(&self, client: &Client, program: &Program, hash: &Hash) -> Result<bool, NotInstalled> {
        let path = for_shell(&self.place.spot(hash).path());
        match self.place {
            Place::Path(_) => {
                let answer = self.answer(&path)?;
                Ok(identified(&answer.text) == Some(*hash))
            }
            Place::Cache => {
                let folders = store::close_folders(client, hash);
                let folders = folders.map_err(|error| self.not_stored(error))?;
                let lost = |source| NotInstalled::Lost { host: self.login.host.clone(), source };
                let is_there = folders == store::Folders::Private
                    && store::has(client, hash, program.size).map_err(lost)?;
                if is_there && let Err(error) = self.check(&path, *hash) {
                    // It is of no use there. If it cannot be removed, it stays.
                    let _ = store::remove(client, hash);
                    return Err(error);
                }
                Ok(is_there)
            }
        }
    }

    /// The program for the remote host.
    fn program(&self) -> Result<&Program, NotInstalled> {
        let host = || self.login.host.clone();
        let answer = self.asked(QUESTION)?;
        let architecture =
            system(&answer.text).map_err(|said| NotInstalled::Unknown { host: host(), said })?;
        let program = self.programs.of(architecture).ok_or_else(|| {
            let chosen_by = self.programs.chosen_by();
            NotInstalled::NoProgram { host: host(), architecture: architecture.name(), chosen_by }
        })?;
        if let Linkage::Dynamic(needs) = program.linkage {
            let has = Version::answered(&self.asked(glibc::QUESTION)?.text);
            // A program that names no version is for another C library: whether it starts shows when it is run.
            if needs.is_some_and(|needs| has.is_none_or(|has| has < needs)) {
                let (missing, chosen_by) = (Missing { has, needs }, self.programs.chosen_by());
                return Err(NotInstalled::NeedsStatic { host: host(), missing, chosen_by });
            }
        }
        Ok(program)
    }

    /// Runs the program once: it prints its hash.
    fn check(&self, path: &str, hash: Hash) -> Result<(), NotInstalled> {
        let (host, answer) = (self.login.host.clone(), self.answer(path)?);
        match identified(&answer.text) {
            Some(found) if found == hash => Ok(()),
            Some(_) => Err(NotInstalled::Other { host }),
            None => {
                let place = self.place.shown();
                Err(NotInstalled::DoesNotRun { host, place, code: answer.code })
            }
        }
    }

    /// The line with which the program at a path identifies itself.
    fn answer(&self, path: &str) -> Result<Answer, NotInstalled> {
        self.asked(&format!("{path} {VERB}"))
    }

    fn asked(&self, question: &str) -> Result<Answer, NotInstalled> {
        Question::to_shell(self.ssh, self.login, question)
            .ask(self.scope)
            .map_err(|source| NotInstalled::NoAnswer { host: self.login.host.clone(), source })
    }

    fn not_stored(&self, source: NotStored) -> NotInstalled {
        NotInstalled::NotStored { host: self.login.host.clone(), source }
    }
}

impl NotInstalled {
    /// What the user can do, as a text that begins with `try: `.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::NoProgram { architecture, chosen_by, .. } => Some(match chosen_by {
                ChosenBy::Installation => {
                    format!("try: --far-binary FILE, a hikyaku for Linux on {architecture}")
                }
                ChosenBy::User => format!("try: a hikyaku for Linux on {architecture}"),
            }),
            Self::NeedsStatic { chosen_by: ChosenBy::Installation, .. } => {
                Some("try: cargo xtask install, or --far-binary FILE".to_owned())
            }
            Self::NeedsStatic { chosen_by: ChosenBy::User, .. } => {
                Some("try: the static program of cargo xtask install".to_owned())
            }
            Self::DoesNotRun { host, .. } => Some(format!(
                "try: install hikyaku on {host} where programs may run, and say where: --remote-path PATH"
            )),
            _ => None,
        }
    }
}
