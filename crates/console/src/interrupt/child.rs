//! A child process that can be sent a signal, also when it has ended and its number belongs to another process.

use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use std::process::Child;

/// How the process is addressed.
pub(super) enum ChildProcess {
    /// A descriptor that means this process only (pidfd_open(2)).
    Descriptor(OwnedFd),
    /// Its number, where the kernel or a sandbox refuses the descriptor.
    Number(Pid),
}

impl ChildProcess {
    pub(super) fn new(child: &Child) -> Self {
        let pid = Pid::from_child(child);
        pidfd_open(pid, PidfdFlags::empty()).map_or(Self::Number(pid), Self::Descriptor)
    }

    /// Sends `signal`. A process that has ended is not an error.
    pub(super) fn send(&self, signal: Signal) {
        let _ = match self {
            Self::Descriptor(descriptor) => pidfd_send_signal(descriptor, signal),
            Self::Number(pid) => kill_process(*pid, signal),
        };
    }
}
