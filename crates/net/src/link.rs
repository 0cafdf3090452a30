//! The state that a driver and the handles of one connection share: queues, counters and wakers.

use crate::budget::Budget;
use crate::command::{Command, Key, Order};
use crate::inbox::{Inbox, Told};
use crate::mailbox::Mailbox;
use crate::notify::Notify;
use crate::outbox::Outbox;
use crate::sync::{AtomicBool, AtomicU64, OnceLock, SegQueue};
use hikyaku_proto::{CloseReason, Config, Stats, StreamId, StreamKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The shared side of a connection.
pub(crate) struct Link {
    pub(crate) key: Key,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) remote: SocketAddr,
    /// Streams that want attention; each is here at most once.
    pub(crate) ready: SegQueue<Arc<StreamLink>>,
    touched: AtomicBool,
    /// Bytes that applications took and the driver does not know of.
    untold: AtomicU64,
    step: u64,
    /// Crumbs that applications have not taken.
    crumbs: AtomicU64,
    /// Streams that the peer opened and the application has not accepted.
    pub(crate) opened: [SegQueue<Arc<StreamLink>>; 2],
    pub(crate) on_opened: Notify,
    /// Of what writers have given and the driver has not taken.
    pub(crate) budget: Budget,
    closed: OnceLock<Final>,
    pub(crate) on_closed: Notify,
}

/// The state that remains of a closed connection.
pub(crate) struct Final {
    pub(crate) reason: CloseReason,
    pub(crate) stats: Stats,
}

/// Keeps a connection alive. Dropping the last of its handles notifies the driver.
pub(crate) struct Handle {
    pub(crate) link: Arc<Link>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.link.order(Order::Abandon);
    }
}

/// The shared side of a stream.
pub(crate) struct StreamLink {
    pub(crate) id: StreamId,
    queued: AtomicBool,
    /// Whether its writer is in the line of those that wait for the budget.
    pub(crate) waits: AtomicBool,
    pub(crate) outbox: Outbox,
    pub(crate) inbox: Inbox,
}

/// Maximum number of taken bytes between two reports to the driver; at 10 Gbit/s a report each millisecond.
const MAX_STEP: u64 = 1 << 20;
/// A shorter piece costs more than twice its bytes while it waits.
const CRUMB: usize = 256;
/// Maximum number of queued small pieces, which take a hundred megabytes of memory. Further ones stay in the transport,
/// which joins adjacent pieces: a peer that sends one byte a packet would otherwise fill two hundred times the window.
pub(crate) const MOST_CRUMBS: u64 = if cfg!(test) { 1 << 10 } else { 1 << 18 };

impl Link {
    pub(crate) fn new(
        key: Key,
        mailbox: Arc<Mailbox>,
        remote: SocketAddr,
        config: &Config,
    ) -> Arc<Self> {
        // The peer receives a larger limit when an eighth of the window is free, so this delay has no effect.
        let window = config.receive_window.min(config.initial_window).bytes();
        Arc::new(Self {
            key,
            mailbox,
            remote,
            ready: SegQueue::new(),
            touched: AtomicBool::new(false),
            untold: AtomicU64::new(0),
            step: MAX_STEP.min(window / 16).max(1),
            crumbs: AtomicU64::new(0),
            opened: [SegQueue::new(), SegQueue::new()],
            on_opened: Notify::default(),
            budget: Budget::new(config.send_buffer),
            closed: OnceLock::new(),
            on_closed: Notify::default(),
        })
    }

    pub(crate) fn order(&self, order: Order) {
        self.mailbox.send(Command::For(self.key, order));
    }

    /// Asks the driver to look at `stream`.
    pub(crate) fn touch(&self, stream: &Arc<StreamLink>) {
        self.enlist(stream);
        self.call();
    }

    /// Has the driver look at `stream` when it is called next.
    fn enlist(&self, stream: &Arc<StreamLink>) {
        if !stream.queued.swap(true, Ordering::AcqRel) {
            self.ready.push(stream.clone());
        }
    }

    /// The application took `bytes` of `stream`. The driver is called when that may hold the peer up.
    pub(crate) fn on_taken(&self, stream: &Arc<StreamLink>, bytes: u64) {
        let told = stream.inbox.take(bytes);
        let untold = self.untold.fetch_add(bytes, Ordering::AcqRel);
        self.enlist(stream);
        if told == Told::Due || untold + bytes >= self.step {
            self.call();
        }
    }

    /// A piece of `len` bytes goes to an application.
    pub(crate) fn on_given(&self, len: usize) {
        if len < CRUMB {
            self.crumbs.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The last holder of a piece of `len` bytes has dropped it. The driver is woken when there is room for many others.
    pub(crate) fn on_let_go(&self, len: usize) {
        if len < CRUMB && self.crumbs.fetch_sub(1, Ordering::AcqRel) == MOST_CRUMBS / 2 {
            self.call();
        }
    }

    /// Crumbs that wait for applications.
    pub(crate) fn crumbs(&self) -> u64 {
        self.crumbs.load(Ordering::Acquire)
    }

    fn call(&self) {
        if !self.touched.swap(true, Ordering::AcqRel) {
            self.order(Order::Touch);
        }
    }

    /// The driver handles all earlier calls.
    pub(crate) fn attend(&self) {
        // Exchanged and not only stored: what the last caller did is to be seen from here on.
        self.touched.swap(false, Ordering::AcqRel);
        self.untold.swap(0, Ordering::AcqRel);
    }

    pub(crate) fn next_ready(&self) -> Option<Arc<StreamLink>> {
        let stream = self.ready.pop()?;
        // As in `attend`.
        stream.queued.swap(false, Ordering::AcqRel);
        Some(stream)
    }

    /// The connection is closed, for this reason. [`Self::announce_end`] wakes the waiting tasks.
    pub(crate) fn close(&self, reason: CloseReason, stats: Stats) {
        let _ = self.closed.set(Final { reason, stats });
    }

    /// Wakes the tasks that wait for the end of the connection.
    pub(crate) fn announce_end(&self) {
        self.on_closed.wake_all();
        self.on_opened.wake_all();
    }

    pub(crate) fn end(&self) -> Option<&Final> {
        self.closed.get()
    }

    /// Why the connection ended; "closed by this side" if the driver is gone without a word.
    pub(crate) fn reason(&self) -> CloseReason {
        self.end().map_or(CloseReason::Local, |end| end.reason.clone())
    }
}

impl StreamLink {
    pub(crate) fn new(id: StreamId) -> Arc<Self> {
        Arc::new(Self {
            id,
            queued: AtomicBool::new(false),
            waits: AtomicBool::new(false),
            outbox: Outbox::new(),
            inbox: Inbox::default(),
        })
    }
}

/// Where streams of a kind wait to be accepted.
pub(crate) const fn kind_index(kind: StreamKind) -> usize {
    match kind {
        StreamKind::Ordered => 0,
        StreamKind::Object => 1,
    }
}
