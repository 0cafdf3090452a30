//! Parts of files to a server.

use super::connect::connect;
use super::replies::Replies;
use super::{Channel, LOOK_EVERY, Mode, Pool};
use crate::control::wait_for;
use crate::data::Data;
use crate::error::FtpError;
use crate::plan::{Once, Plan, Supply, Upload, Wanted};
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
    /// of connections; otherwise when that one is done. In stream mode one connection carries each part, one part after the
    /// other, and the file ends with the part.
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
        let mut next = plan.next(None);
        while let Some(wanted) = next {
            next = self.upload_through(wanted, plan, counted)?;
        }
        Ok(())
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

    /// Uploads parts until the plan ends, or wants another number of connections; then returns what it wants.
    fn upload_through<'a>(
        &mut self,
        first: WantedUpload<'a>,
        plan: &mut dyn Plan<'a, Upload<'a>>,
        counted: &AtomicU64,
    ) -> Result<Option<WantedUpload<'a>>, FtpError> {
        self.check_name(first.part.path)?;
        let n = first.connections;
        let all = n as usize * self.stripes();
        let (warm, addresses) = match std::mem::take(&mut self.pool) {
            Pool::Sending(warm) if warm.len() == all => (warm, Vec::new()),
            _ => (Vec::new(), self.passive_all()?),
        };
        let settings = self.settings.clone();
        let (flow, belt) = (&Flow::new(&settings, counted), &Belt::default());
        let (next, kept) = thread::scope(|scope| {
            let fresh = warm.len()..all;
            let nodes = addresses.iter().copied().enumerate().cycle();
            let fresh = fresh.zip(nodes).map(|(_, (stripe, address))| Err((address, stripe)));
            let connections = warm.into_iter().map(Ok).chain(fresh);
            let settings = &settings;
            let start = |data: Result<Data, (SocketAddr, usize)>| {
                scope.spawn(move || {
                    let data = data.or_else(|node| connect(node, settings, flow));
                    put::send(data.map_err(|error| flow.fail(error)).ok()?, flow, belt)
                })
            };
            let threads: Vec<_> = connections.map(start).collect();
            let next = self.give_all(first, plan, (flow, belt));
            let next = next.unwrap_or_else(|error| {
                flow.fail(error);
                None
            });
            belt.close();
            let ended = threads.into_iter().filter_map(|thread| thread.join().ok().flatten());
            (next, ended.collect::<Vec<_>>())
        });
        if let Some(failure) = flow.take_failure() {
            return Err(self.explained(failure));
        }
        self.pool = Pool::Sending(kept);
        Ok(next)
    }

    fn give_all<'a>(
        &mut self,
        first: WantedUpload<'a>,
        plan: &mut dyn Plan<'a, Upload<'a>>,
        (flow, belt): (&Flow<'_>, &Belt<'a>),
    ) -> Result<Option<WantedUpload<'a>>, FtpError> {
        let n = first.connections;
        let (mut begin, mut local) = (Instant::now(), Duration::ZERO);
        let mut under_way = VecDeque::from([self.give(first, belt)?]);
        // A part with another number of connections waits until this one is done.
        let mut other = None;
        let mut watch = Watch::new(flow);
        loop {
            let Some(given) = under_way.front_mut() else {
                match other.or_else(|| plan.next(None)) {
                    Some(next) if next.connections == n => {
                        begin = Instant::now();
                        under_way.push_back(self.give(next, belt)?);
                        other = None;
                        continue;
                    }
                    next => return Ok(next),
                }
            };
            self.step(flow, &mut watch, &mut given.replies)?;
            let (elapsed, spent) = (begin.elapsed(), flow.local_time());
            let local_share = share(spent.saturating_sub(local), n, elapsed);
            if given.replies.is_final() {
                let retransmitted = Some(given.deal.retransmitted());
                (begin, local) = (begin + elapsed, spent);
                under_way.pop_front();
                belt.pop();
                plan.done(&Transferred { connections: n, elapsed, local_share, retransmitted });
                continue;
            }
            let bytes = given.deal.sent();
            let progress = Progress { connections: n, bytes, elapsed, local_share };
            while other.is_none()
                && let Some(next) = plan.next(Some(&progress))
            {
                match next.connections == n {
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
        let Wanted { part, connections, with: supply } = wanted;
        let store = match self.storing {
            Storing::Into => self.about(&format!("ESTO A {}", part.offset), part.path)?,
            Storing::Anew => self.about("STOR", part.path)?,
        };
        self.control.send(&store)?;
        let deal = Arc::new(Deal::new(
            &part,
            supply,
            self.settings.block_bytes,
            (connections, self.stripes()),
        ));
        belt.push(Arc::clone(&deal));
        Ok(Given { deal, replies: Replies::new([store]) })
    }
}
