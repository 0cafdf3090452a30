//! The two ends of a mount, for tests: requests as the kernel sends them, over a socket, and a server that is a function.

use super::Front;
use crate::core::{Access, Core, Opens, Settings, State};
use crate::crew::Crew;
use crate::locks::Locking;
use crate::nodes::{ROOT, Seen};
use crate::options::Checks;
use fuser::{BackgroundSession, Config, Session, SessionACL};
use hikyaku_store::{ErrorKind, Found, Identity, Kind, Owner, StorePath, Time};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A mount without a kernel and a server.
pub(super) struct Place {
    pub(super) core: Arc<Core>,
    kernel: UnixDatagram,
    last: AtomicU64,
    is_over: Arc<AtomicBool>,
    server: Option<JoinHandle<()>>,
    _session: BackgroundSession,
}

/// The numbers of the requests (fuse(4)).
const LOOKUP: u32 = 1;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const INIT: u32 = 26;
const DESTROY: u32 = 38;
const HEADER_BYTES: usize = 40;
/// Where the answer to GETATTR has the number of the file.
const ATTRIBUTES_AT: usize = 16;
/// Longer than any answer takes.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

impl Place {
    /// `server` has the answer to each question for metadata.
    pub(super) fn new(
        (ttl, checks): (Duration, Checks),
        mut server: impl FnMut(&StorePath) -> Result<Found, ErrorKind> + Send + 'static,
    ) -> Self {
        let settings = Settings {
            attr_ttl: ttl,
            opens: Opens::Ask,
            timeout: PATIENCE,
            cache_bytes: 1 << 20,
            access: Access::Write,
            locking: Locking::Server,
            owner: None,
            checks,
        };
        let core = Core::new(settings, Crew::new(vec![None], Duration::ZERO), None);
        core.state().observe(&StorePath::ROOT, seen(dir(ROOT)));
        let (kernel, device) = UnixDatagram::pair().unwrap();
        kernel.set_read_timeout(Some(PATIENCE)).unwrap();
        let hello = [&7u32.to_le_bytes()[..], &36u32.to_le_bytes(), &[0; 56]].concat();
        kernel.send(&request((INIT, 1), (0, 0), &hello)).unwrap();
        let config = Config::default();
        let session =
            Session::from_fd(Front(core.clone()), device.into(), SessionACL::All, config).unwrap();
        let session = session.spawn().unwrap();
        let is_over = Arc::<AtomicBool>::default();
        let (asked, ends) = (core.clone(), is_over.clone());
        let server = thread::spawn(move || {
            while !ends.load(Ordering::SeqCst) {
                let look = asked.state().take_look();
                match look {
                    Some((path, sent, done)) => {
                        let found = server(&path);
                        done(found.map(|found| Seen { sent, ..seen(found) }), sent);
                    }
                    None => thread::sleep(Duration::from_millis(1)),
                }
            }
        });
        let place = Self {
            core,
            kernel,
            last: AtomicU64::new(1),
            is_over,
            server: Some(server),
            _session: session,
        };
        place.answer().unwrap();
        place
    }

    /// A thread looks a name up; the number of its node, 0 for a name that is absent.
    pub(super) fn look_up(&self, thread: u32, parent: u64, name: &str) -> Result<u64, i32> {
        self.send(LOOKUP, (parent, thread), &[name.as_bytes(), b"\0"].concat());
        self.answer().map(|entry| number_at(&entry, 0))
    }

    /// A thread asks for the metadata of a node; the number in them.
    pub(super) fn attributes(&self, thread: u32, node: u64) -> Result<u64, i32> {
        self.send(GETATTR, (node, thread), &[0; 16]);
        self.answer().map(|entry| number_at(&entry, ATTRIBUTES_AT))
    }

    /// A thread opens a node; the handle.
    pub(super) fn open(&self, thread: u32, node: u64) -> Result<u64, i32> {
        self.begin_open(thread, node);
        self.end_open()
    }

    pub(super) fn begin_open(&self, thread: u32, node: u64) {
        self.send(OPEN, (node, thread), &[0; 8]);
    }

    pub(super) fn end_open(&self) -> Result<u64, i32> {
        self.answer().map(|open| number_at(&open, 0))
    }

    fn send(&self, what: u32, whom: (u64, u32), body: &[u8]) {
        let unique = self.last.fetch_add(1, Ordering::SeqCst) + 1;
        self.kernel.send(&request((what, unique), whom, body)).unwrap();
    }

    /// The next answer, or its error number.
    fn answer(&self) -> Result<Vec<u8>, i32> {
        let mut answer = vec![0; 4096];
        let length = self.kernel.recv(&mut answer).unwrap();
        let errno = i32::from_le_bytes(answer[4..8].try_into().unwrap());
        if errno == 0 { Ok(answer[16..length].to_vec()) } else { Err(-errno) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.server.take().into_iter().for_each(|server| drop(server.join()));
        self.send(DESTROY, (0, 0), &[]);
    }
}

/// A request of a thread about a node.
fn request((what, unique): (u32, u64), (node, thread): (u64, u32), body: &[u8]) -> Vec<u8> {
    let length = (HEADER_BYTES + body.len()) as u32;
    let (user, rest) = (0u64.to_le_bytes(), 0u32.to_le_bytes());
    let (length, what, thread) = (length.to_le_bytes(), what.to_le_bytes(), thread.to_le_bytes());
    let (unique, node) = (unique.to_le_bytes(), node.to_le_bytes());
    [&length[..], &what, &unique, &node, &user, &thread, &rest, body].concat()
}

fn number_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

pub(super) fn seen(found: Found) -> Seen {
    let sent = crate::changes::Turn::default();
    Seen { found, link: None, at: State::place(), asked: Instant::now(), sent }
}

pub(super) fn file(number: u64) -> Found {
    Found {
        kind: Kind::File,
        size: 1,
        allocated: 1,
        mode: 0o644,
        owner: Owner::default(),
        modified: Time::default(),
        identity: Identity { device: 1, number },
        version: None,
    }
}

pub(super) fn dir(number: u64) -> Found {
    Found { kind: Kind::Dir, ..file(number) }
}
