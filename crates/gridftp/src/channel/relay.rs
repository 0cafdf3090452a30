//! Parts of files from one server to another, without passing through this host.

use super::data::Replies;
use super::{Channel, Pool};
use crate::address::port_command;
use crate::command::Command;
use crate::control::wait_for;
use crate::error::FtpError;
use crate::reply::Reply;
use crate::transfer::{Flow, Part, Transferred, Watch};
use rustix::event::{PollFd, PollFlags};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long the end of a part may go unnoticed.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The code of a marker of performance (GFD.020, section 5.2).
const PERFORMANCE_MARKER: u16 = 112;
/// The line of it that tells how much a stripe has received since the part began.
const STRIPE_BYTES: &[u8] = b"Stripe Bytes Transferred:";

impl Channel {
    /// Lets this server send a part to the file `path` of the server of `to`, at the same offset, through `n`
    /// connections between the two. The one that receives listens, and the one that sends connects to it. `counted`
    /// grows as the receiver tells how much has arrived, about every five seconds.
    ///
    /// # Errors
    /// One of the two refuses, or cannot reach the other. Some bytes may have been stored.
    pub fn relay(
        &mut self,
        part: &Part<'_>,
        n: u32,
        counted: &AtomicU64,
        (to, path): (&mut Self, &[u8]),
    ) -> Result<Transferred, FtpError> {
        let send = Command::with(&format!("ERET P {} {}", part.offset, part.length), part.path)?;
        let receive = Command::with(&format!("ESTO A {}", part.offset), path)?;
        let is_warm = self.pool.is_relaying(n) && to.pool.is_relaying(n);
        (self.pool, to.pool) = (Pool::Empty, Pool::Empty);
        if !is_warm {
            let address = to.passive()?;
            self.control.demand(&Command::new(format!("OPTS RETR Parallelism={n},{n},{n};")))?;
            self.control.demand(&Command::new(port_command(address)))?;
        }
        let (begin, before) = (Instant::now(), counted.load(Ordering::Relaxed));
        to.control.send(&receive)?;
        self.control.send(&send)?;
        let settings = self.settings.clone();
        let flow = &Flow::new(&settings, counted);
        let mut watch = Watch::new(flow);
        let (mut sent, mut received) = (Replies::new(&[], &send), Replies::new(&[], &receive));
        while !(sent.is_final() && received.is_final()) {
            self.step(flow, &mut watch, &mut sent)?;
            while !received.is_final() {
                let Some(reply) = to.control.poll_reply()? else { break };
                watch.touch();
                if let Some(bytes) = marked(&reply) {
                    counted.store(before + bytes.min(part.length), Ordering::Relaxed);
                }
                received.handle(&reply)?;
            }
            let mut fds = [
                PollFd::new(&self.control, PollFlags::IN),
                PollFd::new(&to.control, PollFlags::IN),
            ];
            wait_for(&mut fds, LOOK_EVERY);
        }
        counted.store(before + part.length, Ordering::Relaxed);
        (self.pool, to.pool) = (Pool::Relaying(n), Pool::Relaying(n));
        Ok(flow.transferred(n, begin.elapsed()))
    }
}

impl Pool {
    /// Whether the server has so many connections with the other one.
    const fn is_relaying(&self, n: u32) -> bool {
        matches!(self, Self::Relaying(have) if *have == n)
    }
}

/// Bytes that a marker of performance tells.
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
