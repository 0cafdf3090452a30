//! How the far side of a copy is reached: as the flags say, or as the user has set.

use super::{By, CopyArgs, PATIENCE};
use crate::far::SERVICE;
use crate::memory;
use crate::settings::{
    BOOTSTRAP, BUFFER, CIPHER, POLICY, RATE, REMOTE_PATH, RETRY_FOR, TIMEOUT, UDP, UDP_PORTS,
    WINDOW,
};
use anyhow::Result;
use hikyaku_console::{Scope, Settings, misuse};
use hikyaku_reach::bootstrap::{Consent, Programs};
use hikyaku_reach::dial::Via;
use hikyaku_reach::launch::Launcher;
use hikyaku_reach::options;
use hikyaku_reach::tcp::Pipes;
use hikyaku_reach::{Carriers, Observer, Tuning, Way};
use hikyaku_units::{DataSize, Rate};
use std::time::Duration;

impl CopyArgs {
    /// How the far side at `host` is reached: as the flags say, or as the user has set.
    pub(crate) fn way(&self, host: &str, settings: &Settings) -> Result<Way> {
        let flags = &self.transport;
        let rate = settings.resolve(self.scp.limit, &RATE, host)?;
        let window = settings.resolve(flags.window, &WINDOW, host)?;
        let buffer = settings.resolve(flags.buffer, &BUFFER, host)?;
        let timeout = settings.resolve(flags.timeout, &TIMEOUT, host)?;
        let ports = settings.resolve(flags.udp_ports.clone(), &UDP_PORTS, host)?;
        let is_udp = settings.resolve(flags.no_udp.then_some(false), &UDP, host)?;
        Ok(Way {
            service: SERVICE,
            ssh: self.ssh(),
            observer: match self.scp.verbose {
                0 => Observer::default(),
                _ => Observer::new(|step| eprintln!("hikyaku: {step}")),
            },
            scope: Scope::default(),
            memory: DataSize::from_bytes(memory::available()),
            remote_path: settings.resolve(flags.remote_path.clone(), &REMOTE_PATH, host)?,
            programs: match &flags.far_binary {
                Some(path) => Programs::named(path)?,
                None => Programs::own(),
            },
            ports: ports.unwrap_or(options::UDP_PORTS),
            carriers: match (self.transport.via, is_udp.unwrap_or(true)) {
                (Some(By::Udp), _) => Carriers::Udp,
                (Some(By::Tcp), _) => Carriers::Tcp,
                (Some(By::Ssh), _) => Carriers::Ssh,
                (_, true) => Carriers::Auto,
                (_, false) => Carriers::NoUdp,
            },
            pipes: flags.pipes.unwrap_or_default(),
            tuning: Tuning {
                cipher: settings.resolve(flags.cipher.clone(), &CIPHER, host)?,
                policy: settings.resolve(flags.policy.clone(), &POLICY, host)?,
                rate: rate.map(Rate::bits_per_sec),
                window: window.map(DataSize::bytes),
                buffer: buffer.map(DataSize::bytes),
                timeout: timeout.map(|time| time.as_secs()),
            },
        })
    }

    /// Whether hikyaku may be put on a far side at `host` that has none.
    pub(crate) fn consent(&self, host: &str, settings: &Settings) -> Result<Consent> {
        let consent = settings.resolve(self.transport.bootstrap, &BOOTSTRAP, host)?;
        Ok(consent.unwrap_or_default())
    }

    /// What may carry a connection to a daemon.
    ///
    /// # Errors
    ///
    /// The user wants a carrier that leads to no daemon.
    pub(crate) fn via(&self) -> Result<Via> {
        Ok(match self.by() {
            By::Ssh | By::Sftp => {
                let text = "a daemon is reached by UDP or TCP, not through ssh";
                return Err(misuse(text, "--via auto, udp or tcp"));
            }
            By::Tcp => Via::Tcp,
            By::Udp => Via::Udp,
            By::Auto | By::Native if self.transport.no_udp => Via::Tcp,
            By::Auto | By::Native => Via::Auto,
        })
    }

    /// How the servers of a copy are started, if the user wants that.
    pub(crate) fn launcher(&self, scope: &Scope) -> Option<Launcher> {
        let flags = &self.transport;
        flags.start_servers.then(|| Launcher {
            ssh: self.ssh(),
            remote_path: flags.remote_path.clone(),
            primary: flags.primary.clone(),
            scope: scope.clone(),
        })
    }

    /// How many TCP connections carry what TCP carries.
    pub(crate) fn pipes(&self) -> Pipes {
        self.transport.pipes.unwrap_or_default()
    }

    /// For how long it is tried to go on when the connection to `host` is lost.
    pub(crate) fn patience(&self, host: &str, settings: &Settings) -> Result<Duration> {
        let time = settings.resolve(self.transport.retry_for, &RETRY_FOR, host)?;
        Ok(time.unwrap_or(PATIENCE))
    }
}
