//! The data of a run that the page shows.

use crate::axis::Unit;
use crate::chart::{Chart, Style};
use crate::files::{self, FileSpan};
use crate::limits::{Part, memory_percent, parts};
use crate::series::{Counter, Origin, Series, rate_of_all};
use hikyaku_run_log::{Flow, Load, MachineId, Run};
use std::collections::BTreeMap;

/// A run, and what follows from its samples.
pub(crate) struct View<'a> {
    pub(crate) run: &'a Run,
    /// Seconds from its begin to its last line.
    pub(crate) seconds: f64,
    /// Bytes with each other machine, in both directions.
    pub(crate) moved: BTreeMap<MachineId, Counter>,
    /// The rate of all together, in bits a second.
    pub(crate) total: Vec<(f64, f64)>,
    pub(crate) limits: Vec<Part>,
    pub(crate) files: Vec<FileSpan>,
}

impl<'a> View<'a> {
    pub(crate) fn of(run: &'a Run) -> Self {
        let times = run.loads.iter().map(|load| load.t);
        let times = times.chain(run.flows.iter().map(|flow| flow.t));
        let times = times.chain(run.files.iter().map(|file| file.t));
        let times = times.chain(run.end.iter().map(|end| end.t).filter(|t| t.is_finite()));
        let seconds = times.fold(0.0, f64::max);
        let moved: BTreeMap<MachineId, Counter> = counters(run, |flow| {
            let (sent, received) = (flow.sent_bytes, flow.received_bytes);
            (sent.is_some() || received.is_some())
                .then(|| sent.unwrap_or(0).saturating_add(received.unwrap_or(0)))
        });
        let all: Vec<Counter> = moved.values().cloned().collect();
        let (total, limits) = (rate_of_all(&all, 8.0), parts(run, &moved));
        let files = files::spans(run, seconds);
        Self { run, seconds, moved, total, limits, files }
    }

    /// Bytes that were transferred.
    pub(crate) fn bytes(&self) -> f64 {
        self.moved.values().map(Counter::total).sum()
    }

    /// Packets lost and sent, of all machines together.
    pub(crate) fn losses(&self) -> Option<(f64, f64)> {
        let sum = |of: fn(&Flow) -> Option<u64>| {
            counters(self.run, of).values().map(Counter::total).sum::<f64>()
        };
        let sent = sum(|flow| flow.sent_packets);
        (sent > 0.0).then(|| (sum(|flow| flow.lost_packets), sent))
    }

    /// The name of a machine.
    pub(crate) fn name(&self, m: MachineId) -> String {
        let machine = self.run.machines.iter().find(|machine| machine.m == m);
        machine.map_or_else(|| format!("machine {}", m.0), |machine| machine.name.clone())
    }

    /// All charts of the run, in their order.
    pub(crate) fn charts(&self) -> String {
        let mut html = self.rates();
        html += &self.transport();
        html += &files::html(self.run, &self.files, self.seconds);
        html += &self.machines();
        html
    }

    fn rates(&self) -> String {
        let total = Series { name: "total".to_owned(), look: 0, points: self.total.clone() };
        let total = self.chart("Rate of all", "", Unit::Rate, vec![total]);
        let mut html = Chart { style: Style::Area, ..total }.html();
        let moving = self.moved.iter().filter(|(_, counter)| !counter.is_still());
        let each: Vec<Series> =
            moving.map(|(m, counter)| self.series(*m, counter.rates(8.0))).collect();
        if each.len() > 1 {
            html += &self.chart("Rate with each machine", "", Unit::Rate, each).html();
        }
        html
    }

    fn transport(&self) -> String {
        let resent = counters(self.run, |flow| flow.resent_bytes);
        let resent = resent.iter().map(|(m, counter)| self.series(*m, counter.rates(8.0)));
        let mut html = self
            .chart(
                "Retransmissions",
                "Payload that the sender sent again, as a rate.",
                Unit::Rate,
                resent.collect(),
            )
            .html();
        let (lost, sent) = (
            counters(self.run, |flow| flow.lost_packets),
            counters(self.run, |flow| flow.sent_packets),
        );
        let share = lost.iter().filter_map(|(m, lost)| {
            let sent = sent.get(m)?;
            let points = lost.rates(1.0).into_iter().zip(sent.rates(1.0));
            let points = points.map(|((t, lost), (_, sent))| (t, 100.0 * lost / sent.max(1.0)));
            Some(self.series(*m, points.collect()))
        });
        html += &self.chart("Packets declared lost", "", Unit::Percent, share.collect()).html();
        let millis = |of: fn(&Flow) -> Option<f64>| -> Vec<Series> {
            gauges(self.run.flows.iter().filter_map(|flow| Some((flow.m, flow.t, of(flow)?))))
                .into_iter()
                .map(|(m, points)| self.series(m, points))
                .collect()
        };
        html += &self.chart("Round-trip time", "", Unit::Millis, millis(|flow| flow.rtt_ms)).html();
        let queue = millis(|flow| flow.queue_ms);
        html += &self.chart("Delay in queues", "", Unit::Millis, queue).html();
        html
    }

    fn machines(&self) -> String {
        let of = |value: fn(&Load) -> Option<f64>| -> Vec<Series> {
            gauges(self.run.loads.iter().filter_map(|load| Some((load.m, load.t, value(load)?))))
                .into_iter()
                .map(|(m, points)| self.series(m, points))
                .collect()
        };
        let bytes = |value: fn(&Load) -> Option<u64>| -> Vec<Series> {
            let mut all: BTreeMap<MachineId, Vec<(f64, u64)>> = BTreeMap::new();
            for load in &self.run.loads {
                if let Some(value) = value(load) {
                    all.entry(load.m).or_default().push((load.t, value));
                }
            }
            all.into_iter()
                .map(|(m, samples)| {
                    let counter = Counter::new(samples.into_iter(), Origin::Unknown);
                    self.series(m, counter.rates(8.0))
                })
                .filter(|series| series.points.iter().any(|point| point.1 > 0.0))
                .collect()
        };
        let percent = |title, note, series| {
            let chart = self.chart(title, note, Unit::Percent, series);
            Chart { top: Some(100.0), ..chart }.html()
        };
        let mut html =
            percent("Processors", "Of all processors of the machine.", of(|load| load.cpu_percent));
        html += &self
            .chart(
                "Processor time of hikyaku",
                "100 % is one processor.",
                Unit::Percent,
                of(|load| load.process_cpu_percent),
            )
            .html();
        html += &percent("Memory in use", "", of(memory_percent));
        let resident = of(|load| load.process_memory_bytes.map(|bytes| bytes as f64));
        html += &self.chart("Memory of hikyaku", "", Unit::Bytes, resident).html();
        let note = "What hikyaku had the kernel read from disks; what was in its memory already is not in it.";
        let read = bytes(|load| load.disk_read_bytes);
        html += &self.chart("Read from disks", note, Unit::Rate, read).html();
        let written = bytes(|load| load.disk_written_bytes);
        html += &self.chart("Written to disks", "By hikyaku.", Unit::Rate, written).html();
        let busy = of(|load| load.disk_busy_percent);
        html += &percent("Disk busy", "The time in which the device had requests.", busy);
        let used = of(|load| {
            let (free, total) = (load.disk_free_bytes?, load.disk_total_bytes?);
            Some(total.saturating_sub(free) as f64)
        });
        html += &self.chart("Disk in use", "", Unit::Bytes, used).html();
        html
    }

    fn chart<'c>(
        &self,
        title: &'c str,
        note: &'c str,
        unit: Unit,
        series: Vec<Series>,
    ) -> Chart<'c> {
        Chart {
            title,
            note,
            units: (Unit::Seconds, unit),
            across: "time",
            series,
            end: Some(self.seconds),
            top: None,
            style: Style::Lines,
        }
    }

    fn series(&self, m: MachineId, points: Vec<(f64, f64)>) -> Series {
        Series { name: self.name(m), look: m.0 as usize, points }
    }
}

/// The counters of the flows with each machine.
fn counters(run: &Run, of: impl Fn(&Flow) -> Option<u64>) -> BTreeMap<MachineId, Counter> {
    // A daemon's log begins before or after the connections of its clients.
    let origin = if run.begin.command == "serve" { Origin::Unknown } else { Origin::Zero };
    let mut all: BTreeMap<MachineId, Vec<(f64, u64)>> = BTreeMap::new();
    for flow in &run.flows {
        if let Some(value) = of(flow) {
            all.entry(flow.m).or_default().push((flow.t, value));
        }
    }
    all.into_iter().map(|(m, samples)| (m, Counter::new(samples.into_iter(), origin))).collect()
}

/// The values of each machine in the order of their times.
fn gauges(
    samples: impl Iterator<Item = (MachineId, f64, f64)>,
) -> BTreeMap<MachineId, Vec<(f64, f64)>> {
    let mut all: BTreeMap<MachineId, Vec<(f64, f64)>> = BTreeMap::new();
    for (m, t, value) in samples.filter(|(.., value)| value.is_finite()) {
        all.entry(m).or_default().push((t, value));
    }
    for points in all.values_mut() {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    all
}
