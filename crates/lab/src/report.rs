//! The lab's report of a run, as text and as JSON.

use crate::host::HostProfile;
use crate::relay::{LATE_MAX, LATE_P99, PathState, Snapshot};
use hikyaku_link::{Counters, Direction, LinkSpec, LossModel};
use hikyaku_units::{DataSize, DurationText, Rate};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The state of a lab. All counters grow from the start of its clock, so that two reports can be
/// subtracted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The lab's name.
    pub lab: String,
    /// Seconds since the lab's clock was started.
    pub seconds: f64,
    /// Whether the relay kept up: no packet too late, none dropped by the lab itself.
    pub valid: bool,
    /// The reasons, if it did not.
    pub problems: Vec<String>,
    /// From the client to the servers.
    pub up: DirectionReport,
    /// From the servers to the client.
    pub down: DirectionReport,
    /// The access links of the servers.
    pub servers: Vec<ServerReport>,
    /// Health of the relay.
    pub relay: RelayReport,
    /// The hosts' settings.
    pub host: HostReport,
}

/// One direction of a link.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Rate in bits per second, if limited.
    pub rate_bits_per_sec: Option<u64>,
    /// One-way propagation delay in milliseconds.
    pub delay_ms: f64,
    /// Largest extra delay by jitter, in milliseconds.
    #[serde(default)]
    pub jitter_ms: f64,
    /// Random loss, as a fraction.
    #[serde(default)]
    pub loss_share: f64,
    /// Mean length of a loss burst, in segments.
    #[serde(default)]
    pub loss_burst: f64,
    /// Offered rate of the cross traffic, as a fraction of the link's rate.
    #[serde(default)]
    pub background_share: f64,
    /// Largest packet in bytes, if limited.
    #[serde(default)]
    pub mtu: Option<u32>,
    /// Capacity of the queue in bytes, if limited in bytes.
    pub queue_limit_bytes: Option<u64>,
    /// Capacity of the queue in segments, if limited in segments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_limit_packets: Option<u32>,
    /// Wire segments offered to the link.
    pub segments: u64,
    /// Bytes offered, IP headers included.
    pub bytes: u64,
    /// Wire segments delivered, duplicates not counted.
    pub delivered: u64,
    /// Bytes delivered, IP headers included.
    pub delivered_bytes: u64,
    /// Lost at random.
    pub lost: u64,
    /// Dropped because the queue was full.
    pub overflowed: u64,
    /// Dropped by active queue management.
    #[serde(default)]
    pub aqm_dropped: u64,
    /// Dropped by the policer.
    #[serde(default)]
    pub policed: u64,
    /// Dropped because longer than the link's MTU.
    pub too_big: u64,
    /// Dropped in outages.
    pub cut: u64,
    /// Delivered with a flipped bit.
    pub corrupted: u64,
    /// Delivered twice.
    pub duplicated: u64,
    /// Held back, so that later segments overtook them.
    pub reordered: u64,
    /// Marked with congestion experienced (CE).
    pub marked: u64,
    /// Segments of cross traffic that the link has sent.
    #[serde(default)]
    pub background: u64,
    /// Segments of cross traffic dropped because the queue was full.
    #[serde(default)]
    pub background_dropped: u64,
    /// The longest queue, in bytes.
    pub largest_queue_bytes: u64,
    /// The longest queueing delay, in milliseconds.
    pub largest_queue_ms: f64,
    /// Mean length of the queue since the clock was started, in bytes.
    pub mean_queue_bytes: u64,
    /// Mean queueing delay since the clock was started, in milliseconds.
    pub mean_queue_ms: f64,
    /// Integral of the queue's length over time. The difference of two reports divided by the time
    /// between them is the mean in that time.
    pub queue_byte_seconds: f64,
    /// Integral of the queueing delay over time.
    pub queue_ms_seconds: f64,
}

/// The access links of a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerReport {
    /// Number of the server, counted from 1.
    pub number: u32,
    /// Wire segments towards the server dropped because the queue was full.
    pub up_overflowed: u64,
    /// The same from the server.
    pub down_overflowed: u64,
    /// Bytes delivered to the server, IP headers included.
    pub up_delivered_bytes: u64,
    /// The same from the server.
    pub down_delivered_bytes: u64,
}

/// Health of the relay.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RelayReport {
    /// Packets written to devices; a super-packet counts as one.
    pub writes: u64,
    /// Median lateness of the packets, in microseconds.
    pub late_p50_us: f64,
    /// 99th percentile of the lateness, in microseconds.
    pub late_p99_us: f64,
    /// Largest lateness, in microseconds.
    pub late_max_us: f64,
    /// Processor time used by the relay. If it approaches the elapsed time, the link is too fast
    /// for this machine.
    pub cpu_seconds: f64,
    /// Packets dropped because a namespace sent them faster than the relay read.
    pub device_drops: u64,
    /// Packets that the kernel did not accept from the relay.
    pub refused: u64,
    /// Packets dropped for lack of memory.
    pub memory_drops: u64,
    /// Packets that are not addressed to any host of the lab, such as multicast. They are harmless.
    pub stray: u64,
}

/// The settings of the hosts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostReport {
    /// `debian` or `tuned`.
    pub profile: String,
    /// The TCP congestion control.
    pub congestion_control: String,
    /// Largest receive buffer that a socket may request (net.core.rmem_max). The kernel has one
    /// limit for all namespaces, so this is the machine's own; Debian's default is 212992.
    pub rmem_max: Option<u64>,
    /// The same for the send buffer (net.core.wmem_max).
    pub wmem_max: Option<u64>,
}

impl Report {
    pub(crate) fn new(lab: &str, host: &HostProfile, snapshot: &Snapshot) -> Self {
        let problems = problems(snapshot);
        let servers = snapshot.access.iter().zip(1..).filter_map(|(both, number)| {
            let (up, down) = both.as_ref()?;
            Some(ServerReport {
                number,
                up_overflowed: up.overflowed,
                down_overflowed: down.overflowed,
                up_delivered_bytes: up.delivered_bytes,
                down_delivered_bytes: down.delivered_bytes,
            })
        });
        let (up, down) = directions(&snapshot.paths[0]);
        Self {
            lab: lab.to_owned(),
            seconds: snapshot.at.as_secs_f64(),
            valid: problems.is_empty(),
            problems,
            up,
            down,
            servers: servers.collect(),
            relay: RelayReport::new(snapshot),
            host: HostReport::new(host),
        }
    }
}

impl RelayReport {
    pub(crate) fn new(snapshot: &Snapshot) -> Self {
        let micros = |late: Duration| late.as_secs_f64() * 1e6;
        Self {
            writes: snapshot.lateness.count(),
            late_p50_us: micros(snapshot.lateness.quantile(0.5)),
            late_p99_us: micros(snapshot.lateness.quantile(0.99)),
            late_max_us: micros(snapshot.lateness.max()),
            cpu_seconds: snapshot.cpu.as_secs_f64(),
            device_drops: snapshot.own_drops.device,
            refused: snapshot.own_drops.refused,
            memory_drops: snapshot.own_drops.memory,
            stray: snapshot.stray,
        }
    }
}

impl HostReport {
    pub(crate) fn new(host: &HostProfile) -> Self {
        let limit = |name: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok()?;
            text.trim().parse().ok()
        };
        Self {
            profile: host.name().to_owned(),
            congestion_control: host.congestion_control().to_owned(),
            rmem_max: limit("rmem_max"),
            wmem_max: limit("wmem_max"),
        }
    }
}

/// Reports of both directions of a path.
pub(crate) fn directions(state: &PathState) -> (DirectionReport, DirectionReport) {
    let PathState { path, up, down } = state;
    let new = |direction, counters| DirectionReport::new(&path.link(direction), counters);
    (new(Direction::Up, up), new(Direction::Down, down))
}

impl DirectionReport {
    fn new(link: &LinkSpec, counters: &Counters) -> Self {
        let start = Counters::default();
        let (loss_share, loss_burst) = match link.loss {
            LossModel::None => (0.0, 1.0),
            LossModel::Bernoulli(loss) => (loss.get(), 1.0),
            LossModel::Bursts { loss, mean_burst } => (loss.get(), mean_burst),
            LossModel::Periodic(every) => (1.0 / every.max(1) as f64, 1.0),
        };
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        Self {
            rate_bits_per_sec: link.rate.map(Rate::bits_per_sec),
            delay_ms: ms(link.delay),
            jitter_ms: ms(link.jitter),
            loss_share,
            loss_burst,
            background_share: link.background.map_or(0.0, |background| background.share.get()),
            mtu: link.mtu,
            queue_limit_bytes: link.queue.map(DataSize::bytes),
            queue_limit_packets: link.queue_packets,
            segments: counters.segments,
            bytes: counters.bytes,
            delivered: counters.delivered,
            delivered_bytes: counters.delivered_bytes,
            lost: counters.lost,
            overflowed: counters.overflowed,
            aqm_dropped: counters.aqm_dropped,
            policed: counters.policed,
            too_big: counters.too_big,
            cut: counters.cut,
            corrupted: counters.corrupted,
            duplicated: counters.duplicated,
            reordered: counters.reordered,
            marked: counters.marked,
            background: counters.background,
            background_dropped: counters.background_dropped,
            largest_queue_bytes: counters.largest_queue.bytes(),
            largest_queue_ms: ms(counters.largest_wait),
            mean_queue_bytes: counters.mean_queue_since(&start).bytes(),
            mean_queue_ms: ms(counters.mean_wait_since(&start)),
            queue_byte_seconds: counters.queue_integral as f64 / 1e9,
            queue_ms_seconds: counters.wait_integral as f64 / 1e15,
        }
    }
}

/// The reasons why a measurement is not valid.
pub(crate) fn problems(snapshot: &Snapshot) -> Vec<String> {
    let mut problems = Vec::new();
    let p99 = snapshot.lateness.quantile(0.99);
    if p99 > LATE_P99 || snapshot.lateness.max() > LATE_MAX {
        let (p99, max) = (DurationText(p99), DurationText(snapshot.lateness.max()));
        problems.push(format!("the relay was late: 99% within {p99}, the latest {max}"));
    }
    if snapshot.own_drops.total() > 0 {
        let drops = &snapshot.own_drops;
        problems.push(format!(
            "the lab itself dropped packets: {} in the devices, {} refused by the kernel, {} for lack of memory",
            drops.device, drops.refused, drops.memory
        ));
    }
    problems
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "lab {}, {:.1} s", self.lab, self.seconds)?;
        writeln!(f, "  up    {}", self.up)?;
        writeln!(f, "  down  {}", self.down)?;
        self.relay.print(self.seconds, f)?;
        print_problems(&self.problems, f)
    }
}

impl RelayReport {
    /// Prints the relay's line for a lab that has run for `seconds`.
    pub(crate) fn print(&self, seconds: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writes, late_p50_us, late_p99_us, late_max_us, cpu_seconds, .. } = self;
        let busy = cpu_seconds * 100.0 / seconds;
        writeln!(
            f,
            "  relay {writes} packets, {busy:.0}% busy, late by {late_p50_us:.0} us (median), \
             {late_p99_us:.0} us (99%), {late_max_us:.0} us (worst)"
        )
    }
}

/// Prints the reasons why a measurement is not valid.
pub(crate) fn print_problems(problems: &[String], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    problems.iter().try_for_each(|problem| writeln!(f, "  NOT VALID: {problem}"))
}

impl fmt::Display for DirectionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = DataSize::from_bytes(self.bytes);
        write!(f, "{} segments, {bytes}", self.segments)?;
        let counts = [
            (self.lost, "lost"),
            (self.overflowed, "dropped by the full queue"),
            (self.aqm_dropped, "dropped by AQM"),
            (self.policed, "policed"),
            (self.too_big, "too big"),
            (self.cut, "in outages"),
            (self.corrupted, "corrupted"),
            (self.duplicated, "duplicated"),
            (self.reordered, "held back"),
            (self.marked, "marked"),
        ];
        for (count, what) in counts.iter().filter(|(count, _)| *count > 0) {
            let share = *count as f64 * 100.0 / self.segments as f64;
            write!(f, ", {count} {what} ({share:.3}%)")?;
        }
        if self.background > 0 {
            let (sent, dropped) = (self.background, self.background_dropped);
            write!(f, ", {sent} of cross traffic, which lost {dropped} more")?;
        }
        if self.largest_queue_bytes > 0 {
            let mean = DataSize::from_bytes(self.mean_queue_bytes);
            let largest = DataSize::from_bytes(self.largest_queue_bytes);
            write!(
                f,
                ", queue {mean} = {:.1} ms (mean), {largest} = {:.1} ms (largest)",
                self.mean_queue_ms, self.largest_queue_ms
            )?;
        }
        Ok(())
    }
}
