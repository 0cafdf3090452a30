//! A file that comes in ranges by the mover: from one server or several, and the tuner decides the number of connections.
//!
//! Parts that do not match the digests are fetched again. Digests of pieces show the wrong pieces, and a server that sent a
//! whole wrong piece is not used any more. With a digest of the whole file only, one server after the other is left out: its
//! parts come from the others. If one server lied, this ends with the right file.

use super::continued::Continued;
use super::{Added, Tools, Unfetched, damaged};
use crate::metalink::Expect;
use crate::outcome::Damaged;
use crate::target::{Existing, Spot, discard};
use crate::tunings::Group;
use crate::verify::{Sums, Verdict, attempts, liars};
use anyhow::{Context, Error, Result, anyhow};
use hikyaku_console::{Kept, causes_of};
use hikyaku_fs::{FilePlace, PeerPath};
use hikyaku_http::{Fault, First, Function, Known, Source, Url};
use hikyaku_job::{Meter as Progress, Opened};
use hikyaku_mover::{
    Epoch, Expected, FetchError, Fetched, File, Job, Meter, Plan, Pool, ReadAt, Seen, ServerId,
    Tuning, fetch,
};
use hikyaku_store::{
    ContentToken, ErrorKind, Fetcher, Store, StoreError, StorePath, Time, Versions,
};
use hikyaku_store_http::{Conduct, Memory, Mirrors};
use hikyaku_transfer::{Proven, Remains, SEGMENT, SegmentIndex};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

/// Connections to all servers of a file at most.
const CONNECTIONS_MAX: usize = 256;
/// Permission bits of a file of which nothing else is known, before those of the umask are removed.
const MODE: u32 = 0o666;
/// How often the figures are shown.
const SHOW_EVERY: Duration = Duration::from_millis(50);

/// A download in parts.
pub(super) struct Ranged<'a> {
    tools: &'a Tools<'a>,
    spot: &'a Spot,
    /// The URLs of the servers, and as the user may see them.
    places: Vec<Url>,
    urls: Vec<String>,
    known: &'a Known,
    expect: &'a Expect,
    total: u64,
    mirrors: Mirrors,
    /// The server whose first answer began the download.
    first: usize,
}

/// How a run of the mover has ended.
enum Ended {
    /// The file has its name.
    Done,
    /// It has come whole, and is not what is expected.
    Refused(Verdict),
}

/// Whether a server is known to have sent wrong bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Liars {
    /// One is, and is not used any more.
    Found,
    /// Each wrong piece came from several servers, or no other server is left.
    Hidden,
}

/// The parts of the file that the next run fetches.
#[derive(Clone, Copy)]
enum Again<'a> {
    /// The parts that no earlier run has left.
    Missing,
    /// Also these parts, which are wrong.
    Parts(&'a [Range<u64>]),
    /// Also all that did not come from these servers.
    NotFrom(&'a [usize]),
}

impl<'a> Ranged<'a> {
    /// `first` is the first answer of a server. Servers that are not `used` are left out.
    pub(super) fn new(
        tools: &'a Tools<'a>,
        spot: &'a Spot,
        (sources, used): (Vec<Source>, &[bool]),
        (known, expect, total): (&'a Known, &'a Expect, u64),
        (first, answer): (usize, First),
    ) -> Result<Self> {
        let shown = tools.show.totals.clone();
        let heard_by = Arc::new(move |url: &Url, fault: &Fault| {
            let why = causes_of(fault);
            shown.remark(format!("{url} is not used any more: {why}"));
        });
        let conduct = Conduct {
            retries: tools.conduct.retries,
            retry: tools.conduct.retry,
            stop: tools.interrupted.clone(),
            memory: Memory::of_user(),
        };
        let places: Vec<Url> = sources.iter().map(|source| source.place.first.clone()).collect();
        let urls = places.iter().map(Url::to_string).collect();
        let how = (&conduct, tools.limit, heard_by as _);
        let mirrors = Mirrors::new(tools.client, how, sources, (known, Some((first, answer))));
        let mirrors = mirrors.context("the size of the file is not known")?;
        for (at, _) in used.iter().enumerate().filter(|(_, is_used)| !**is_used) {
            mirrors.leave_out(at);
        }
        Ok(Self { tools, spot, places, urls, known, expect, total, mirrors, first })
    }

    /// Goes on with a file of another program.
    pub(super) fn continue_with(&self, left: Continued) -> Result<()> {
        let plan = self.plan(&StorePath::ROOT.join(&self.spot.place.name)?, 0)?;
        let version = plan.version_of(0).context("the server names no version of the file")?;
        left.take_over(self.tools, self.spot, (&self.urls[self.first], version))
    }

    /// Fetches what is missing until all of it is right, and gives it its name.
    pub(super) fn run(&self) -> Result<(), Unfetched> {
        self.until_right().inspect_err(|error| {
            if is_useless(error) {
                self.discard();
            }
        })
    }

    fn until_right(&self) -> Result<(), Unfetched> {
        let all: Vec<usize> = (0..self.urls.len()).collect();
        let mut verdict = match self.fetch(&all, Again::Missing)? {
            Ended::Done => return Ok(()),
            Ended::Refused(verdict) => verdict,
        };
        let mut rounds = 2 * all.len() + 1;
        let mut sets = attempts(all.len()).into_iter();
        loop {
            let ended = match &verdict {
                Verdict::Right => return Ok(()),
                Verdict::Wrong(parts) if rounds > 0 => {
                    rounds -= 1;
                    match self.leave_out_liars(parts) {
                        Liars::Found => self.fetch(&all, Again::Parts(parts))?,
                        // Each part comes from one server then, and shows whether that lies.
                        Liars::Hidden => {
                            let used = |at: &usize| self.mirrors.is_used(*at);
                            let used: Vec<usize> = all.iter().copied().filter(used).collect();
                            let one = used.get(rounds % used.len().max(1)).copied();
                            self.fetch(one.as_slice(), Again::Parts(parts))?
                        }
                    }
                }
                Verdict::Wrong(_) => return Err(self.damaged()),
                Verdict::Differs(_) => {
                    let is_used = |set: &Vec<usize>| set.iter().any(|at| self.mirrors.is_used(*at));
                    let Some(set) = sets.find(is_used) else { return Err(self.damaged()) };
                    let names: Vec<&str> = set.iter().map(|at| self.urls[*at].as_str()).collect();
                    let names = names.join(", ");
                    let text = format!("the digest is wrong: fetched again from {names} only");
                    self.tools.show.remark(text);
                    self.fetch(&set, Again::NotFrom(&set))?
                }
            };
            match ended {
                Ended::Done => return Ok(()),
                Ended::Refused(now) => verdict = now,
            }
        }
    }

    fn damaged(&self) -> Unfetched {
        Unfetched::Local(damaged(self.expect, "removed").into())
    }

    /// A server from which a whole wrong piece came is not used any more, if there are others.
    fn leave_out_liars(&self, parts: &[Range<u64>]) -> Liars {
        let mut found = Liars::Hidden;
        for liar in liars(parts, |part| self.mirrors.origin(part)) {
            let others = (0..self.urls.len()).any(|at| at != liar && self.mirrors.is_used(at));
            if others && self.mirrors.is_used(liar) {
                found = Liars::Found;
                self.mirrors.leave_out(liar);
                let why = "what it sent does not have the digest of its piece";
                self.tools.show.remark(format!("{} is not used any more: {why}", self.urls[liar]));
            }
        }
        found
    }

    /// Fetches from these servers, and names the file if it is right.
    fn fetch(&self, servers: &[usize], again: Again<'_>) -> Result<Ended, Unfetched> {
        let local = Unfetched::Local;
        let (store, mut opened) = self.spot.open(&self.urls[self.first]).map_err(local)?;
        let path = StorePath::ROOT.join(&self.spot.place.name);
        let path = path.map_err(|error| local(error.into()))?;
        let is_complete = matches!(opened.remains.get(path.as_bytes()), Some(Remains::Whole(_)));
        if !is_complete && let Err(error) = self.tools.existing.get().check(&self.spot.place) {
            let version = self.plan(&path, 0).ok().and_then(|plan| plan.version_of(0));
            return match version.is_some_and(|it| self.spot.is_named(&*store, &opened, it)) {
                true => {
                    discard(&*store, &opened);
                    opened.journal.remove();
                    Ok(Ended::Done)
                }
                false => Err(local(error)),
            };
        }
        if let Some(Remains::Part(part)) = opened.remains.get_mut(path.as_bytes()) {
            let is_right = |index| self.is_right(index, again);
            part.proven = without(&part.proven, is_right);
            part.claimed = without(&part.claimed, is_right);
            // The servers that they came from are not known.
            part.heads.retain(|_| matches!(again, Again::Missing));
        }
        self.mirrors.forget(|index, server| match again {
            Again::Missing => true,
            Again::Parts(_) => self.is_right(index, again),
            Again::NotFrom(set) => set.contains(&server),
        });
        let groups = self.groups(servers);
        let fetchers = groups.iter().flat_map(|(_, fetchers)| fetchers.clone()).collect::<Vec<_>>();
        if fetchers.is_empty() {
            return Err(self.damaged());
        }
        let plan = self.plan(&path, fetchers.len()).map_err(local)?;
        let Self { tools, spot, expect, total, .. } = *self;
        let place = (tools.existing.get(), &spot.place);
        let expected = Check { place, expect, total, verdict: Mutex::default() };
        let (store, opened, fetchers, plan) = (&store, &opened, &*fetchers, &plan);
        let run = Run { store, opened, fetchers, groups: &groups, plan };
        let (fetched, meter) = self.carry_out(&run, (again, &expected)).map_err(local)?;
        let verdict = expected.verdict.into_inner().unwrap_or_else(PoisonError::into_inner);
        match fetched.failed.into_iter().next().map(|(_, error)| error) {
            None => Ok(Ended::Done),
            Some(FetchError::Unexpected) => match verdict {
                Some(verdict) => Ok(Ended::Refused(verdict)),
                None => Err(local(self.taken())),
            },
            Some(_) if self.tools.interrupted.is_set() => Err(match meter.is_continued() {
                true if meter.kept() + meter.written() > 0 => local(Kept::Everything.into()),
                _ => Unfetched::Fault(Fault::Stopped),
            }),
            Some(FetchError::Target(error)) if error.kind == ErrorKind::Exists => {
                Err(local(self.taken()))
            }
            Some(FetchError::Target(error)) => Err(local(error.into())),
            Some(error) => Err(match self.mirrors.take_fault() {
                Some(fault) => Unfetched::Fault(fault),
                None => local(error.into()),
            }),
        }
    }

    /// The error for a name that another file has got meanwhile.
    fn taken(&self) -> Error {
        let taken = self.tools.existing.get().check(&self.spot.place).err();
        taken.unwrap_or_else(|| anyhow!("another file has had its name for a while"))
    }

    /// The connections of each group of servers, those to the server that has answered already first.
    fn groups(&self, servers: &[usize]) -> Vec<(Tuning, Vec<Arc<dyn Fetcher>>)> {
        let mut order = servers.to_vec();
        order.retain(|at| self.mirrors.is_used(*at));
        order.sort_by_key(|at| *at != self.first);
        let groups = self.tools.tunings.groups(&self.places, &order).into_iter();
        let connections = |group: Group| {
            let most = (CONNECTIONS_MAX, group.cap as usize);
            (group.tuning, self.mirrors.fetchers(&group.servers, most))
        };
        groups.map(connections).collect()
    }

    /// Whether a segment need not be fetched again.
    fn is_right(&self, index: SegmentIndex, again: Again<'_>) -> bool {
        let begin = u64::from(index.0) * SEGMENT;
        let segment = begin..self.total.min(begin + SEGMENT);
        match again {
            Again::Missing => true,
            Again::Parts(parts) => {
                !parts.iter().any(|part| part.start < segment.end && part.end > segment.start)
            }
            Again::NotFrom(set) => {
                self.mirrors.origin(&segment).is_some_and(|at| set.contains(&at))
            }
        }
    }

    fn plan(&self, path: &StorePath, servers: usize) -> Result<Plan> {
        let since = self.known.offer.modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let secs = since.and_then(|since| i64::try_from(since.as_secs()).ok());
        let modified = Time { secs: secs.unwrap_or_default(), nanos: 0 };
        let file = File {
            path: PeerPath::new(path.as_bytes())?,
            to: path.clone(),
            seen: Seen { size: self.total, modified },
            data: self.total,
            content: self.content(),
            mode: MODE,
            at: (0..servers).map(ServerId).collect(),
        };
        let versions = match (&file.content, secs) {
            (Some(_), _) => Versions::Strong,
            (None, Some(_)) => Versions::SizeAndTime,
            (None, None) => Versions::Nothing,
        };
        Ok(Plan { files: vec![file], versions, ..Plan::default() })
    }

    /// A token of the content: the digests if they are known, because the whole is compared with them, or else the server's
    /// version.
    fn content(&self) -> Option<ContentToken> {
        let digests = self.expect.digests.iter();
        let pieces = self.expect.pieces.iter().flat_map(|pieces| &pieces.digests);
        let all: Vec<u8> = digests.chain(pieces).flat_map(|one| one.value.clone()).collect();
        let version = self.known.offer.version.if_range.clone().map(String::into_bytes);
        let token = if all.is_empty() { version? } else { all };
        let mut sum = Function::Sha256.begin();
        sum.update(&token);
        Some(ContentToken(sum.finish().as_ref().to_vec()))
    }

    /// Runs the mover, and shows how far it is.
    fn carry_out(
        &self,
        run: &Run<'_>,
        (again, expected): (Again<'_>, &Check<'_>),
    ) -> Result<(Fetched, Meter)> {
        let (tools, progress) = (self.tools, Arc::new(Progress::default()));
        let meter = Meter::over(run.fetchers.len(), progress.clone());
        let (stop, show) = (AtomicBool::new(false), tools.show);
        let on_epoch = |epoch: &Epoch| show.epoch(epoch);
        let mut next = 0;
        let pool = |(tuning, fetchers): &(Tuning, Vec<Arc<dyn Fetcher>>)| {
            let first = next;
            next += fetchers.len();
            let (servers, tuning) = ((first..next).map(ServerId).collect(), tuning.clone());
            Pool { servers, tuning, on_epoch: &on_epoch }
        };
        let pools: Vec<Pool<'_>> = run.groups.iter().map(pool).collect();
        let job = Job {
            pools: &pools,
            journal: Some(run.opened),
            expected: Some(expected),
            // A connection waits by itself for a server that is the only one left.
            ..Job::new(run.fetchers, run.plan, run.store.clone(), (&meter, &stop))
        };
        let begin = tools.show.sent();
        let mut shown = Shown { begin, kept: 0 };
        if matches!(again, Again::Missing) {
            tools.add(Added { total_bytes: self.total, kept_bytes: 0 });
        }
        let (is_over, this) = (AtomicBool::new(false), thread::current());
        let fetched = thread::scope(|scope| {
            let named = thread::Builder::new().name("get".to_owned());
            let running = named.spawn_scoped(scope, || {
                let fetched = fetch(&job);
                is_over.store(true, Ordering::Release);
                this.unpark();
                fetched
            })?;
            while !is_over.load(Ordering::Acquire) && !running.is_finished() {
                stop.store(tools.interrupted.is_set(), Ordering::Relaxed);
                shown.update(tools, &progress, again);
                thread::park_timeout(SHOW_EVERY);
            }
            let fetched =
                running.join().map_err(|_| anyhow!("the transfer has ended by a panic"))?;
            fetched.map_err(Error::from)
        });
        shown.update(tools, &progress, again);
        fetched.map(|fetched| (fetched, meter))
    }

    /// Removes what was fetched: no later attempt can use it.
    fn discard(&self) {
        if let Ok((store, opened)) = self.spot.open(&self.urls[self.first]) {
            discard(&*store, &opened);
            opened.journal.remove();
        }
    }
}

/// Whether the parts that were fetched are of no use for a later attempt.
fn is_useless(error: &Unfetched) -> bool {
    match error {
        Unfetched::Fault(fault) => {
            matches!(fault, Fault::Changed | Fault::Unrecognised | Fault::NoRanges)
        }
        Unfetched::Local(error) => error.chain().any(|link| link.is::<Damaged>()),
    }
}

/// The parts of a run of the mover.
struct Run<'a> {
    store: &'a Arc<dyn Store>,
    opened: &'a Opened,
    fetchers: &'a [Arc<dyn Fetcher>],
    /// The same, with the rule of each group.
    groups: &'a [(Tuning, Vec<Arc<dyn Fetcher>>)],
    plan: &'a Plan,
}

/// The figures of a run for the display.
struct Shown {
    /// The bytes that were counted before.
    begin: u64,
    /// Bytes that an earlier attempt has left.
    kept: u64,
}

impl Shown {
    fn update(&mut self, tools: &Tools<'_>, progress: &Progress, again: Again<'_>) {
        let tally = progress.tally();
        let counted = match again {
            Again::Missing => self.begin + tally.sent(),
            // These bytes were counted before.
            Again::Parts(_) | Again::NotFrom(_) => self.begin,
        };
        tools.show.counted().store(counted, Ordering::Relaxed);
        if matches!(again, Again::Missing) && tally.kept_bytes != self.kept {
            tools.set_kept(tally.kept_bytes);
            self.kept = tally.kept_bytes;
        }
    }
}

/// Compares the file with its digests, once it has come whole.
struct Check<'a> {
    /// Whether another file of its name gives way, and where that is.
    place: (Existing, &'a FilePlace),
    expect: &'a Expect,
    total: u64,
    verdict: Mutex<Option<Verdict>>,
}

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

impl Expected for Check<'_> {
    fn is_met(&self, _: &File, read: &ReadAt<'_>) -> Result<bool, StoreError> {
        let mut sums = Sums::new(Some(self.total), self.expect);
        // Not every file system can refuse to replace a file in the renaming itself.
        if self.place.0.check(self.place.1).is_err() {
            let path = StorePath::ROOT.join(&self.place.1.name).unwrap_or(StorePath::ROOT);
            return Err(StoreError::new("name", &path, ErrorKind::Exists));
        }
        if sums.is_empty() {
            return Ok(true);
        }
        let (mut buffer, mut at) = (vec![0; READ_BYTES], 0);
        while at < self.total {
            let length = (self.total - at).min(READ_BYTES as u64) as usize;
            let length = read(at, &mut buffer[..length])?;
            if length == 0 {
                break;
            }
            sums.update(&buffer[..length]);
            at += length as u64;
        }
        let verdict = sums.verdict(at);
        let is_met = verdict == Verdict::Right;
        let wrong = (!is_met).then_some(verdict);
        *self.verdict.lock().unwrap_or_else(PoisonError::into_inner) = wrong;
        Ok(is_met)
    }
}

/// The segments for which `is_right` holds.
fn without(proven: &Proven, is_right: impl Fn(SegmentIndex) -> bool) -> Proven {
    let mut rest = Proven::nothing(proven.file());
    for (first, hashes) in proven.runs() {
        for (index, hash) in (first.0..).map(SegmentIndex).zip(hashes) {
            if is_right(index) {
                rest.insert(index, hash);
            }
        }
    }
    rest
}
