//! Notifications to the kernel, with which it drops its copies of a file's metadata and pages.
//!
//! The kernel believes the length of a file for as long as metadata may be old, and reads no byte behind it. So a program
//! that opens or locks a file would read it with its last known length. The kernel drops the metadata by itself in neither
//! case. If two answers cross each other, the kernel takes the first for the newer one. So the notification is sent each
//! time: a comparison with the last sent metadata would not find that.

use fuser::{INodeNo, Notifier};
use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// The way to the kernel. Before the mount stands there is none, and nothing to drop.
#[derive(Default)]
pub(crate) struct Kernel {
    way: OnceLock<Way>,
}

struct Way {
    notifier: Notifier,
    droppings: Sender<Dropping>,
}

/// The continuation after the kernel has dropped its pages.
type Then = Box<dyn FnOnce() + Send>;

/// A file of which the kernel is to drop its pages.
type Dropping = (u64, Then);

/// The kernel keeps the pages of a file where the first byte to drop is this one, and drops its metadata only.
const NO_PAGES: i64 = -1;

impl Kernel {
    /// The mount stands.
    pub(crate) fn begin(&self, notifier: Notifier) -> io::Result<()> {
        let (droppings, dropped) = channel();
        start_dropping(notifier.clone(), dropped)?;
        // There is one mount.
        let _ = self.way.set(Way { notifier, droppings });
        Ok(())
    }

    /// The kernel asks for the metadata of a file before it uses them again. It waits for nothing here, so this may be called
    /// by a thread that answers a request of the same file.
    pub(crate) fn drop_attributes(&self, number: u64) {
        if let Some(way) = self.way.get() {
            // A file that the kernel does not know has none.
            let _ = way.notifier.inval_inode(INodeNo(number), NO_PAGES, 0);
        }
    }

    /// The kernel drops its pages of a file, and its metadata; then `then` is called.
    pub(crate) fn drop_pages(&self, number: u64, then: Then) {
        let unsent = match self.way.get() {
            Some(way) => way.droppings.send((number, then)).map_err(|unsent| unsent.0.1),
            None => Err(then),
        };
        if let Err(then) = unsent {
            then();
        }
    }
}

/// Drops pages of the kernel, on a thread of its own: the kernel waits for reads of the file that are under way, which other
/// threads answer.
fn start_dropping(notifier: Notifier, droppings: Receiver<Dropping>) -> io::Result<()> {
    let named = thread::Builder::new().name("mount-drop".to_owned());
    named.spawn(move || {
        for (number, then) in droppings {
            // A file that the kernel does not know has no pages.
            let _ = notifier.inval_inode(INodeNo(number), 0, 0);
            then();
        }
    })?;
    Ok(())
}
