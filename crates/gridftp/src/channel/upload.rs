//! Parts of files to a server.

use super::connect::{connect, connect_too};
use super::replies::Replies;
use super::{Channel, LOOK_EVERY, Mode, Pool};
use crate::control::wait_for;
use crate::data::Data;
use crate::error::FtpError;
use crate::plan::{Once, Plan, Supply, Traffic, Upload, Wanted};
use crate::put::{self, Belt, Deal};
use crate::transfer::{Flow, Part, Progress, Transferred, Watch, share};
use rustix::event::{PollFd, PollFlags};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::{Duration, Instant};

/// How long a part waits for the server to announce that it stores it.
const ANNOUNCED_MAX: Duration = Duration::from_secs(5);

type WantedUpload<'a> = Wanted<'a, Upload<'a>>;

/// The fate of the other contents of a file into which a part is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Storing {
    /// Contents beside the part are kept.
    #[default]
    Into,
    /// Nothing stays.
    Anew,
}

/// A part that is under way.
struct Given<'a> {
    deal: Arc<Deal<'a>>,
    replies: Replies,
}

impl Channel {
    /// Uploads the parts of a plan. `counted` grows by the bytes that were given to the kernel. A part is put into its file at
    /// its offset; the rest of the file stays.
    ///
    /// A part that the plan returns while another is under way is sent directly behind that one, if it wants the same number
    /// of connections or the plan steers their number; otherwise when that one is done. Connections stay open when fewer are
    /// wanted, and further ones are opened while a part is stored. In stream mode one connection carries each part, one part
    /// after the other, and the file ends with the part.
    ///
    /// # Errors
    /// Also if the caller's function fails. The server may have stored bytes of parts that are not done. If more than one part
    /// was under way the channel is of no use any more.
    pub fn upload<'a>(
        &mut self,
        plan: &mut dyn Plan<'a, Upload<'a>>,
        counted: &AtomicU64,
    ) -> Result<(), FtpError> {
        if self.mode == Mode::Stream {
            return self.upload_streams(plan, counted);
        }
        plan.next(None).map_or(Ok(()), |first| self.upload_all(first, plan, counted))
    }

    /// Uploads one part through `n` connections. `supply` is called by several threads at once, with offsets from the start of
    /// the file.
    ///
    /// # Errors
    /// Also if `supply` fails. The server may have stored some bytes.
    pub fn put(
        &mut self,
        part: &Part<'_>,
        n: u32,
        counted: &AtomicU64,
        supply: impl Fn(u64, &mut [u8]) -> io::Result<()> + Send + Sync,
    ) -> Result<Transferred, FtpError> {
        let supply: Arc<Supply<'_>> = Arc::new(supply);
        let mut plan = Once::new(Wanted { part: *part, connections: n, with: supply });
        self.upload(&mut plan, counted)?;
        plan.done.ok_or(FtpError::Stopped)
    }

    /// Makes a file empty, or an empty file. Its metadata, such as the owner, are kept.
    ///
    /// # Errors
    /// The server refuses.
    pub fn empty(&mut self, path: &[u8]) -> Result<(), FtpError> {
        self.storing = Storing::Anew;
        let part = Part { path, offset: 0, length: 0 };
        let emptied = self.put(&part, 1, &AtomicU64::new(0), |_, _| Ok(()));
        self.storing = Storing::Into;
        emptied.map(drop)
    }

    /// Uploads parts until the plan ends.
    fn upload_all<'a>(
        &mut self,
        first: WantedUpload<'a>,
        plan: &mut dyn Plan<'a, Upload<'a>>,
        counted: &AtomicU64,
    ) -> Result<(), FtpError> {
        self.check_name(first.part.path)?;
        let stripes = self.stripes();
        let (warm, nodes) = match std::mem::take(&mut self.pool) {
            Pool::Sending(warm, nodes) => (warm, nodes),
            _ => (Vec::new(), self.passive_all()?),
        };
        let (settings, gauges) = (self.settings.clone(), self.gauges.clone());
        let n = first.connections as usize;
        let fresh = if warm.is_empty() { n * stripes } else { 0 };
        let ranks = Ranks::of(
            warm.iter().map(Data::stripe).chain((0..fresh).map(|at| at % stripes)),
            stripes,
        );
        let (flow, belt) = (&Flow::new(&settings, counted), &Belt::new(ranks.all.clone()));
        let result = thread::scope(|scope| {
            let (settings, gauges) = (&settings, &gauges);
            let open =
                move |node| connect(node, settings, flow).map(|data| data.gauged(gauges.add()));
            let open_too =
                move |node| connect_too(node, settings, flow).map(|data| data.gauged(gauges.add()));
            let start = |data: Result<Data, (SocketAddr, usize)>, rank: u32| {
                scope.spawn(move || {
                    let data = data.or_else(open).map_err(|error| flow.fail(error));
                    put::send(data.ok()?, flow, (belt, rank))
                })
            };
            let fresh = (0..fresh).map(|at| Err((nodes[at % stripes], at % stripes)));
            let connections = warm.into_iter().map(Ok).chain(fresh).zip(ranks.each);
            let mut threads: Vec<_> = connections.map(|(data, rank)| start(data, rank)).collect();
            let mut growth = Growth::new((threads.len() / stripes) as u32);
            let steer = &mut |wanted: u32, replies: &Replies| {
                belt.set_active(wanted);
                let more = growth.more(wanted, belt, replies) as usize * stripes;
                if more > 0 {
                    belt.expect(more as u32);
                    threads.extend((0..more).map(|at| {
                        let node = (nodes[at % stripes], at % stripes);
                        scope.spawn(move || {
                            let data = open_too(node);
                            // All data nodes take part in the end of a part.
                            let is_lost = data.is_err() && stripes > 1;
                            let data = data.map_err(|error| {
                                if is_lost {
                                    flow.fail(error)
                                }
                            });
                            put::send_too(data.ok(), flow, belt)
                        })
                    }));
                }
            };
            let given = self.give_all(first, plan, (flow, belt), steer);
            if let Err(error) = given {
                flow.fail(error);
            }
            belt.close();
            let ended = threads.into_iter().filter_map(|thread| thread.join().ok().flatten());
            ended.collect::<Vec<_>>()
        });
        if let Some(failure) = flow.take_failure() {
            return Err(self.explained(failure));
        }
        self.pool = Pool::Sending(result, nodes);
        Ok(())
    }

    fn give_all<'a>(
        &mut self,
        first: WantedUpload<'a>,
        plan: &mut dyn Plan<'a, Upload<'a>>,
        (flow, belt): (&Flow<'_>, &Belt<'a>),
        steer: &mut dyn FnMut(u32, &Replies),
    ) -> Result<(), FtpError> {
        let (mut n, mut steered) = (first.connections, None);
        let (mut begin, mut local) = (Instant::now(), Duration::ZERO);
        let mut under_way = VecDeque::from([self.give(first, belt)?]);
        // A part with another number of connections waits until this one is done.
        let mut other = None;
        let mut watch = Watch::new(flow);
        loop {
            let Some(given) = under_way.front_mut() else {
                let Some(next) = other.take().or_else(|| plan.next(None)) else { return Ok(()) };
                (n, begin) = (next.connections, Instant::now());
                under_way.push_back(self.give(next, belt)?);
                continue;
            };
            self.step(flow, &mut watch, &mut given.replies)?;
            let (elapsed, spent) = (begin.elapsed(), flow.local_time());
            let connections = steered.unwrap_or(n);
            let local_share = share(spent.saturating_sub(local), connections, elapsed);
            if given.replies.is_final() {
                let retransmitted = Some(given.deal.retransmitted());
                (begin, local) = (begin + elapsed, spent);
                under_way.pop_front();
                belt.pop();
                plan.done(&Transferred { connections, elapsed, local_share, retransmitted });
                continue;
            }
            let waited = belt.waited() + spent;
            steered = plan.steer(&Traffic { connections: &self.gauges.look(), waited });
            steer(steered.unwrap_or(n), &given.replies);
            let bytes = given.deal.sent();
            let progress = Progress { connections, bytes, elapsed, local_share };
            while other.is_none()
                && let Some(next) = plan.next(Some(&progress))
            {
                match next.connections == n || steered.is_some() {
                    true => under_way.push_back(self.give(next, belt)?),
                    false => other = Some(next),
                }
            }
            wait_for(&mut [PollFd::new(&self.control, PollFlags::IN)], LOOK_EVERY);
        }
    }

    /// Sends the command for a part, and lets the connections send its bytes.
    fn give<'a>(
        &mut self,
        wanted: WantedUpload<'a>,
        belt: &Belt<'a>,
    ) -> Result<Given<'a>, FtpError> {
        let Wanted { part, with: supply, .. } = wanted;
        let store = match self.storing {
            Storing::Into => self.about(&format!("ESTO A {}", part.offset), part.path)?,
            Storing::Anew => self.about("STOR", part.path)?,
        };
        self.control.send(&store)?;
        let deal = Arc::new(Deal::new(&part, supply, self.settings.block_bytes));
        belt.push(Arc::clone(&deal));
        Ok(Given { deal, replies: Replies::new([store]) })
    }
}

/// The numbers of connections to each data node.
struct Ranks {
    /// The number of each among those to its node.
    each: Vec<u32>,
    /// The number of connections to each node.
    all: Vec<u32>,
}

impl Ranks {
    fn of(nodes: impl Iterator<Item = usize>, stripes: usize) -> Self {
        let mut all = vec![0; stripes];
        let rank = |node: usize| {
            all[node] += 1;
            all[node] - 1
        };
        let each = nodes.map(rank).collect();
        Self { each, all }
    }
}

/// The number of open connections to each data node, and how it grows.
struct Growth {
    connections: u32,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Idle,
    /// A part waits, since then, until the server stores it.
    Waiting(Instant),
    /// The server does not announce parts.
    Impossible,
}

impl Growth {
    const fn new(connections: u32) -> Self {
        Self { connections, state: State::Idle }
    }

    /// How many connections to each data node are to be opened at this moment. `replies` are those to the first part.
    fn more(&mut self, wanted: u32, belt: &Belt<'_>, replies: &Replies) -> u32 {
        let missing = wanted.saturating_sub(self.connections);
        match self.state {
            State::Waiting(_) if missing == 0 => {
                belt.release();
                self.state = State::Idle;
            }
            State::Waiting(_) if belt.is_first_held() && replies.has_begun() => {
                (self.connections, self.state) = (wanted, State::Idle);
                return missing;
            }
            State::Waiting(since) if belt.is_first_held() && since.elapsed() > ANNOUNCED_MAX => {
                belt.release();
                self.state = State::Impossible;
            }
            State::Idle if missing > 0 && !belt.is_opening() && belt.hold() => {
                self.state = State::Waiting(Instant::now());
            }
            State::Idle | State::Waiting(_) | State::Impossible => {}
        }
        0
    }
}
