//! The connections of some transfers at a bottleneck, whose numbers the caller changes while they run.

use crate::scenario::TICK;
use crate::tcp::{Congestion, Tcp};
use crate::wire::{Cargo, Way, Wire};
use hikyaku_link::LinkSpec;
use hikyaku_units::Instant;
use std::time::Duration;

/// A bottleneck, and the kind of the connections.
pub struct Several {
    /// The link from the sender, with its delay.
    pub link: LinkSpec,
    /// Segments that one connection has in flight at most.
    pub window: usize,
    /// Transfers.
    pub transfers: usize,
    /// The seed of all random choices.
    pub seed: u64,
}

/// The figures of a connection while it is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Its number; the later it was opened, the larger.
    pub number: usize,
    /// Bytes that have come.
    pub bytes: u64,
    /// The last round-trip time; `None` before the first byte has come.
    pub round_trip: Option<Duration>,
}

/// The time between two calls of the caller.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Round trips until a new connection sends: handshake and request.
const OPENING_ROUND_TRIPS: u32 = 2;
/// The sending end, in the numbers of the wire.
const SENDER: usize = 0;

/// A connection that was opened.
struct Member {
    tcp: Tcp,
    /// The transfer that it belongs to.
    of: usize,
    is_open: bool,
}

impl Several {
    /// Runs for `time`. `look` is called ten times a second with the time, the number of a transfer and its open connections, the
    /// oldest first, and returns how many are to be open. The latest ones are closed. Returns the bytes of each transfer that
    /// have come by each of these times.
    pub fn run(
        &self,
        time: Duration,
        marks: &[Duration],
        mut look: impl FnMut(Duration, usize, &[Progress]) -> usize,
    ) -> Vec<Vec<u64>> {
        let begin = Instant::from_millis(1000);
        let mut rng = fastrand::Rng::with_seed(self.seed);
        let back = LinkSpec { delay: self.link.delay, ..LinkSpec::default() };
        let mut wire = Wire::new([&self.link, &back], &mut rng);
        let mut members: Vec<Member> = Vec::new();
        let (mut now, mut tick, mut looked, mut marked) = (begin, begin, begin, Vec::new());
        while now - begin < time {
            while let Some(packet) = wire.pop(now) {
                let member = &mut members[packet.flow];
                if let Cargo::Segment(number) = packet.cargo
                    && member.is_open
                {
                    member.tcp.deliver(now, packet.to, number);
                    turn(&mut member.tcp, (now, packet.flow, packet.to), &mut wire);
                }
            }
            if now >= looked {
                looked = now + LOOK_EVERY;
                for of in 0..self.transfers {
                    let n = look(now - begin, of, &progress(&members, of));
                    self.change((&mut members, of), now, n);
                }
            }
            if now >= tick {
                tick = now + TICK;
                for (flow, member) in members.iter_mut().enumerate() {
                    if member.is_open && member.tcp.wake(SENDER) <= now {
                        turn(&mut member.tcp, (now, flow, SENDER), &mut wire);
                    }
                }
                if marks.get(marked.len()).is_some_and(|mark| now - begin >= *mark) {
                    let arrived = |of: usize| {
                        let own = members.iter().filter(|member| member.of == of);
                        own.map(|member| member.tcp.arrived()).sum()
                    };
                    marked.push((0..self.transfers).map(arrived).collect());
                }
            }
            now = wire.next().map_or(tick, |next| next.clamp(now, tick));
        }
        marked
    }

    /// Opens or closes connections of a transfer until `n` are open.
    fn change(&self, (members, of): (&mut Vec<Member>, usize), now: Instant, n: usize) {
        let is_own = |member: &Member| member.is_open && member.of == of;
        let mut open = members.iter().filter(|member| is_own(member)).count();
        while open < n {
            let sends = now + 2 * self.link.delay * OPENING_ROUND_TRIPS;
            let tcp = Tcp::new(sends, Congestion::Cubic).within(self.window);
            members.push(Member { tcp, of, is_open: true });
            open += 1;
        }
        let latest = members.iter_mut().rev().filter(|member| is_own(member));
        latest.take(open - n).for_each(|member| member.is_open = false);
    }
}

fn progress(members: &[Member], of: usize) -> Vec<Progress> {
    let open = members.iter().enumerate().filter(|(_, one)| one.is_open && one.of == of);
    open.map(|(number, Member { tcp, .. })| Progress {
        number,
        bytes: tcp.arrived(),
        round_trip: tcp.round_trip(),
    })
    .collect()
}

/// Lets one end of a connection send what it may.
fn turn(tcp: &mut Tcp, (now, flow, from): (Instant, usize, usize), wire: &mut Wire) {
    let way = Way { flow, from, extra: Duration::ZERO };
    tcp.turn(now, from, &mut |number, ip_len| {
        wire.send(now, way, Cargo::Segment(number), ip_len);
    });
}
