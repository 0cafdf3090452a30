//! Daemons that are started through ssh for one session. Each is a process of the user who logs in, lets
//! one client in, and ends with its standard input.
//!
//! With a primary, the others are logged in to through it (`ssh -J`), so that the client needs a way to one host only. Data
//! do not go that way: the client connects to each daemon itself.

use crate::destination::Destination;
use crate::dial::Address;
use crate::several::for_each_host;
use crate::ssh::{BadRemotePath, Configuration, NO_CONNECTION, NO_SH, NOT_THERE};
use crate::ssh::{Output, Sharing, Ssh, SshOptions};
use crate::start::SshFailed;
use hikyaku_console::{ExitCode, Scope, causes_of, with_remedy};
use hikyaku_crypto::{Fingerprint, PublicKey};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// The first word of the line in which such a daemon prints its port and its key.
pub const LAUNCHED: &str = "hikyaku-session";
/// The option of `hikyaku serve` for it.
const VERB: &str = "serve --for-session";

/// How servers are started.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// How ssh is called.
    pub ssh: SshOptions,
    /// Where the program is on the servers, if it is not to be looked for.
    pub remote_path: Option<String>,
    /// The host through which all others are logged in to.
    pub primary: Option<String>,
    /// Interrupts logins by ssh.
    pub scope: Scope,
}

/// Servers that were started. They end when this is dropped.
pub struct Fleet(Vec<Launched>);

/// A server that was started.
struct Launched {
    ssh: Ssh,
    _output: BufReader<Output>,
    address: Address,
    key: Fingerprint,
}

/// Why a server was not started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The path of the program cannot be passed to a shell.
    #[error(transparent)]
    Path(#[from] BadRemotePath),
    /// ssh cannot be started.
    #[error("cannot start ssh")]
    Ssh(#[source] io::Error),
    /// ssh did not log in, and has printed the reason.
    #[error(transparent)]
    NotIn(SshFailed),
    /// The host has no such program.
    #[error("{0}: hikyaku is not installed")]
    NotInstalled(String),
    /// The program of the host is too old, or another program answered.
    #[error("{0}: hikyaku did not start a server")]
    NoServer(String),
}

impl LaunchError {
    /// A command or a sentence for the user.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Path(_) | Self::Ssh(_) => None,
            Self::NotIn(error) => Some(format!("ssh {}", error.host())),
            Self::NotInstalled(host) => {
                Some(format!("hikyaku far install {host}, or --remote-path PATH"))
            }
            Self::NoServer(host) => Some(format!("the same version of hikyaku on {host}")),
        }
    }

    /// The error of a command that needs the server, with its exit code and its remedy.
    pub fn explained(self) -> anyhow::Error {
        let (code, remedy) = (self.code(), self.remedy());
        with_remedy(code.error(causes_of(&self)), remedy)
    }

    const fn code(&self) -> ExitCode {
        match self {
            Self::Path(_) => ExitCode::Usage,
            Self::NotIn(_) => ExitCode::MayPass,
            Self::Ssh(_) | Self::NotInstalled(_) | Self::NoServer(_) => ExitCode::WillFail,
        }
    }
}

/// Time for a login: the user may have to type a password.
const LOGIN: Duration = Duration::from_secs(180);
/// Time for the end of ssh: it ends immediately after the far side's shell.
const END: Duration = Duration::from_secs(2);
/// Bytes that start-up files of a shell may print before.
const NOISE_BYTES_MAX: u64 = 64 << 10;

impl Launcher {
    /// Starts a server on each of these hosts for the client with this key, several at once. The results are in the order of
    /// the hosts.
    pub fn launch(&self, hosts: &[String], client: &PublicKey) -> (Fleet, Vec<LaunchError>) {
        let launched = for_each_host(hosts, |host| self.one(host, client, hosts.len()));
        let (mut fleet, mut failed) = (Vec::new(), Vec::new());
        for launched in launched {
            match launched {
                Ok(launched) => fleet.push(launched),
                Err(error) => failed.push(error),
            }
        }
        (Fleet(fleet), failed)
    }

    fn one(&self, host: &str, client: &PublicKey, count: usize) -> Result<Launched, LaunchError> {
        let destination = Destination { user: None, host: host.to_owned(), port: None };
        let mut words = self.words(&destination, count)?;
        let configuration = Configuration::ask(&words);
        // The first setting of a kind wins.
        words.splice(1..1, configuration.overruling());
        let sharing = match configuration.may_be_shared() {
            true => Sharing::Others,
            false => Sharing::Alone,
        };
        let spawned = Ssh::spawn(&words, sharing, &self.scope);
        let (mut ssh, output) = spawned.map_err(LaunchError::Ssh)?;
        // If ssh has ended already, its exit status is the more exact error.
        let _ = ssh.say(format!("{client}\n").as_bytes());
        let (tell, told) = channel();
        let listener = thread::Builder::new().name("reach-launch".to_owned()).spawn(move || {
            let mut output = BufReader::new(output);
            let line = first_line(&mut output);
            let _ = tell.send(line.map(|line| (line, output)));
        });
        listener.map_err(LaunchError::Ssh)?;
        let host = || host.to_owned();
        let Ok(said) = told.recv_timeout(LOGIN) else {
            return Err(LaunchError::NotIn(SshFailed::NotIn { host: host(), waited: LOGIN }));
        };
        let Some(((port, key), output)) = said else {
            return Err(match ssh.ended(END).and_then(|status| status.code()) {
                Some(NO_CONNECTION) => LaunchError::NotIn(SshFailed::Ended { host: host() }),
                Some(126 | NO_SH | NOT_THERE) => LaunchError::NotInstalled(host()),
                _ => LaunchError::NoServer(host()),
            });
        };
        ssh.has_started();
        // Where ssh knows the host by another name than others do.
        let known = configuration.addresses().first().map(ToString::to_string);
        let address = Address { host: known.unwrap_or_else(host), port };
        Ok(Launched { ssh, _output: output, address, key })
    }

    /// The ssh that starts a server on a host.
    fn words(&self, host: &Destination, count: usize) -> Result<Vec<OsString>, BadRemotePath> {
        let mut ssh = self.ssh.clone();
        // A user cannot answer several questions at once.
        ssh.batch |= count > 1;
        if let Some(primary) = self.primary.as_ref().filter(|primary| **primary != host.host) {
            let before = ssh.jump.map(|jump| [jump, ",".into()].into_iter().collect::<OsString>());
            ssh.jump = Some(before.into_iter().chain([primary.into()]).collect());
        }
        ssh.start(host, self.remote_path.as_deref(), VERB)
    }
}

/// The port and the key that the server prints, after the output of start-up files.
// fuzz: none, a host that the user logs in to
fn first_line(output: &mut impl BufRead) -> Option<(u16, Fingerprint)> {
    let mut output = output.take(NOISE_BYTES_MAX);
    let mut line = Vec::new();
    loop {
        line.clear();
        if output.read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        let Ok(text) = str::from_utf8(&line) else { continue };
        let mut words = text.split_whitespace();
        if words.next() == Some(LAUNCHED) {
            let port = words.next()?.parse().ok().filter(|port| *port > 0)?;
            return Some((port, words.next()?.parse().ok()?));
        }
    }
}

impl Fleet {
    /// Where the servers listen.
    pub fn addresses(&self) -> Vec<Address> {
        self.0.iter().map(|server| server.address.clone()).collect()
    }

    /// Fingerprints of the started servers, in the order of their addresses.
    pub fn keys(&self) -> Vec<Fingerprint> {
        self.0.iter().map(|server| server.key).collect()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // All of them end at once, and then each is waited for.
        self.0.iter().for_each(|server| drop(server.ssh.take_input()));
    }
}

#[cfg(test)]
mod tests;
