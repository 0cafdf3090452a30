//! One check, and what came of it.

use serde::Serialize;

/// The names of all checks. A name never changes its meaning, since scripts and `docs/doctor.md` refer to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Id {
    /// Cores, and instructions for AES.
    Processor,
    /// The encryption rate of one core.
    Cipher,
    /// The rate of UDP within this machine.
    UdpLoopback,
    /// The receive buffer that the kernel grants.
    ReceiveBuffer,
    /// The send buffer that the kernel grants.
    SendBuffer,
    /// Segmentation and coalescing of datagrams.
    Offload,
    /// The largest packet on the way out.
    Mtu,
    /// Writing and reading a file.
    Disk,
    /// Open files.
    OpenFiles,
    /// The size of files.
    FileSize,
    /// Mounting without root.
    Fuse,
    /// The kernel's congestion controls for TCP.
    CongestionControl,
    /// Time that the hypervisor gave to others.
    Steal,
    /// Time that the control group was stopped.
    Throttling,
    /// Logging in.
    Ssh,
    /// The program on the other host.
    FarProgram,
    /// Whether UDP gets through.
    Udp,
    /// The round-trip time.
    Rtt,
    /// Lost packets.
    Loss,
    /// Datagrams that a host dropped.
    SocketDrops,
    /// The rate to the host.
    PathUp,
    /// The rate from the host.
    PathDown,
}

/// The result of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// Nothing is in the way.
    Ok,
    /// Worth knowing; no harm was measured.
    Note,
    /// Harm was measured.
    Warn,
    /// Something does not work at all.
    Fail,
    /// Not tried.
    Skip,
}

/// Whether a failure passes by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Persistence {
    /// It may.
    MayPass,
    /// Something must be changed.
    Lasting,
}

/// A measured value.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Measure {
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
}

/// A check with its result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Check {
    pub(crate) id: Id,
    pub(crate) state: State,
    /// The finding, in words for the user.
    pub(crate) found: String,
    #[serde(flatten)]
    pub(crate) measure: Option<Measure>,
    /// The remedy: a command, or a sentence.
    pub(crate) remedy: Option<String>,
    #[serde(skip)]
    pub(crate) persistence: Persistence,
}

impl Check {
    pub(crate) fn new(id: Id, state: State, found: impl Into<String>) -> Self {
        let persistence = Persistence::Lasting;
        Self { id, state, found: found.into(), measure: None, remedy: None, persistence }
    }

    pub(crate) fn ok(id: Id, found: impl Into<String>) -> Self {
        Self::new(id, State::Ok, found)
    }

    pub(crate) fn measured(self, value: f64, unit: &'static str) -> Self {
        Self { measure: Some(Measure { value, unit }), ..self }
    }

    pub(crate) fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    pub(crate) fn passing(self) -> Self {
        Self { persistence: Persistence::MayPass, ..self }
    }
}

impl Id {
    /// All of them.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 22] = [
        Self::Processor,
        Self::Cipher,
        Self::UdpLoopback,
        Self::ReceiveBuffer,
        Self::SendBuffer,
        Self::Offload,
        Self::Mtu,
        Self::Disk,
        Self::OpenFiles,
        Self::FileSize,
        Self::Fuse,
        Self::CongestionControl,
        Self::Steal,
        Self::Throttling,
        Self::Ssh,
        Self::FarProgram,
        Self::Udp,
        Self::Rtt,
        Self::Loss,
        Self::SocketDrops,
        Self::PathUp,
        Self::PathDown,
    ];

    /// As users read it.
    pub(crate) fn name(self) -> String {
        let name = serde_json::to_value(self).ok();
        name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_is_documented() {
        let document = include_str!("../../../docs/doctor.md");
        for id in Id::ALL {
            let heading = format!("\n### {}\n", id.name());
            assert!(document.contains(&heading), "docs/doctor.md has no {}", id.name());
        }
        assert_eq!(document.matches("\n### ").count(), Id::ALL.len());
    }
}
