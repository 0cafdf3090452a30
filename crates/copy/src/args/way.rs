//! How the far side of a copy is reached: as the flags say, or as the user has set.

use super::{By, CopyArgs};
use crate::far::SERVICE;
use crate::memory;
use anyhow::Result;
use hikyaku_console::{Audience, Scope, Settings, Tone, misuse, say};
use hikyaku_reach::bootstrap::{Asking, Notes, Offer};
use hikyaku_reach::dial::Via;
use hikyaku_reach::launch::Launcher;
use hikyaku_reach::settings::{RETRY_FOR, Typed};
use hikyaku_reach::tcp::Pipes;
use hikyaku_reach::{Carriers, Observer, Way};
use hikyaku_units::{DataSize, RetryPolicy};

impl CopyArgs {
    /// How the far side at `host` is reached: as the flags say, or as the user has set.
    pub(crate) fn way(&self, host: &str, settings: &Settings) -> Result<Way> {
        let flags = &self.transport;
        let typed = Typed {
            rate: self.scp.limit,
            cipher: flags.cipher.clone(),
            policy: flags.policy.clone(),
            window: flags.window,
            buffer: flags.buffer,
            timeout: flags.timeout,
            ports: flags.udp_ports.clone(),
            udp: flags.no_udp.then_some(false),
            remote_path: flags.remote_path.clone(),
        };
        let chosen = typed.or_set(settings, host)?;
        Ok(Way {
            service: SERVICE,
            ssh: self.ssh(),
            observer: match self.scp.verbose {
                0 => Observer::default(),
                _ => Observer::new(|step| say(Tone::Note, step)),
            },
            scope: Scope::default(),
            memory: DataSize::from_bytes(memory::available()),
            remote_path: chosen.remote_path,
            offer: self.offer(host, settings)?,
            ports: chosen.ports,
            carriers: match flags.via {
                Some(By::Udp) => Carriers::Udp,
                Some(By::Tcp) => Carriers::Tcp,
                Some(By::Ssh) => Carriers::Ssh,
                _ => chosen.carriers,
            },
            pipes: flags.pipes.unwrap_or_default(),
            tuning: chosen.tuning,
        })
    }

    /// What a far side at `host` without hikyaku is offered.
    fn offer(&self, host: &str, settings: &Settings) -> Result<Offer> {
        let is_person = matches!(self.audience(), Audience::Person | Audience::Lines);
        let is_asked = is_person && !self.scp.batch;
        Ok(Offer {
            asking: if is_asked { Asking::AtTerminal } else { Asking::Never },
            notes: if self.is_quiet() { Notes::None } else { Notes::Printed },
            otherwise: "go by SFTP, which is slower",
            ..self.transport.bootstrap.offer(settings, host)?
        })
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

    /// When a copy whose connection to `host` is lost is tried again, and for how long.
    pub(crate) fn retries(&self, host: &str, settings: &Settings) -> Result<RetryPolicy> {
        let time = settings.resolve(self.transport.retry_for, &RETRY_FOR, host)?;
        Ok(time.map_or(RetryPolicy::COPY, |time| RetryPolicy::COPY.within(time)))
    }
}
