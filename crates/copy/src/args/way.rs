//! How the far side of a copy is reached: as the flags say, or as the user has set.

use super::{CopyArgs, PATIENCE, PORTS};
use crate::far::SERVICE;
use crate::memory;
use crate::settings::{
    BUFFER, CIPHER, POLICY, RATE, REMOTE_PATH, RETRY_FOR, TIMEOUT, UDP, UDP_PORTS, WINDOW,
};
use anyhow::Result;
use hikyaku_console::{Scope, Settings};
use hikyaku_reach::dial::Via;
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
            ports: ports.unwrap_or(PORTS),
            carriers: if is_udp.unwrap_or(true) { Carriers::UdpOrSsh } else { Carriers::Ssh },
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

    /// What may carry a connection to a daemon.
    pub(crate) const fn via(&self) -> Via {
        if self.transport.no_udp { Via::Tcp } else { Via::Auto }
    }

    /// For how long it is tried to go on when the connection to `host` is lost.
    pub(crate) fn patience(&self, host: &str, settings: &Settings) -> Result<Duration> {
        let time = settings.resolve(self.transport.retry_for, &RETRY_FOR, host)?;
        Ok(time.unwrap_or(PATIENCE))
    }
}
