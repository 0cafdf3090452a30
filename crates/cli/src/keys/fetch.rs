//! `hikyaku keys fetch`: the keys of daemons, through ssh.

use super::hosts::{self, Host};
use super::login::{Login, Prompts};
use anyhow::Result;
use clap::Args;
use hikyaku_console::{ExitCode, Folder, Noise, with_remedy};
use hikyaku_crypto::{Fingerprint, KnownPeers, PeerName, PublicKey, Recorded};
use std::time::SystemTime;

#[derive(Debug, Args)]
pub(super) struct Fetch {
    /// Clusters of the settings, or hosts of daemons: HOST, HOST:PORT or USER@HOST:PORT
    #[arg(required = true, value_name = "CLUSTER|HOST")]
    names: Vec<String>,
    #[command(flatten)]
    login: Login,
}

impl Fetch {
    /// The messages on standard error.
    pub(super) const fn says(&self) -> Noise {
        self.login.noise.noise()
    }

    pub(super) fn run(&self) -> Result<()> {
        let list = KnownPeers::at(Folder::State.of_user()?.join(KnownPeers::FILE_NAME));
        let settings = hikyaku_reach::settings::of_user()?;
        hosts::each(&hosts::named(&self.names, None, &settings)?, |host, prompts| {
            let key = self.ask(host, prompts)?.fingerprint();
            let peer = PeerName::new(&host.daemon.host, host.daemon.port)?;
            record(&list, &peer, key)?;
            Ok(format!("{peer} {key}\n"))
        })
    }

    fn ask(&self, host: &Host, prompts: Prompts) -> Result<PublicKey> {
        let answer = self.login.ask((&host.login, "keys show --server"), &[], prompts)?;
        let text = String::from_utf8_lossy(&answer.text);
        let line = text.lines().rev().find(|line| line.starts_with("ed25519:"));
        match line.and_then(|line| line.split_whitespace().next()) {
            Some(key) if answer.code == Some(0) => Ok(key.parse()?),
            _ => Err(Login::missing(&host.login, &answer).unwrap_or_else(|| {
                let error = format!("{}: no key came through ssh", host.login);
                self.login.by_hand(ExitCode::WillFail.error(error), &host.login)
            })),
        }
    }
}

/// Records the key of a daemon.
///
/// # Errors
///
/// Another key is recorded.
pub(super) fn record(list: &KnownPeers, peer: &PeerName, key: Fingerprint) -> Result<Recorded> {
    match list.record(peer, key, SystemTime::now())? {
        Recorded::Present(known) if known.fingerprint != key => {
            let (other, since) = (known.fingerprint, known.since);
            let text = format!("the key of {peer} is {key}, but {other} is recorded since {since}");
            let remedy = format!("hikyaku keys forget {peer}, if the daemon has got a new key");
            Err(with_remedy(ExitCode::WillFail.error(text), Some(remedy)))
        }
        recorded => Ok(recorded),
    }
}
