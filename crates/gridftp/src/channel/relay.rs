//! Parts of files from one server to another, without passing through this host.

use super::replies::Replies;
use super::{Channel, LOOK_EVERY, Mode, Pool};
use crate::address::{port_command, striped_port_command};
use crate::command::Command;
use crate::control::wait_for;
use crate::error::FtpError;
use crate::plan::{Plan, Target, Wanted};
use crate::reply::Reply;
use crate::transfer::{Flow, Progress, Transferred, Watch};
use rustix::event::{PollFd, PollFlags};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The code of a marker of performance (GFD.020, section 5.2).
const PERFORMANCE_MARKER: u16 = 112;
/// The line of a marker with the bytes that a stripe has received since the part began.
const STRIPE_BYTES: &[u8] = b"Stripe Bytes Transferred:";

type WantedRelay<'a> = Wanted<'a, Target<'a>>;

/// A part that is under way.
struct Ordered {
    length: u64,
    sent: Replies,
    received: Replies,
}

impl Channel {
    /// Lets this server send the parts of a plan to the server of `to`, at the same offsets. The server that receives listens,
    /// and the one that sends connects to it. `counted` grows when the receiver reports its bytes, about every five
    /// seconds, and when a part is done.
    ///
    /// A part that the plan returns while another is under way is asked for at once, if it wants the same number of
    /// connections; otherwise when that one is done.
    ///
    /// # Errors
    /// One of the two has no extended block mode, refuses, or cannot reach the other. Some bytes of parts that are not done may have been stored. If more
    /// than one part was under way both channels are of no use any more.
    pub fn relay<'a>(
        &mut self,
        to: &mut Self,
        plan: &mut dyn Plan<'a, Target<'a>>,
        counted: &AtomicU64,
    ) -> Result<(), FtpError> {
        if self.mode == Mode::Stream || to.mode == Mode::Stream {
            return Err(FtpError::PlainFtp);
        }
        self.relay_all(to, plan, counted).map_err(|failure| to.explained(failure))
    }

    fn relay_all<'a>(
        &mut self,
        to: &mut Self,
        plan: &mut dyn Plan<'a, Target<'a>>,
        counted: &AtomicU64,
    ) -> Result<(), FtpError> {
        let settings = self.settings.clone();
        let flow = &Flow::new(&settings, counted);
        let mut watch = Watch::new(flow);
        let mut under_way: VecDeque<Ordered> = VecDeque::new();
        let (mut n, mut begin) = (0, Instant::now());
        let mut before = counted.load(Ordering::Relaxed);
        // A part with another number of connections waits until this one is done.
        let mut other = None;
        let (warm, to_warm) = (std::mem::take(&mut self.pool), std::mem::take(&mut to.pool));
        if let (Pool::Relaying(have), Pool::Relaying(there)) = (warm, to_warm)
            && have == there
        {
            n = have;
        }
        loop {
            let Some(ordered) = under_way.front_mut() else {
                let Some(next) = other.take().or_else(|| plan.next(None)) else { break };
                self.check_name(next.part.path)?;
                to.check_name(next.with)?;
                if next.connections != n {
                    n = next.connections;
                    self.join(to, n)?;
                }
                begin = Instant::now();
                watch.touch();
                under_way.push_back(self.order(to, &next)?);
                continue;
            };
            self.step(flow, &mut watch, &mut ordered.sent)?;
            while !ordered.received.is_final() {
                let Some(reply) = to.control.poll_reply()? else { break };
                watch.touch();
                if let Some(bytes) = marked(&reply) {
                    counted.store(before + bytes.min(ordered.length), Ordering::Relaxed);
                }
                ordered.received.handle(&reply)?;
            }
            let elapsed = begin.elapsed();
            if ordered.sent.is_final() && ordered.received.is_final() {
                before += ordered.length;
                counted.store(before, Ordering::Relaxed);
                begin += elapsed;
                under_way.pop_front();
                let (connections, retransmitted) = (n, None);
                plan.done(&Transferred { connections, elapsed, local_share: 0.0, retransmitted });
                continue;
            }
            let bytes = counted.load(Ordering::Relaxed).saturating_sub(before);
            let progress = Progress { connections: n, bytes, elapsed, local_share: 0.0 };
            while other.is_none()
                && let Some(next) = plan.next(Some(&progress))
            {
                match next.connections == n {
                    true => under_way.push_back(self.order(to, &next)?),
                    false => other = Some(next),
                }
            }
            let mut fds = [
                PollFd::new(&self.control, PollFlags::IN),
                PollFd::new(&to.control, PollFlags::IN),
            ];
            wait_for(&mut fds, LOOK_EVERY);
        }
        (self.pool, to.pool) = (Pool::Relaying(n), Pool::Relaying(n));
        Ok(())
    }

    /// Lets this server connect to the other one with the next part, `n` times.
    fn join(&mut self, to: &mut Self, n: u32) -> Result<(), FtpError> {
        let addresses = to.passive_all()?;
        let port = match addresses.as_slice() {
            [address] => Some(port_command(*address)),
            addresses => striped_port_command(addresses),
        };
        let port = port.ok_or(FtpError::Lacks("be told of several data nodes over IPv6"))?;
        self.control.demand(&Command::new(format!("OPTS RETR Parallelism={n},{n},{n};")))?;
        self.control.demand(&Command::new(port)).map(drop)
    }

    /// Sends the commands for a part to both servers.
    fn order(&mut self, to: &mut Self, wanted: &WantedRelay<'_>) -> Result<Ordered, FtpError> {
        let Wanted { part, with: target, .. } = wanted;
        let send = self.about(&format!("ERET P {} {}", part.offset, part.length), part.path)?;
        let store = to.about(&format!("ESTO A {}", part.offset), target)?;
        to.control.send(&store)?;
        self.control.send(&send)?;
        let (sent, received) = (Replies::new([send]), Replies::new([store]));
        Ok(Ordered { length: part.length, sent, received })
    }
}

/// The bytes in a performance marker.
// fuzz: ftp_replies
pub(crate) fn marked(reply: &Reply) -> Option<u64> {
    if reply.code != PERFORMANCE_MARKER {
        return None;
    }
    let line = reply.lines.iter().find_map(|line| line.trim_ascii().strip_prefix(STRIPE_BYTES))?;
    str::from_utf8(line.trim_ascii()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::ReplyReader;

    #[test]
    fn a_marker_tells_what_has_arrived() {
        let read = |text: &str| {
            let mut reader = ReplyReader::new();
            reader.handle_bytes(text.as_bytes());
            reader.poll_reply().unwrap().unwrap()
        };
        let marker = "112-Perf Marker\r\n Timestamp:  1795230018.4\r\n Stripe Index: 0\r\n \
                      Stripe Bytes Transferred: 1048576\r\n Total Stripe Count: 1\r\n112 End.\r\n";
        assert_eq!(marked(&read(marker)), Some(1_048_576));
        assert_eq!(marked(&read(&marker.replace("1048576", "-1"))), None);
        assert_eq!(marked(&read("226 Transfer Complete.\r\n")), None);
    }
}
