//! A child process that can be sent a signal, also when it has ended and its number belongs to another process.

#[cfg(target_os = "linux")]
use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal, kill_process};
#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
use std::process::Child;

/// How the process is addressed.
pub(super) enum ChildProcess {
    /// A descriptor that means this process only (pidfd_open(2)).
    #[cfg(target_os = "linux")]
    Descriptor(OwnedFd),
    /// Its number, where the kernel or a sandbox refuses the descriptor, or the system has none.
    Number(Pid),
}

impl ChildProcess {
    #[cfg(target_os = "linux")]
    pub(super) fn new(child: &Child) -> Self {
        let pid = Pid::from_child(child);
        pidfd_open(pid, PidfdFlags::empty()).map_or(Self::Number(pid), Self::Descriptor)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn new(child: &Child) -> Self {
        Self::Number(Pid::from_child(child))
    }

    /// Sends `signal`. A process that has ended is not an error.
    pub(super) fn send(&self, signal: Signal) {
        let _ = match self {
            #[cfg(target_os = "linux")]
            Self::Descriptor(descriptor) => pidfd_send_signal(descriptor, signal),
            Self::Number(pid) => kill_process(*pid, signal),
        };
    }
}
