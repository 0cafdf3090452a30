//! What may happen to two ends of a connection, step by step, and the shortest story that tells it.
//!
//! A fuzzer's bytes and a seeded generator are read the same way: four bytes are a step.

use crate::middlebox::NewHost;
use hikyaku_proto::{Config, Side, StreamKind};
use hikyaku_units::{DataSize, Rate};

/// A whole story: how the ends are set, then what happens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plot {
    /// Chooses the settings of both ends.
    pub settings: u32,
    /// The steps.
    pub ops: Vec<Op>,
}

/// One step. Numbers are taken modulo what there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of the fields say it all")]
pub enum Op {
    /// An application opens a stream.
    Open { by: Side, kind: StreamKind },
    /// It writes so many bytes to one of its streams.
    Write { by: Side, nth: u8, len: u16 },
    /// It ends one.
    Finish { by: Side, nth: u8 },
    /// It gives one up.
    Reset { by: Side, nth: u8 },
    /// It wants no more of one that it reads.
    Stop { by: Side, nth: u8 },
    /// It takes about so many bytes.
    Read { by: Side, len: u16 },
    /// So many times ten microseconds pass; timers run.
    Pass { time: u16 },
    /// So many seconds pass.
    Wait { seconds: u8 },
    /// The next datagrams arrive, in one buffer where they may.
    Deliver { to: Side, count: u8 },
    /// The next one is lost.
    Drop { to: Side, count: u8 },
    /// The next one arrives and stays on its way.
    Duplicate { to: Side },
    /// The next one is overtaken by so many.
    Delay { to: Side, behind: u8 },
    /// A bit of the next one turns over.
    Flip { to: Side, bit: u16 },
    /// The next one is marked by a router, and arrives.
    Mark { to: Side },
    /// Everything works as it should for so many round trips of ten milliseconds.
    Flow { rounds: u8 },
    /// Nothing longer than 1200 and so many bytes passes the path.
    Narrow { over: u16 },
    /// The socket refuses a packet of 1200 and so many bytes.
    Refuse { by: Side, over: u16 },
    /// The next one to arrive says something else, under the right keys: from here on the peer lies.
    Forge { to: Side, what: u8, value: u16 },
    /// An application ends the connection.
    Close { by: Side },
    /// The client is seen elsewhere from here on, and nothing comes to where it was.
    Move { host: NewHost },
}

/// Bytes of a step.
const STEP: usize = 4;
/// A story longer than this says nothing new.
const MOST_STEPS: usize = 2000;

impl Plot {
    /// The story in these bytes. Any bytes are one.
    pub fn read(bytes: &[u8]) -> Self {
        let mut steps = bytes.chunks_exact(STEP).map(|step| [step[0], step[1], step[2], step[3]]);
        let settings = steps.next().map_or(0, u32::from_le_bytes);
        Self { settings, ops: steps.take(MOST_STEPS).map(Op::read).collect() }
    }

    /// A story of so many steps from a seed; one in three has a liar.
    pub fn random(seed: u64, steps: usize) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed ^ 0x706c_6f74);
        let mut bytes = vec![0; (steps + 1) * STEP];
        rng.fill(&mut bytes);
        let mut plot = Self::read(&bytes);
        if rng.u8(0..3) > 0 {
            plot.ops.retain(|op| !matches!(op, Op::Forge { .. }));
        }
        if rng.u8(0..3) > 0 {
            plot.ops.retain(|op| !matches!(op, Op::Close { .. } | Op::Wait { .. }));
        }
        plot
    }

    /// The settings of client and server.
    pub(crate) fn configs(&self) -> [Config; 2] {
        let mut bits = self.settings;
        let mut choose = |of: u32| {
            let choice = bits % of;
            bits /= of;
            choice as usize
        };
        [(); 2].map(|()| {
            let window = [20_000, 300_000, 64_000_000][choose(3)];
            let initial = [window, window / 4][choose(2)];
            Config {
                receive_window: DataSize::from_bytes(window),
                initial_window: DataSize::from_bytes(initial),
                max_streams: [1, 4, 1024][choose(3)],
                max_datagram: [1200, 1472, 8972][choose(3)],
                key_packets: [1 << 26, 40][choose(2)],
                payload_rate: [None, Some(Rate::from_bits_per_sec(3_000_000))][choose(2)],
                ..Config::default()
            }
        })
    }
}

impl Op {
    fn read([what, a, b, c]: [u8; STEP]) -> Self {
        let side = if what & 0x80 == 0 { Side::Client } else { Side::Server };
        let kind = if a & 1 == 0 { StreamKind::Ordered } else { StreamKind::Object };
        let (by, to, nth, value) = (side, side, a, u16::from_le_bytes([b, c]));
        match what & 0x1f {
            0 | 1 => Self::Open { by, kind },
            2..=5 => Self::Write { by, nth, len: value },
            6 => Self::Finish { by, nth },
            7 => Self::Reset { by, nth },
            8 => Self::Stop { by, nth },
            9 | 10 => Self::Read { by, len: value },
            11..=13 => Self::Pass { time: value },
            14 => Self::Wait { seconds: a % 50 },
            15..=18 => Self::Deliver { to, count: a },
            19 => Self::Drop { to, count: a % 40 },
            20 => Self::Duplicate { to },
            21 | 22 => Self::Delay { to, behind: a },
            23 | 24 => Self::Flip { to, bit: value },
            25 => Self::Mark { to },
            26 | 27 => Self::Flow { rounds: a % 32 },
            28 => Self::Narrow { over: value % 1000 },
            29 => Self::Refuse { by, over: value % 9000 },
            30 => Self::Forge { to, what: a, value },
            _ if a == 0 => Self::Close { by },
            _ if a < 40 => Self::Move { host: if a & 1 == 0 { NewHost::No } else { NewHost::Yes } },
            _ => Self::Pass { time: value / 64 },
        }
    }

    /// The same with smaller numbers.
    fn smaller(self) -> Option<Self> {
        let mut smaller = self;
        match &mut smaller {
            Self::Write { len, .. } | Self::Read { len, .. } => *len /= 2,
            Self::Pass { time } => *time /= 2,
            Self::Wait { seconds } => *seconds /= 2,
            Self::Deliver { count, .. } | Self::Drop { count, .. } => *count /= 2,
            Self::Delay { behind, .. } => *behind /= 2,
            Self::Flow { rounds } => *rounds /= 2,
            Self::Flip { bit, .. } => *bit /= 2,
            Self::Narrow { over } | Self::Refuse { over, .. } => *over /= 2,
            Self::Forge { value, .. } => *value /= 2,
            Self::Finish { nth, .. } | Self::Reset { nth, .. } | Self::Stop { nth, .. } => {
                *nth /= 2
            }
            Self::Open { .. }
            | Self::Duplicate { .. }
            | Self::Mark { .. }
            | Self::Close { .. }
            | Self::Move { .. } => {}
        }
        (smaller != self).then_some(smaller)
    }
}

/// The shortest story found that still fails: steps are left out, many at first, then numbers halved.
pub fn shrunk(mut plot: Plot, fails: impl Fn(&Plot) -> bool) -> Plot {
    let mut size = plot.ops.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < plot.ops.len() {
            let mut less = plot.clone();
            less.ops.drain(at..(at + size).min(plot.ops.len()));
            if fails(&less) {
                plot = less;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    for at in 0..plot.ops.len() {
        while let Some(smaller) = plot.ops[at].smaller() {
            let mut less = plot.clone();
            less.ops[at] = smaller;
            if !fails(&less) {
                break;
            }
            plot = less;
        }
    }
    plot
}
