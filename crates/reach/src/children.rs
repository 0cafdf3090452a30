//! Programs that log in somewhere and may ask the user something: a signal that ends the application ends them, too.

use rustix::process::{Pid, Signal, kill_process};
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The `ssh` processes of an application that are logging in. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct Children(Arc<Mutex<Vec<Pid>>>);

impl Children {
    /// Sends each of them this signal, by its number; SIGTERM where the number names none. A process that has ended
    /// is left out.
    pub fn signal(&self, number: i32) {
        let signal = Signal::from_named_raw(number).unwrap_or(Signal::TERM);
        for pid in self.all().iter() {
            let _ = kill_process(*pid, signal);
        }
    }

    /// Lists `child` for as long as the result lives.
    pub(crate) fn enter(&self, child: &Child) -> Entry {
        let pid = Pid::from_child(child);
        self.all().push(pid);
        Entry { children: self.clone(), pid }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the list. Dropping it gives it back.
pub(crate) struct Entry {
    children: Children,
    pid: Pid,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.children.all().retain(|pid| *pid != self.pid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    #[test]
    fn a_signal_ends_those_that_are_listed() {
        let children = Children::default();
        let mut listed = Command::new("sleep").arg("60").spawn().unwrap();
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        let entry = children.enter(&listed);
        drop(children.enter(&other));
        children.signal(Signal::HUP.as_raw());
        assert_eq!(listed.wait().unwrap().signal(), Some(Signal::HUP.as_raw()));
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
        drop(entry);
        assert!(children.all().is_empty());
    }
}
