//! `--bootstrap`: whether a remote host without hikyaku gets one, and how it gets there.

use super::consent::{Answer, Consent, Hosts};
use super::install::{Install, Installed, NotInstalled};
use super::place::Place;
use super::programs::{NoPrograms, Programs};
use super::spare::Spare;
use super::{progress::Progress, store};
use crate::destination::Destination;
use crate::settings::BOOTSTRAP;
use crate::sftp_server::{Login, SftpServer};
use crate::ssh::SshOptions;
use anyhow::Result;
use clap::Args;
use hikyaku_console::{Scope, Settings, Tone, headline, say};
use std::io::{IsTerminal, stderr, stdin};
use std::path::PathBuf;

/// The options of all verbs that start hikyaku on a remote host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct BootstrapArgs {
    /// Whether hikyaku is copied to a remote host that has none, into ~/.cache/hikyaku/bin: ask (only at a terminal),
    /// always or never; without a value always
    #[arg(
        long,
        value_name = "WHEN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "always"
    )]
    bootstrap: Option<Consent>,
    /// Program that is copied there, in place of this one and those installed with it
    #[arg(long, value_name = "FILE")]
    far_binary: Option<PathBuf>,
}

/// The offer to a remote host without hikyaku.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The programs that this end may send, or may have sent before.
    pub programs: Programs,
    /// Whether one is sent.
    pub consent: Consent,
    /// Whether a person may be asked.
    pub asking: Asking,
    /// The consequence of the answer "no", in words of the question: "go by SFTP, which is slower".
    pub otherwise: &'static str,
    /// Keeps the SFTP server of an attempt that failed, for the caller.
    pub spare: Spare,
}

/// Whether a person may be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asking {
    /// If standard input and standard error are a terminal.
    AtTerminal,
    /// Never: another program reads the output, or ssh must not ask either.
    Never,
}

/// The result of an offer.
pub enum Delivery {
    /// A program runs on the remote host.
    Done {
        /// Where it is, for [`crate::Way::remote_path`].
        path: String,
        /// The server by which it was sent. The next command may share its login.
        server: SftpServer,
    },
    /// The user does not want it.
    NotAllowed,
    /// No program could be put there.
    Failed(NotInstalled),
}

impl BootstrapArgs {
    /// Nothing is sent.
    pub const fn never() -> Self {
        Self { bootstrap: Some(Consent::Never), far_binary: None }
    }

    /// The offer to `host`, from the options or else the settings.
    ///
    /// # Errors
    ///
    /// The program of `--far-binary` cannot be sent, or the settings are wrong.
    pub fn offer(&self, settings: &Settings, host: &str) -> Result<Offer> {
        let consent = settings.resolve(self.bootstrap, &BOOTSTRAP, host)?;
        Ok(Offer {
            programs: self.programs()?,
            consent: consent.unwrap_or_default(),
            ..Offer::default()
        })
    }

    /// The programs that may be sent.
    ///
    /// # Errors
    ///
    /// See [`NoPrograms`].
    pub fn programs(&self) -> Result<Programs, NoPrograms> {
        self.far_binary.as_deref().map_or_else(|| Ok(Programs::own()), Programs::named)
    }

    /// The options, each with whether it is given.
    pub const fn given(&self) -> [(&'static str, bool); 2] {
        [("--bootstrap", self.bootstrap.is_some()), ("--far-binary", self.far_binary.is_some())]
    }
}

/// Nothing is sent, and the programs of this installation are looked for.
impl Default for Offer {
    fn default() -> Self {
        Self {
            programs: Programs::own(),
            consent: Consent::Never,
            asking: Asking::AtTerminal,
            otherwise: "",
            spare: Spare::default(),
        }
    }
}

impl Offer {
    /// Puts a program on a host that has none, if the user wants that.
    pub fn deliver(&self, (ssh, login): (&SshOptions, &Destination), scope: &Scope) -> Delivery {
        if !self.is_wanted(login) {
            return Delivery::NotAllowed;
        }
        let server = match SftpServer::open(ssh, login, Login::Shared, scope) {
            Ok(server) => server,
            Err(source) => {
                let host = login.host.clone();
                return Delivery::Failed(NotInstalled::NoSftp { host, source });
            }
        };
        let shared = server.ssh(ssh);
        let progress = Progress::new(&login.host, &Place::Cache);
        let install = Install {
            ssh: &shared,
            login,
            programs: &self.programs,
            place: &Place::Cache,
            scope,
            sending: &|sent, size| progress.show(sent, size),
        };
        match install.run(server.client()) {
            Ok(Installed { path, .. }) => Delivery::Done { path, server },
            Err(error) => {
                self.spare.keep(server);
                Delivery::Failed(error)
            }
        }
    }

    /// Advice for a user whose host has no hikyaku. It begins with `try: `. `path` is the path of the program there, if the
    /// user named one.
    pub fn remedy(&self, login: &Destination, path: Option<&str>) -> String {
        let send = match self.consent {
            Consent::Ask | Consent::Always => "--bootstrap, which installs it; or ",
            Consent::Never => "",
        };
        let find = if path.is_none() { ", or where it is: --remote-path PATH" } else { "" };
        format!("try: {send}hikyaku far install {login}{find}")
    }

    /// Whether the user wants that. A person who may be asked is asked.
    fn is_wanted(&self, login: &Destination) -> bool {
        let hosts = Hosts::of_user().ok();
        let host = login.to_string();
        let is_terminal = || stdin().is_terminal() && stderr().is_terminal();
        match self.consent {
            Consent::Always => true,
            Consent::Never => false,
            Consent::Ask if hosts.as_ref().is_some_and(|hosts| hosts.has(&host)) => true,
            Consent::Ask
                if self.asking == Asking::AtTerminal
                    && !self.programs.is_empty()
                    && is_terminal() =>
            {
                let answer = self.ask(&host);
                if answer == Answer::Always
                    && let Some(Err(error)) = hosts.map(|hosts| hosts.add(&host))
                {
                    say(
                        Tone::Warning,
                        format_args!("the answer is not remembered: {}", headline(&error.into())),
                    );
                }
                answer != Answer::No
            }
            Consent::Ask => false,
        }
    }

    fn ask(&self, host: &str) -> Answer {
        let comma = if self.otherwise.is_empty() { "" } else { ", " };
        eprint!(
            "hikyaku: {host} has no hikyaku that can be started. May it be installed in ~/{} of that host?\n\
             y: yes; a: yes, and always on {host}; N: no{comma}{} [y/N/a] ",
            store::BIN,
            self.otherwise
        );
        let mut line = String::new();
        // Without an answer nothing is sent.
        let _ = stdin().read_line(&mut line);
        Answer::of(&line)
    }
}
