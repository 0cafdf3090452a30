//! The command line of `hikyaku doctor`.

use clap::Args;
use hikyaku_console::{DocumentArgs, NoiseArgs};
use hikyaku_reach::bootstrap::BootstrapArgs;
use hikyaku_reach::{Destination, FamilyArgs, SshArgs, SshOptions, options};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Options of `hikyaku doctor`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_group("SshArgs", |group| group.requires("host")))]
#[command(mut_group("FamilyArgs", |group| group.requires("host")))]
pub struct DoctorArgs {
    /// Check the path to this host too, which ssh reaches: USER@HOST or ssh://USER@HOST:PORT
    #[arg(value_parser = destination)]
    pub host: Option<Destination>,
    /// Measure the disk of this directory: a file without a name is written there, at most 256 MB or 2 s, and read again
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The form of the report
    #[command(flatten)]
    pub form: DocumentArgs,
    /// The messages on standard error.
    #[command(flatten)]
    pub noise: NoiseArgs,
    /// Where hikyaku is on the host [default: PATH, ~/.local/bin, ~/.cargo/bin]
    #[arg(long, value_name = "PATH", requires = "host")]
    pub remote_path: Option<String>,
    /// UDP ports of which each end takes one [default: 60001-60999]
    #[arg(long, value_name = "FROM-TO", requires = "host", value_parser = options::ports)]
    pub udp_ports: Option<RangeInclusive<u16>>,
    /// Options for a host without hikyaku.
    #[command(flatten)]
    pub bootstrap: BootstrapArgs,
    /// How ssh gets to the host.
    #[command(flatten)]
    pub ssh: SshArgs,
    /// Its address family.
    #[command(flatten)]
    pub family: FamilyArgs,
}

impl DoctorArgs {
    /// The options of ssh.
    pub(crate) fn ssh(&self) -> SshOptions {
        SshOptions { family: self.family.family(), ..self.ssh.options() }
    }
}

const EXAMPLES: &str = "\
Examples:
  hikyaku doctor              this machine: cipher, UDP, buffers, limits
  hikyaku doctor --dir /data  with the rate of a disk
  hikyaku doctor user@host
      with the path to a host and back; takes 10 s and three logins by ssh
  hikyaku doctor --json host > report.json

The first lines say what limits a transfer. docs/doctor.md explains each check
under its name. Exit codes: 0 no check failed, 5 one failed that may pass by
itself, 6 one failed that needs a change.";

// fuzz: none, the user's own word
fn destination(text: &str) -> Result<Destination, String> {
    let read = match text.strip_prefix("ssh://") {
        Some(rest) => Destination::parse_authority(rest.trim_end_matches('/').as_bytes()),
        None => Destination::parse(text.as_bytes()),
    };
    read.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    #[test]
    fn options_of_ssh_need_a_host() {
        let command = || DoctorArgs::augment_args(Command::new("doctor"));
        for words in [
            &["--jump", "hop"][..],
            &["--ssh-option", "Port=1"],
            &["--ssh", "/bin/ssh"],
            &["-4"],
            &["-6"],
        ] {
            let words = [&["doctor"], words].concat();
            assert!(command().try_get_matches_from(&words).is_err(), "{words:?}");
            let with_host = [&words[..], &["far"]].concat();
            assert!(command().try_get_matches_from(with_host).is_ok(), "{words:?}");
        }
    }

    #[test]
    fn a_host_is_named_as_for_ssh_or_by_a_url() {
        let of = |text| destination(text).unwrap();
        assert_eq!(of("me@h").user.as_deref(), Some("me"));
        assert_eq!((of("ssh://me@h:23/").host.as_str(), of("ssh://h:23").port), ("h", Some(23)));
        assert!(destination("-oProxyCommand=x").is_err());
    }
}
