//! What the lab tells about a run, for readers and for programs.

use crate::host::HostProfile;
use crate::relay::{LATE_MAX, LATE_P99, Snapshot};
use hikyaku_link::{Counters, Direction, LinkSpec};
use hikyaku_units::{DataSize, DurationText, Rate};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The state of a lab. All sums grow from the start of its clock, so two reports can be subtracted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The lab's name.
    pub lab: String,
    /// Seconds since the lab's clock was started.
    pub seconds: f64,
    /// Whether the relay kept up: nothing late, nothing dropped by the lab itself.
    pub valid: bool,
    /// Why not.
    pub problems: Vec<String>,
    /// The way from the client to the servers.
    pub up: DirectionReport,
    /// The way from the servers to the client.
    pub down: DirectionReport,
    /// The servers' own links.
    pub servers: Vec<ServerReport>,
    /// How well the relay did.
    pub relay: RelayReport,
    /// The ends.
    pub host: HostReport,
}

/// One direction of the link.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Bits a second, if limited.
    pub rate_bits_per_sec: Option<u64>,
    /// The delay, in milliseconds.
    pub delay_ms: f64,
    /// What the queue holds, if limited.
    pub queue_limit_bytes: Option<u64>,
    /// Wire segments offered, and their bytes of IP.
    pub segments: u64,
    /// Bytes of IP offered.
    pub bytes: u64,
    /// Wire segments delivered, second copies not counted.
    pub delivered: u64,
    /// Their bytes of IP.
    pub delivered_bytes: u64,
    /// Lost by chance.
    pub lost: u64,
    /// Turned away by the full queue.
    pub overflowed: u64,
    /// Dropped by the managed queue.
    #[serde(default)]
    pub aqm_dropped: u64,
    /// Dropped by the policer.
    #[serde(default)]
    pub policed: u64,
    /// Longer than the link's MTU.
    pub too_big: u64,
    /// Lost in outages.
    pub cut: u64,
    /// Delivered damaged.
    pub corrupted: u64,
    /// Delivered twice.
    pub duplicated: u64,
    /// Held back.
    pub reordered: u64,
    /// Marked with congestion experienced.
    pub marked: u64,
    /// The largest queue, in bytes.
    pub largest_queue_bytes: u64,
    /// The longest wait in the queue.
    pub largest_queue_ms: f64,
    /// The mean queue over all time, in bytes.
    pub mean_queue_bytes: u64,
    /// The mean wait over all time.
    pub mean_queue_ms: f64,
    /// The integral of the queue over time: a difference of two, divided by the time between them,
    /// is the mean queue in that time.
    pub queue_byte_seconds: f64,
    /// The integral of the wait over time.
    pub queue_ms_seconds: f64,
}

/// A server's own links.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerReport {
    /// Counted from 1.
    pub number: u32,
    /// Wire segments turned away by the full queue, towards the server.
    pub up_overflowed: u64,
    /// And from it.
    pub down_overflowed: u64,
    /// Bytes of IP delivered to the server.
    pub up_delivered_bytes: u64,
    /// And from it.
    pub down_delivered_bytes: u64,
}

/// How well the relay did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RelayReport {
    /// Packets written to devices; a super-packet counts once.
    pub writes: u64,
    /// How late the median packet was.
    pub late_p50_us: f64,
    /// How late all but one in a hundred were at most.
    pub late_p99_us: f64,
    /// How late the latest was.
    pub late_max_us: f64,
    /// The processor time that the relay has used. When it comes near to the time passed, the link
    /// is more than this machine can emulate.
    pub cpu_seconds: f64,
    /// Packets that a namespace sent faster than the relay could read them.
    pub device_drops: u64,
    /// Packets that the kernel did not take.
    pub refused: u64,
    /// Packets for which there was no memory.
    pub memory_drops: u64,
    /// Packets for nobody in the lab, such as multicast; harmless.
    pub stray: u64,
}

/// The ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostReport {
    /// `debian` or `tuned`.
    pub profile: String,
    /// The TCP congestion control.
    pub congestion_control: String,
    /// The most that a socket may ask for as its receive buffer. The kernel has one limit for all
    /// namespaces, so this is the machine's own; Debian's is 212992.
    pub rmem_max: Option<u64>,
    /// The same for the send buffer.
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
        let micros = |late: Duration| late.as_secs_f64() * 1e6;
        let limit = |name: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok()?;
            text.trim().parse().ok()
        };
        Self {
            lab: lab.to_owned(),
            seconds: snapshot.at.as_secs_f64(),
            valid: problems.is_empty(),
            problems,
            up: DirectionReport::new(&snapshot.path.link(Direction::Up), &snapshot.up),
            down: DirectionReport::new(&snapshot.path.link(Direction::Down), &snapshot.down),
            servers: servers.collect(),
            relay: RelayReport {
                writes: snapshot.lateness.count(),
                late_p50_us: micros(snapshot.lateness.quantile(0.5)),
                late_p99_us: micros(snapshot.lateness.quantile(0.99)),
                late_max_us: micros(snapshot.lateness.max()),
                cpu_seconds: snapshot.cpu.as_secs_f64(),
                device_drops: snapshot.own_drops.device,
                refused: snapshot.own_drops.refused,
                memory_drops: snapshot.own_drops.memory,
                stray: snapshot.stray,
            },
            host: HostReport {
                profile: host.name().to_owned(),
                congestion_control: host.congestion_control().to_owned(),
                rmem_max: limit("rmem_max"),
                wmem_max: limit("wmem_max"),
            },
        }
    }
}

impl DirectionReport {
    fn new(link: &LinkSpec, counters: &Counters) -> Self {
        let start = Counters::default();
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        Self {
            rate_bits_per_sec: link.rate.map(Rate::bits_per_sec),
            delay_ms: ms(link.delay),
            queue_limit_bytes: link.queue.map(DataSize::bytes),
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
            largest_queue_bytes: counters.largest_queue.bytes(),
            largest_queue_ms: ms(counters.largest_wait),
            mean_queue_bytes: counters.mean_queue_since(&start).bytes(),
            mean_queue_ms: ms(counters.mean_wait_since(&start)),
            queue_byte_seconds: counters.queue_integral as f64 / 1e9,
            queue_ms_seconds: counters.wait_integral as f64 / 1e15,
        }
    }
}

fn problems(snapshot: &Snapshot) -> Vec<String> {
    let mut problems = Vec::new();
    let p99 = snapshot.lateness.quantile(0.99);
    if p99 > LATE_P99 || snapshot.lateness.max() > LATE_MAX {
        let (p99, max) = (DurationText(p99), DurationText(snapshot.lateness.max()));
        problems.push(format!("the relay was late: 99% within {p99}, the latest {max}"));
    }
    if snapshot.own_drops.total() > 0 {
        let drops = &snapshot.own_drops;
        problems.push(format!(
            "the lab itself dropped packets: {} in the devices, {} refused, {} for want of memory",
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
        let RelayReport { writes, late_p50_us, late_p99_us, late_max_us, cpu_seconds, .. } =
            &self.relay;
        let busy = cpu_seconds * 100.0 / self.seconds;
        writeln!(
            f,
            "  relay {writes} packets, {busy:.0}% busy, late by {late_p50_us:.0} us (median), \
             {late_p99_us:.0} us (99%), {late_max_us:.0} us (worst)"
        )?;
        for problem in &self.problems {
            writeln!(f, "  NOT VALID: {problem}")?;
        }
        Ok(())
    }
}

impl fmt::Display for DirectionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = DataSize::from_bytes(self.bytes);
        write!(f, "{} segments, {bytes}", self.segments)?;
        let counts = [
            (self.lost, "lost"),
            (self.overflowed, "overflowed"),
            (self.aqm_dropped, "dropped by the managed queue"),
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
