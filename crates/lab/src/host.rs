//! What kind of host each end of the lab pretends to be: its TCP settings, all set explicitly, so
//! that those of the machine below do not leak in.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// The TCP settings of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostProfile {
    /// A Debian server as installed: CUBIC, and buffers of at most 6 MB and 4 MB.
    Debian {
        /// Another congestion control than CUBIC.
        congestion_control: Option<String>,
    },
    /// A host tuned for long fat networks: buffers of up to 1 GB.
    Tuned {
        /// Another congestion control than CUBIC.
        congestion_control: Option<String>,
    },
}

impl Default for HostProfile {
    fn default() -> Self {
        Self::Debian { congestion_control: None }
    }
}

impl HostProfile {
    /// `debian` or `tuned`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Debian { .. } => "debian",
            Self::Tuned { .. } => "tuned",
        }
    }

    /// The TCP congestion control.
    pub fn congestion_control(&self) -> &str {
        match self {
            Self::Debian { congestion_control } | Self::Tuned { congestion_control } => {
                congestion_control.as_deref().unwrap_or("cubic")
            }
        }
    }

    /// The settings of `/proc/sys/net` and their values.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        let (rmem, wmem) = match self {
            Self::Debian { .. } => ("4096 131072 6291456", "4096 16384 4194304"),
            Self::Tuned { .. } => ("4096 131072 1073741824", "4096 65536 1073741824"),
        };
        let fixed = [
            ("ipv4/tcp_rmem", rmem),
            ("ipv4/tcp_wmem", wmem),
            // Without this a connection would start from what the one before it has learned.
            ("ipv4/tcp_no_metrics_save", "1"),
            ("ipv4/tcp_ecn", "2"),
            ("ipv4/tcp_mtu_probing", "0"),
            ("ipv4/tcp_slow_start_after_idle", "1"),
            ("ipv4/tcp_notsent_lowat", "4294967295"),
            ("ipv4/tcp_moderate_rcvbuf", "1"),
            ("ipv4/tcp_window_scaling", "1"),
            ("ipv4/tcp_timestamps", "1"),
            ("ipv4/tcp_sack", "1"),
            ("ipv4/tcp_recovery", "1"),
            ("ipv4/ip_local_port_range", "32768 60999"),
            // Nothing but the programs under test may send: the counters count everything.
            ("ipv6/conf/all/accept_ra", "0"),
            ("ipv6/conf/default/accept_ra", "0"),
            ("ipv6/conf/default/router_solicitations", "0"),
            ("ipv6/conf/default/addr_gen_mode", "1"),
        ];
        let mut settings: Vec<_> =
            fixed.into_iter().map(|(key, value)| (key, value.to_owned())).collect();
        settings.push(("ipv4/tcp_congestion_control", self.congestion_control().to_owned()));
        settings
    }

    /// Makes the settings in the namespace that the calling thread is in.
    pub(crate) fn apply_here(&self) -> std::io::Result<()> {
        for (key, value) in self.settings() {
            let path = Path::new("/proc/sys/net").join(key);
            if path.exists() {
                fs::write(&path, &value).map_err(|error| {
                    let what = format!("cannot set {} to '{value}': {error}", path.display());
                    std::io::Error::new(error.kind(), what)
                })?;
            }
        }
        Ok(())
    }

    /// Lets namespaces take the congestion control. Only the host can say so, for all of them; this
    /// stays after the lab, and adds a choice without changing anyone's.
    pub(crate) fn allow_congestion_control(&self) -> Result<()> {
        const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
        let wanted = self.congestion_control();
        let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
        if !available.split_whitespace().any(|name| name == wanted) {
            bail!(
                "this kernel has no congestion control '{wanted}' loaded (it has: {}); try \
                 'modprobe tcp_{wanted}'",
                available.trim()
            );
        }
        // Absent inside a container: then the namespaces tell whether they may.
        let Ok(allowed) = fs::read_to_string(ALLOWED) else { return Ok(()) };
        if allowed.split_whitespace().any(|name| name == wanted) {
            return Ok(());
        }
        fs::write(ALLOWED, format!("{} {wanted}", allowed.trim()))
            .with_context(|| format!("cannot add '{wanted}' to {ALLOWED}"))
    }
}
