//! Starts the far side: runs `ssh`, and waits until the program there has said hello.

use crate::bootstrap::Consent;
use crate::destination::Destination;
use crate::hello::{Greeting, Hello, NOTHING_YET, NoHello, Start};
use crate::meet::Door;
use crate::near::{ReachError, Way};
use crate::speaks::{Agreed, Speaks};
use crate::ssh::{Configuration, Form, NO_CONNECTION, NO_SH, NOT_THERE, Output, Sharing, Ssh};
use hikyaku_console::{Tone, say};
use hikyaku_fs::Shown;
use std::io::BufReader;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The far side, which waits to be met.
pub(crate) struct Started {
    pub(crate) ssh: Ssh,
    /// What else comes through `ssh`.
    pub(crate) output: BufReader<Output>,
    pub(crate) hello: Hello,
    pub(crate) agreed: Agreed,
    /// How `ssh` is set up for the host.
    pub(crate) configuration: Configuration,
}

/// `ssh` got nowhere.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SshFailed {
    /// It ended before the far side was started; it has said why.
    #[error("{host}: ssh did not log in")]
    Ended {
        /// Where.
        host: String,
    },
    /// It goes on trying.
    #[error("{host}: ssh has not logged in within {} s", .waited.as_secs())]
    NotIn {
        /// Where.
        host: String,
        /// For so long it was waited for.
        waited: Duration,
    },
    /// It is in, and something there waits.
    #[error("{host}: ssh has logged in, but hikyaku did not answer within {} s", .waited.as_secs())]
    NoAnswer {
        /// Where.
        host: String,
        /// For so long it was waited for.
        waited: Duration,
    },
}

impl SshFailed {
    /// The host.
    pub(crate) fn host(&self) -> &str {
        match self {
            Self::Ended { host } | Self::NotIn { host, .. } | Self::NoAnswer { host, .. } => host,
        }
    }
}

/// Why there is no hello.
enum Failure {
    /// What was heard, and with what `ssh` ended.
    Said(NoHello, Option<i32>),
    Silent(SshFailed),
}

/// A person may have to type a password, or to look for a key.
const LOGIN: Duration = Duration::from_secs(180);
/// From then on the far side's start-up files take their time.
const ANSWER: Duration = Duration::from_secs(15);
/// How often it is looked whether `ssh` is in.
const LOOK: Duration = Duration::from_millis(50);
/// `ssh` ends at once when the far side's shell has.
const END: Duration = Duration::from_secs(2);

impl Way {
    /// Starts it at `destination`, and tells it of `door`.
    pub(crate) fn start(
        &self,
        destination: &Destination,
        door: &Door,
    ) -> Result<Started, ReachError> {
        let sent = self.offer.programs.paths();
        let command = |form| {
            self.ssh.command(destination, (self.remote_path.as_deref(), sent.as_slice()), form)
        };
        let configuration = Configuration::ask(&command(Form::Searched)?);
        let is_shared = configuration.may_be_shared();
        let sharing = if is_shared { Sharing::Others } else { Sharing::Alone };
        say(
            Tone::Detail,
            format_args!(
                "starting hikyaku on {}: {}",
                destination.host,
                self.ssh.by_hand(destination)
            ),
        );
        let mut form = Form::Searched;
        loop {
            let mut words = command(form)?;
            // The first setting of a kind wins.
            words.splice(1..1, configuration.overruling());
            let (mut ssh, output) = Ssh::spawn(&words, sharing, &self.scope).map_err(|source| {
                let program = words[0].to_string_lossy().into_owned();
                ReachError::Spawn { program, source }
            })?;
            let failure = match self.hear(&ssh, output, destination, door) {
                Ok((output, hello, agreed)) => {
                    ssh.has_started();
                    return Ok(Started { ssh, output, hello, agreed, configuration });
                }
                Err(failure) => failure,
            };
            let is_other_shell = matches!(failure, Failure::Said(NoHello::Nothing(_), Some(NO_SH)));
            if !is_other_shell || self.has_slash() || form == Form::Bare {
                return Err(self.explained(failure, destination));
            }
            say(
                Tone::Detail,
                format_args!(
                    "the shell on {} has no sh; starting it by its name",
                    destination.host
                ),
            );
            form = Form::Bare;
        }
    }

    /// A restricted shell takes no such path, however it is started.
    fn has_slash(&self) -> bool {
        self.remote_path.as_ref().is_some_and(|path| path.contains('/'))
    }

    /// Waits until the far side has said what it must.
    fn hear(
        &self,
        ssh: &Ssh,
        output: Output,
        destination: &Destination,
        door: &Door,
    ) -> Result<(BufReader<Output>, Hello, Agreed), Failure> {
        let begin = Instant::now();
        // If ssh is gone already, how it ended is the better error.
        let _ = ssh.say(NOTHING_YET);
        let (greet, greeting) = sync_channel(1);
        let (tell, told) = sync_channel(1);
        let listen = move || {
            let mut output = BufReader::new(output);
            let greeting = Greeting::read_as(&Speaks::ours(), &mut output);
            let is_there = greeting.is_ok();
            if greet.send(greeting).is_ok() && is_there {
                let hello = Hello::read(&mut output);
                let _ = tell.send(hello.map(|hello| (output, hello)));
            }
        };
        let listener = thread::Builder::new().name("reach-hello".to_owned()).spawn(listen);
        listener.map_err(|error| Failure::Said(error.into(), None))?;
        let (greeting, agreed): (Greeting, Agreed) =
            self.wait(&greeting, ssh, destination, None)?;
        let took = begin.elapsed().as_millis();
        say(
            Tone::Detail,
            format_args!(
                "hikyaku {} answers after {took} ms",
                Shown::new(greeting.version.as_bytes())
            ),
        );
        let start = Start {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            speaks: Speaks::ours(),
            service: self.service.name.to_owned(),
            ports: (*self.ports.start(), *self.ports.end()),
            tuning: self.tuning.clone(),
            key: door.invitation().key.clone(),
            door: self.carriers.has_udp().then(|| door.invitation().clone()),
        };
        let _ = ssh.say(&start.line());
        let (output, hello) = self.wait(&told, ssh, destination, Some(Instant::now()))?;
        Ok((output, hello, agreed))
    }

    /// What comes next, or why it does not. `is_in` is when ssh has logged in, if that is known.
    fn wait<T>(
        &self,
        from: &Receiver<Result<T, NoHello>>,
        ssh: &Ssh,
        destination: &Destination,
        mut is_in: Option<Instant>,
    ) -> Result<T, Failure> {
        let patience = |usual| self.tuning.timeout.map_or(usual, Duration::from_secs);
        let begin = Instant::now();
        loop {
            match from.recv_timeout(LOOK) {
                Ok(Ok(heard)) => return Ok(heard),
                Ok(Err(error)) => {
                    let status = matches!(error, NoHello::Nothing(_)).then(|| ssh.ended(END));
                    let code = status.flatten().and_then(|status| status.code());
                    return Err(Failure::Said(error, code));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::Said(NoHello::Nothing(String::new()), None));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if is_in.is_none() && ssh.has_read_all() {
                say(
                    Tone::Detail,
                    format_args!(
                        "ssh has logged in to {} after {} ms",
                        destination.host,
                        begin.elapsed().as_millis()
                    ),
                );
                is_in = Some(Instant::now());
            }
            let (since, waited) =
                is_in.map_or_else(|| (begin, patience(LOGIN)), |at| (at, patience(ANSWER)));
            if since.elapsed() >= waited {
                let host = destination.host.clone();
                return Err(Failure::Silent(match is_in {
                    None => SshFailed::NotIn { host, waited },
                    Some(_) => SshFailed::NoAnswer { host, waited },
                }));
            }
        }
    }

    /// What went wrong, and what to do about it.
    fn explained(&self, failure: Failure, destination: &Destination) -> ReachError {
        let (host, by_hand) = (destination.host.clone(), self.ssh.by_hand(destination));
        let program = self.remote_path.clone().unwrap_or_else(|| "hikyaku".to_owned());
        match failure {
            Failure::Silent(failed @ SshFailed::NoAnswer { .. }) => {
                let remedy = format!(
                    "try: {by_hand} true; if that does not end by itself, a start-up file of the remote shell waits \
                     for something, or reads its input. If it is only slow: --timeout 60s"
                );
                ReachError::Silent { host, source: failed, remedy }
            }
            Failure::Silent(failed) => {
                ReachError::Silent { host, source: failed, remedy: format!("try: {by_hand}") }
            }
            // Its own message has been printed.
            Failure::Said(NoHello::Nothing(_), Some(NO_CONNECTION)) => ReachError::NoConnection {
                source: SshFailed::Ended { host },
                remedy: format!("try: {by_hand}"),
            },
            Failure::Said(source @ NoHello::Nothing(_), Some(126 | NO_SH | NOT_THERE)) => {
                let remedy = self.offer.remedy(destination, self.remote_path.as_deref());
                ReachError::NotThere { host, program, source, remedy }
            }
            Failure::Said(NoHello::Nothing(said), code) if is_only_sftp(&said, code) => {
                ReachError::OnlySftp { host }
            }
            Failure::Said(source @ NoHello::Version { .. }, _) => {
                let version = env!("CARGO_PKG_VERSION");
                let send = match self.offer.consent {
                    Consent::Never => "",
                    Consent::Ask | Consent::Always => ", or --bootstrap, which sends it",
                };
                let remedy = format!("try: install version {version} on both sides{send}");
                ReachError::NoHello { host, source, remedy }
            }
            Failure::Said(NoHello::Refused { text, remedy: Some(remedy) }, _) => {
                let source = NoHello::Refused { text, remedy: None };
                ReachError::NoHello { host, source, remedy }
            }
            Failure::Said(source, _) => {
                let remedy = format!("try: {by_hand} {program} --version");
                ReachError::NoHello { host, source, remedy }
            }
        }
    }
}

/// Whether a server that admits SFTP only took our command for SFTP. OpenSSH's `internal-sftp` says so (sftp-server(8) is
/// `ForceCommand`). The program `sftp-server` reads our first line as a message of 2 GB, and ends with 11.
fn is_only_sftp(said: &str, code: Option<i32>) -> bool {
    said.contains("sftp connections only") || (said.is_empty() && code == Some(11))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_admits_sftp_only_is_known_by_its_words_or_its_code() {
        assert!(is_only_sftp("This service allows sftp connections only.", Some(1)));
        assert!(is_only_sftp("", Some(11)));
        assert!(!is_only_sftp("", Some(1)));
        assert!(!is_only_sftp("Segmentation fault", Some(11)));
    }
}
