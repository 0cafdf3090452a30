//! Options of the commands that connect to daemons.

use crate::config::{ClientConfig, SetupError};
use anyhow::Result;
use clap::{Args, ValueEnum};
use hikyaku_console::{Key, Mistake, Settings};
use hikyaku_reach::dial::{Address, Via};
use hikyaku_reach::options::{pipes, silence};
use hikyaku_reach::settings::{self, RATE, UDP, WINDOW};
use hikyaku_reach::tcp::Pipes;
use hikyaku_reach::{Carriers, FamilyArgs};
use hikyaku_units::{Rate, parse_limit};
use std::time::Duration;

/// Options that choose the carrier of connections to daemons.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct ConnectArgs {
    /// Reach the servers over TCP only
    #[arg(long, conflicts_with = "via")]
    pub no_udp: bool,
    /// Carrier of the connections (auto)
    #[arg(long, value_name = "WAY", value_enum)]
    pub via: Option<By>,
    /// How many TCP connections to a server, where TCP carries the data: 1 to 64, or as many as bring something (auto)
    #[arg(long = "connections", alias = "pipes", value_name = "N", value_parser = pipes)]
    pub pipes: Option<Pipes>,
    /// The most that is sent in a second to all servers together, and the most that is received
    #[arg(long, value_name = "RATE", value_parser = parse_limit)]
    pub rate: Option<Rate>,
    /// The address family.
    #[command(flatten)]
    pub family: FamilyArgs,
}

/// The option for the longest silence of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub struct SilenceArgs {
    /// Give up a server after this time of silence (10s)
    #[arg(long, value_name = "TIME", value_parser = silence)]
    pub timeout: Option<Duration>,
}

/// The carrier of a connection to a daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum By {
    /// UDP; where it does not get through, TCP
    #[default]
    Auto,
    /// UDP only
    Udp,
    /// TCP only, by several connections (--connections)
    Tcp,
}

impl ConnectArgs {
    /// The client of the user who runs this process, for connections to `servers`. An option overrides the settings
    /// of the hosts.
    ///
    /// # Errors
    ///
    /// The user has no key, or the settings have a mistake.
    pub fn client<'a>(
        &self,
        servers: impl IntoIterator<Item = &'a Address>,
    ) -> Result<ClientConfig> {
        let config = ClientConfig::of_user().map_err(SetupError::explained)?;
        let settings = settings::of_user()?;
        let hosts: Vec<_> = servers.into_iter().map(|server| server.host.clone()).collect();
        Ok(ClientConfig {
            via: self.via(least(&settings, &hosts, &UDP)?),
            pipes: self.pipes.unwrap_or_default(),
            family: self.family.family(),
            window: least(&settings, &hosts, &WINDOW)?,
            rate: self.rate.or(least(&settings, &hosts, &RATE)?),
            ..config
        })
    }

    /// The only carriers of a session with a program that ssh starts; `None` leaves the choice to the settings of its host.
    pub const fn carriers(&self) -> Option<Carriers> {
        match self.via {
            Some(By::Udp) => Some(Carriers::Udp),
            Some(By::Tcp) => Some(Carriers::Tcp),
            Some(By::Auto) => Some(Carriers::Auto),
            None if self.no_udp => Some(Carriers::NoUdp),
            None => None,
        }
    }

    /// `udp` is whether the settings allow UDP.
    fn via(&self, udp: Option<bool>) -> Via {
        match self.via {
            Some(By::Udp) => Via::Udp,
            Some(By::Tcp) => Via::Tcp,
            Some(By::Auto) => Via::Auto,
            None if self.no_udp || udp == Some(false) => Via::Tcp,
            None => Via::Auto,
        }
    }
}

/// The least value that is set for one of the hosts: a limit that is set for any of them holds for all.
///
/// # Errors
///
/// A value of the settings is none.
pub fn least<T: Ord>(
    settings: &Settings,
    hosts: &[String],
    key: &Key<T>,
) -> Result<Option<T>, Mistake> {
    let set = hosts.iter().map(|host| settings.get(key, host)).collect::<Result<Vec<_>, _>>()?;
    Ok(set.into_iter().flatten().min())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_units::DataSize;

    #[test]
    fn an_option_overrides_the_settings() {
        let via = |by, no_udp| ConnectArgs { via: by, no_udp, ..ConnectArgs::default() };
        for (args, udp, wanted) in [
            (via(None, false), None, Via::Auto),
            (via(None, false), Some(true), Via::Auto),
            (via(None, false), Some(false), Via::Tcp),
            (via(None, true), Some(true), Via::Tcp),
            (via(Some(By::Auto), false), Some(false), Via::Auto),
            (via(Some(By::Udp), false), Some(false), Via::Udp),
            (via(Some(By::Tcp), false), Some(true), Via::Tcp),
        ] {
            assert_eq!(args.via(udp), wanted, "{args:?} {udp:?}");
        }
    }

    #[test]
    fn the_smallest_value_of_all_hosts_holds() {
        let text = "[host.a]\nwindow = 64000000\nudp = false\n[host.b]\nwindow = 32000000\n";
        let settings = Settings::parse(text, &settings::keys()).unwrap();
        let hosts = ["a", "b", "c"].map(str::to_owned);
        let window = least(&settings, &hosts, &WINDOW).unwrap();
        assert_eq!(window, Some(DataSize::from_bytes(32_000_000)));
        assert_eq!(least(&settings, &hosts[..1], &UDP).unwrap(), Some(false));
        assert_eq!(least(&settings, &hosts[2..], &UDP).unwrap(), None);
    }
}
