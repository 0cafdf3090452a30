//! TCP settings of the lab's hosts. All of them are set explicitly, so that the settings of the
//! machine do not affect the result.

use crate::trouble;
use anyhow::{Context, Result};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// A set of TCP settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostProfile {
    /// Debian's defaults: CUBIC, receive buffers up to 6 MB, send buffers up to 4 MB.
    Debian {
        /// A congestion control other than CUBIC.
        congestion_control: Option<String>,
    },
    /// Tuned for long fat networks: buffers up to 1 GB.
    Tuned {
        /// A congestion control other than CUBIC.
        congestion_control: Option<String>,
    },
}

/// Enables IP forwarding in the network namespace of the calling thread.
pub(crate) fn forward_here() -> std::io::Result<()> {
    ["ipv4/ip_forward", "ipv6/conf/all/forwarding"].iter().try_for_each(|key| set(key, "1"))
}

/// Writes one setting of `/proc/sys/net`, if the kernel has it.
fn set(key: &str, value: &str) -> std::io::Result<()> {
    let path = Path::new("/proc/sys/net").join(key);
    if !path.exists() {
        return Ok(());
    }
    fs::write(&path, value).map_err(|error| {
        let what = format!("cannot set {} to '{value}': {error}", path.display());
        std::io::Error::new(error.kind(), what)
    })
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

    /// The name of the TCP congestion control.
    pub fn congestion_control(&self) -> &str {
        match self {
            Self::Debian { congestion_control } | Self::Tuned { congestion_control } => {
                congestion_control.as_deref().unwrap_or("cubic")
            }
        }
    }

    /// Keys below `/proc/sys/net` and their values.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        let (rmem, wmem) = match self {
            Self::Debian { .. } => ("4096 131072 6291456", "4096 16384 4194304"),
            Self::Tuned { .. } => ("4096 131072 1073741824", "4096 65536 1073741824"),
        };
        let fixed = [
            ("ipv4/tcp_rmem", rmem),
            ("ipv4/tcp_wmem", wmem),
            // Otherwise a connection would start from cached metrics of the previous one.
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
            // Only the programs under test may send: the counters include every packet.
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

    /// Applies the settings in the network namespace of the calling thread.
    pub(crate) fn apply_here(&self) -> std::io::Result<()> {
        self.settings().iter().try_for_each(|(key, value)| set(key, value))
    }

    /// Allows the congestion control in all network namespaces. Only the initial namespace can do
    /// this, for all of them. The setting stays after the lab has ended; it adds an allowed
    /// algorithm and changes no default.
    pub(crate) fn allow_congestion_control(&self) -> Result<()> {
        const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
        let wanted = self.congestion_control();
        let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
        if !available.split_whitespace().any(|name| name == wanted) {
            let available = available.trim();
            return Err(trouble::with_remedy(
                ErrorKind::NotFound,
                format!(
                    "this kernel has no congestion control '{wanted}' loaded, only: {available}"
                ),
                format!("modprobe tcp_{wanted}"),
            ));
        }
        // Not visible in a container. Then setting the algorithm in the namespace shows whether it
        // is allowed.
        let Ok(allowed) = fs::read_to_string(ALLOWED) else { return Ok(()) };
        if allowed.split_whitespace().any(|name| name == wanted) {
            return Ok(());
        }
        fs::write(ALLOWED, format!("{} {wanted}", allowed.trim()))
            .with_context(|| format!("cannot add '{wanted}' to {ALLOWED}"))
    }
}
