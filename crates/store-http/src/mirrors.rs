//! One file on several servers, each of which may have several connections.
//!
//! A server that fails for good is not used any more while others are. The file fails if none is left.

use crate::fetcher::{Answers, Server, error_of};
use crate::open::{HttpOpen, NoRanges};
use crate::shared::{Shared, lock};
use crate::standing::{Fate, Standing};
use crate::store::Conduct;
use hikyaku_http::{Client, Fault, First, Known, Source, Url};
use hikyaku_store::{FetchError, Fetcher, StorePath};
use hikyaku_transfer::{Limit, SEGMENT, SegmentIndex};
use hikyaku_units::RetryPolicy;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Why a server that failed for good is lost.
const DROPPED: &str = "it is not used any more";
/// How often a connection that waits looks whether its request is over.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Called with a server that is not used any more, and the reason.
pub type Hearing = Arc<dyn Fn(&Url, &Fault) + Send + Sync>;

/// A file that several servers have.
pub struct Mirrors {
    servers: Vec<Arc<Server>>,
    replicas: Arc<Replicas>,
}

/// The servers of a file, or the one of several files: how their connections behave together.
pub(crate) struct Replicas {
    what: What,
    retries: u32,
    retry: RetryPolicy,
    limit: Option<Arc<Limit>>,
    heard_by: Option<Hearing>,
    urls: Vec<Url>,
    standings: Mutex<Vec<Standing>>,
    /// Why a server, or the file, failed last.
    fault: Mutex<Option<Fault>>,
    /// The server that each segment came from.
    came: Mutex<BTreeMap<SegmentIndex, usize>>,
}

/// The content of the servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// One file. A server that cannot give it is of no use.
    OneFile,
    /// Any number of files.
    AnyFile,
}

/// A request that has failed.
pub(crate) struct Failed {
    /// When it was begun.
    pub(crate) begun: Instant,
    /// Whether a byte of the file has come.
    pub(crate) has_sent: bool,
    /// How often no answer came to an attempt to connect before, for the same bytes.
    pub(crate) unanswered: u32,
}

/// The step after a fault.
pub(crate) enum Next {
    /// The rest is requested again.
    Again,
    /// It is, once the server has a place for another connection.
    WithPlace,
    /// The request fails.
    Failed(FetchError),
}

impl Mirrors {
    /// A file of `known` content. `first` is the first answer of the source of this number, if it is used. Returns `None` if the
    /// size is not known.
    pub fn new(
        client: &Arc<Client>,
        (conduct, limit, heard_by): (&Conduct, &Arc<Limit>, Hearing),
        sources: Vec<Source>,
        (known, mut first): (&Known, Option<(usize, First)>),
    ) -> Option<Self> {
        let urls: Vec<Url> = sources.iter().map(|source| source.place.first.clone()).collect();
        let mut replicas = Replicas::new(conduct, urls, What::OneFile);
        (replicas.limit, replicas.heard_by) = (Some(limit.clone()), Some(heard_by));
        let (replicas, answers) = (Arc::new(replicas), Answers::of(known));
        let server = |(at, source): (usize, Source)| {
            let (place, path) = (source.place.clone(), StorePath::ROOT);
            let dir = place.first.dir();
            let shared = Shared::new(client.clone(), conduct.clone(), dir, (path.clone(), place));
            let first = first.take_if(|(of, _)| *of == at).map(|(_, first)| first);
            let (shared, how) = (Arc::new(shared), (first, NoRanges::Refused));
            let open = HttpOpen::of(&shared, (&path, source), known.clone(), how)?;
            Some(Arc::new(Server::of_file(shared, open, answers, (&replicas, at))))
        };
        let servers: Option<Vec<_>> = sources.into_iter().enumerate().map(server).collect();
        Some(Self { servers: servers?, replicas })
    }

    /// Connections to these servers, at most `most` and `of_one` to one, in the order in which they should be used: the first of
    /// each server, then the second. Servers that are not used any more are left out.
    pub fn fetchers(
        &self,
        servers: &[usize],
        (most, of_one): (usize, usize),
    ) -> Vec<Arc<dyn Fetcher>> {
        let used: Vec<&Arc<Server>> = servers
            .iter()
            .filter(|at| self.is_used(**at))
            .filter_map(|at| self.servers.get(*at))
            .collect();
        let mut all: Vec<_> = used.iter().map(|one| one.fetchers(of_one).into_iter()).collect();
        let mut fetchers = Vec::new();
        while fetchers.len() < most {
            let before = fetchers.len();
            fetchers.extend(all.iter_mut().filter_map(Iterator::next));
            if fetchers.len() == before {
                break;
            }
        }
        fetchers.truncate(most);
        fetchers
    }

    /// Whether a server is in use.
    pub fn is_used(&self, server: usize) -> bool {
        lock(&self.replicas.standings).get(server).is_some_and(|one| one.fate == Fate::Used)
    }

    /// A server is not used any more.
    pub fn leave_out(&self, server: usize) {
        if let Some(standing) = lock(&self.replicas.standings).get_mut(server) {
            standing.fate = Fate::Dropped;
        }
    }

    /// The reason of the last failure for good.
    pub fn take_fault(&self) -> Option<Fault> {
        lock(&self.replicas.fault).take()
    }

    /// The server from which all of these bytes came; `None` if they came from several, or earlier.
    pub fn origin(&self, bytes: &Range<u64>) -> Option<usize> {
        let came = lock(&self.replicas.came);
        let segments = bytes.start / SEGMENT..bytes.end.div_ceil(SEGMENT);
        let mut servers =
            segments.map(|index| came.get(&SegmentIndex(u32::try_from(index).ok()?)).copied());
        let first = servers.next()??;
        servers.all(|other| other == Some(first)).then_some(first)
    }

    /// Forgets the origins of segments that are fetched again. `is_kept` is called with each segment and its server.
    pub fn forget(&self, is_kept: impl Fn(SegmentIndex, usize) -> bool) {
        lock(&self.replicas.came).retain(|index, server| is_kept(*index, *server));
    }
}

impl Replicas {
    pub(crate) fn new(conduct: &Conduct, urls: Vec<Url>, what: What) -> Self {
        let now = Instant::now();
        let standings = urls.iter().map(|_| Standing::new(now)).collect();
        Self {
            what,
            retries: conduct.retries,
            retry: conduct.retry,
            limit: None,
            heard_by: None,
            urls,
            standings: Mutex::new(standings),
            fault: Mutex::default(),
            came: Mutex::default(),
        }
    }

    pub(crate) fn note(&self, server: usize, index: SegmentIndex) {
        lock(&self.came).entry(index).or_insert(server);
    }

    /// Bytes that are read at once.
    pub(crate) fn piece_bytes(&self, most: usize) -> usize {
        self.limit.as_ref().map_or(most, |limit| limit.piece_bytes(most))
    }

    /// Waits for the limit of all servers.
    pub(crate) fn pace(&self, bytes: u64, is_over: impl Fn() -> bool) {
        if let Some(limit) = &self.limit {
            limit.wait(bytes, is_over);
        }
    }

    pub(crate) fn count_flowing(&self, server: usize, is_flowing: bool) {
        let flowing = &mut lock(&self.standings)[server].flowing;
        *flowing = if is_flowing { *flowing + 1 } else { flowing.saturating_sub(1) };
    }

    pub(crate) fn succeed(&self, server: usize) {
        lock(&self.standings)[server].succeed();
    }

    pub(crate) fn may_be_asked(&self, server: usize) -> bool {
        lock(&self.standings)[server].may_be_asked(Instant::now())
    }

    /// Waits until a server may be asked, or `is_over`. If bytes come from another one meanwhile, this one is lost for a while.
    pub(crate) fn wait(&self, server: usize, is_over: impl Fn() -> bool) -> Result<(), FetchError> {
        while !is_over() {
            let (now, standings) = (Instant::now(), lock(&self.standings));
            if standings[server].may_be_asked(now) {
                return Ok(());
            }
            if standings[server].fate == Fate::Dropped {
                return Err(FetchError::Lost(DROPPED.to_owned()));
            }
            let mut others = standings.iter().enumerate().filter(|(at, _)| *at != server);
            if others.any(|(_, other)| other.flowing > 0) {
                return Err(FetchError::Lost("another server is asked".to_owned()));
            }
            let until = standings[server].not_before;
            drop(standings);
            std::thread::sleep(until.saturating_duration_since(now).min(LOOK_EVERY));
        }
        Ok(())
    }

    /// Waits a moment for a place among the connections to a server that accepts no further one.
    ///
    /// # Errors
    ///
    /// Others of these files go on.
    pub(crate) fn wait_for_place(&self, server: usize) -> Result<(), FetchError> {
        if lock(&self.standings)[server].flowing > 0 {
            return Err(FetchError::Full);
        }
        std::thread::sleep(LOOK_EVERY);
        Ok(())
    }

    /// Decides what a fault of a request means for its server.
    pub(crate) fn judge(&self, server: usize, failed: &Failed, fault: Fault) -> Next {
        match fault {
            Fault::Stopped => return Next::Failed(FetchError::Lost("stopped".to_owned())),
            // Earlier and later bytes belong to two versions.
            Fault::Changed => {
                let error = error_of(&fault);
                *lock(&self.fault) = Some(fault);
                return Next::Failed(error);
            }
            // Connections of other files are all that the server grants.
            Fault::Full if lock(&self.standings)[server].flowing == 0 => return Next::WithPlace,
            Fault::Full => return Next::Failed(FetchError::Full),
            _ => {}
        }
        let (now, mut standings) = (Instant::now(), lock(&self.standings));
        let standing = &mut standings[server];
        if standing.flowing > 0 && !failed.has_sent {
            // The server has enough of them. Those that are at work go on.
            if fault.is_refusal() || fault.is_connect_timeout() && failed.unanswered > 0 {
                return Next::Failed(FetchError::Full);
            }
            // It answers others: the packets of this one were lost.
            if fault.is_connect_timeout() {
                return Next::Again;
            }
        }
        let begun = failed.begun;
        let is_counted = begun < standing.failed;
        let may_again = is_counted || standing.failures < self.retries;
        let may_wait = is_counted || standing.waited.next(&fault, Duration::ZERO).is_some();
        if fault.may_pass() && may_again && may_wait {
            let wait = |failures| {
                let own = self.retry.wait(failures);
                // It answers at once, whatever wait it asks for: the attempts would be used up before any of its
                // connections is over.
                let least = match fault.is_busy() {
                    true => RetryPolicy::WEB_BUSY.wait(failures),
                    false => Duration::ZERO,
                };
                fault.retry_after().unwrap_or(own).max(least)
            };
            standing.fail(begun, now, wait);
            // All of those that began together were refused: fewer are tried.
            return match fault.is_busy() && !is_counted {
                true => Next::Failed(FetchError::Full),
                false => Next::Again,
            };
        }
        if self.what == What::AnyFile {
            standing.succeed();
            return Next::Failed(error_of(&fault));
        }
        let is_first = std::mem::replace(&mut standing.fate, Fate::Dropped) == Fate::Used;
        let is_last = standings.iter().all(|standing| standing.fate == Fate::Dropped);
        drop(standings);
        let error = match fault {
            // Earlier bytes are useless.
            Fault::Unrecognised | Fault::NoRanges if is_last => error_of(&fault),
            _ => FetchError::Lost(DROPPED.to_owned()),
        };
        if is_first {
            if let Some(heard_by) = self.heard_by.as_ref().filter(|_| !is_last) {
                heard_by(&self.urls[server], &fault);
            }
            *lock(&self.fault) = Some(fault);
        }
        Next::Failed(error)
    }
}
