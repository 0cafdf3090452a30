//! Random sequences of operations on two connections, and shrinking of a failing sequence to the
//! shortest one.
//!
//! The bytes of a fuzzer and of a seeded generator are decoded in the same way: four bytes are one
//! operation.

use crate::middlebox::NewHost;
use hikyaku_proto::{Config, Side, StreamKind};
use hikyaku_units::{DataSize, Rate};

/// A test case: the settings of the ends, then the operations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plot {
    /// Chooses the settings of both ends.
    pub settings: u32,
    /// The operations.
    pub ops: Vec<Op>,
}

/// One operation. Indices are taken modulo the number of candidates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names of the fields say it all")]
pub enum Op {
    /// The application opens a stream.
    Open { by: Side, kind: StreamKind },
    /// The application writes `len` bytes to one of its streams.
    Write { by: Side, nth: u8, len: u16 },
    /// The application ends a stream.
    Finish { by: Side, nth: u8 },
    /// The application ends a stream with a code after the bytes written so far.
    BreakOff { by: Side, nth: u8 },
    /// The application discards the unsent bytes of a stream.
    Cut { by: Side, nth: u8 },
    /// The application changes the priority of a stream.
    Hurry { by: Side, nth: u8 },
    /// The application resets a stream.
    Reset { by: Side, nth: u8 },
    /// The application stops a stream that it reads.
    Stop { by: Side, nth: u8 },
    /// The application reads about `len` bytes.
    Read { by: Side, len: u16 },
    /// `time` x 10 us pass, and timers run.
    Pass { time: u16 },
    /// `seconds` pass.
    Wait { seconds: u8 },
    /// The next datagrams arrive, in one buffer if they have the same length.
    Deliver { to: Side, count: u8 },
    /// The next datagrams are lost.
    Drop { to: Side, count: u8 },
    /// The next datagram arrives, and a copy of it stays in flight.
    Duplicate { to: Side },
    /// The next datagram is overtaken by `behind` others.
    Delay { to: Side, behind: u8 },
    /// A bit of the next datagram is flipped.
    Flip { to: Side, bit: u16 },
    /// A router marks the next datagram, and it arrives.
    Mark { to: Side },
    /// The path works without faults for `rounds` round trips of ten milliseconds.
    Flow { rounds: u8 },
    /// From now on the path drops datagrams longer than 1200 + `over` bytes.
    Narrow { over: u16 },
    /// The socket refuses a datagram of 1200 + `over` bytes.
    Refuse { by: Side, over: u16 },
    /// The content of the next datagram is replaced under the right keys. From now on the peer
    /// counts as malicious.
    Forge { to: Side, what: u8, value: u16 },
    /// The application closes the connection.
    Close { by: Side },
    /// The client's address changes, and packets to the old one are lost.
    Move { host: NewHost },
}

/// Encoded bytes of an operation.
const OP_BYTES: usize = 4;
/// Maximum operations of a test case.
const OPS_MAX: usize = 2000;

impl Plot {
    /// Decodes a test case. Any bytes are valid.
    pub fn read(bytes: &[u8]) -> Self {
        let mut steps =
            bytes.chunks_exact(OP_BYTES).map(|step| [step[0], step[1], step[2], step[3]]);
        let settings = steps.next().map_or(0, u32::from_le_bytes);
        Self { settings, ops: steps.take(OPS_MAX).map(Op::read).collect() }
    }

    /// A test case of `steps` operations from a seed. One in three has a malicious peer.
    pub fn random(seed: u64, steps: usize) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed ^ 0x706c_6f74);
        let mut bytes = vec![0; (steps + 1) * OP_BYTES];
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
    fn read([what, a, b, c]: [u8; OP_BYTES]) -> Self {
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
            _ if a < 100 => Self::BreakOff { by, nth: b },
            _ if a < 160 => Self::Cut { by, nth: b },
            _ if a < 220 => Self::Hurry { by, nth: b },
            _ => Self::Pass { time: value / 64 },
        }
    }

    /// The same operation with smaller numbers.
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
            Self::Finish { nth, .. }
            | Self::BreakOff { nth, .. }
            | Self::Cut { nth, .. }
            | Self::Hurry { nth, .. }
            | Self::Reset { nth, .. }
            | Self::Stop { nth, .. } => *nth /= 2,
            Self::Open { .. }
            | Self::Duplicate { .. }
            | Self::Mark { .. }
            | Self::Close { .. }
            | Self::Move { .. } => {}
        }
        (smaller != self).then_some(smaller)
    }
}

/// Shrinks a failing test case: it omits operations, many at a time first, then halves numbers.
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
