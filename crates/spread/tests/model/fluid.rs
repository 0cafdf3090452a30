//! Servers as fluids: each sends what it was asked for at a rate that follows a schedule, all of them through the
//! client's link, in steps of virtual time.

use std::collections::VecDeque;
use std::time::Duration;

/// The length of a step.
pub(crate) const STEP: Duration = Duration::from_millis(5);

/// A server.
#[derive(Clone, Debug)]
pub(crate) struct ServerSpec {
    pub(crate) rtt: Duration,
    /// From when on which rate holds, in bytes a second; sorted, beginning at zero.
    pub(crate) rates: Vec<(Duration, f64)>,
}

impl ServerSpec {
    /// A server with one rate, in Mbit/s, at 150 ms.
    pub(crate) fn steady(mbit: f64) -> Self {
        Self { rtt: Duration::from_millis(150), rates: vec![(Duration::ZERO, mbit * 1e6 / 8.0)] }
    }

    /// The server with another rate from `secs` on, as a share of the first one.
    pub(crate) fn then(mut self, secs: f64, share: f64) -> Self {
        self.rates.push((Duration::from_secs_f64(secs), self.rates[0].1 * share));
        self
    }

    pub(crate) fn rate_at(&self, now: Duration) -> f64 {
        let at = self.rates.partition_point(|&(from, _)| from <= now);
        self.rates[at - 1].1
    }

    /// The server without its later events.
    pub(crate) fn as_at_start(&self) -> Self {
        Self { rtt: self.rtt, rates: self.rates[..1].to_vec() }
    }
}

/// A message of the client to a server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message {
    Ask { id: u64, bytes: u64 },
    Cut { id: u64, from: u64 },
}

/// An event at the client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    Bytes { server: usize, id: u64, bytes: u64 },
    End { server: usize, id: u64 },
}

struct Job {
    id: u64,
    bytes: u64,
    sent: f64,
    /// Whole bytes of `sent` that are on their way.
    told: u64,
}

struct Server {
    spec: ServerSpec,
    inbox: VecDeque<(Duration, Message)>,
    jobs: VecDeque<Job>,
}

/// All servers and the link.
pub(crate) struct World {
    pub(crate) now: Duration,
    /// Bytes that have arrived in all.
    pub(crate) arrived: u64,
    link: f64,
    /// The number of asks that a server works on at once, each at an equal share of its rate.
    lanes: usize,
    servers: Vec<Server>,
    outbox: Vec<VecDeque<(Duration, Event)>>,
}

impl World {
    /// `link` in bytes a second; `lanes`: the number of asks that a server works on at once.
    pub(crate) fn new(specs: &[ServerSpec], link: f64, lanes: usize) -> Self {
        let server = |spec: &ServerSpec| Server {
            spec: spec.clone(),
            inbox: VecDeque::new(),
            jobs: VecDeque::new(),
        };
        Self {
            now: Duration::ZERO,
            arrived: 0,
            link,
            lanes,
            servers: specs.iter().map(server).collect(),
            outbox: specs.iter().map(|_| VecDeque::new()).collect(),
        }
    }

    pub(crate) fn send(&mut self, server: usize, message: Message) {
        let found = &mut self.servers[server];
        found.inbox.push_back((self.now + found.spec.rtt / 2, message));
    }

    /// One step. Returns what arrives.
    pub(crate) fn step(&mut self) -> Vec<Event> {
        self.now += STEP;
        let secs = STEP.as_secs_f64();
        let now = self.now;
        self.servers.iter_mut().for_each(|server| server.receive(now));
        let wants: Vec<f64> = self.servers.iter().map(|server| server.wants(now)).collect();
        let gets = max_min(self.link * secs, &wants);
        let lanes = self.lanes;
        for (index, server) in self.servers.iter_mut().enumerate() {
            let at = now + server.spec.rtt / 2;
            server.work(lanes, gets[index], |event| {
                self.outbox[index].push_back((at, event(index)));
            });
        }
        let mut events = Vec::new();
        for outbox in &mut self.outbox {
            while outbox.front().is_some_and(|&(at, _)| at <= now) {
                events.extend(outbox.pop_front().map(|(_, event)| event));
            }
        }
        let bytes = |event: &Event| match event {
            Event::Bytes { bytes, .. } => *bytes,
            Event::End { .. } => 0,
        };
        self.arrived += events.iter().map(bytes).sum::<u64>();
        events
    }
}

impl Server {
    fn receive(&mut self, now: Duration) {
        // A frozen server does not read.
        while self.spec.rate_at(now) > 0.0 && self.inbox.front().is_some_and(|&(at, _)| at <= now) {
            match self.inbox.pop_front() {
                Some((_, Message::Ask { id, bytes })) => {
                    self.jobs.push_back(Job { id, bytes, sent: 0.0, told: 0 });
                }
                Some((_, Message::Cut { id, from })) => {
                    if let Some(job) = self.jobs.iter_mut().find(|job| job.id == id) {
                        job.bytes = job.bytes.min(from.max(job.told));
                    }
                }
                None => {}
            }
        }
    }

    fn wants(&self, now: Duration) -> f64 {
        let left: f64 = self.jobs.iter().map(|job| job.bytes as f64 - job.sent).sum();
        left.min(self.spec.rate_at(now) * STEP.as_secs_f64())
    }

    /// Sends the bytes of a step.
    fn work(
        &mut self,
        lanes: usize,
        mut bytes: f64,
        mut emit: impl FnMut(&dyn Fn(usize) -> Event),
    ) {
        while let Some(least) = self.jobs.iter().take(lanes).map(Job::left).reduce(f64::min) {
            let busy = self.jobs.len().min(lanes) as f64;
            let each = least.min(bytes / busy).max(0.0);
            self.jobs.iter_mut().take(lanes).for_each(|job| job.sent += each);
            bytes -= each * busy;
            for job in self.jobs.iter_mut().take(lanes) {
                // A rest of a byte by rounding counts as sent.
                let whole = if job.left() < 1e-6 { job.bytes } else { job.sent as u64 };
                let (id, fresh) = (job.id, whole - job.told);
                job.told = whole;
                if fresh > 0 {
                    emit(&|server| Event::Bytes { server, id, bytes: fresh });
                }
            }
            let is_over = |job: &Job| job.told >= job.bytes;
            self.jobs.iter().filter(|job| is_over(job)).for_each(|job| {
                emit(&|server| Event::End { server, id: job.id });
            });
            let before = self.jobs.len();
            self.jobs.retain(|job| !is_over(job));
            if bytes < 1e-6 || self.jobs.len() == before {
                break;
            }
        }
    }
}

impl Job {
    fn left(&self) -> f64 {
        self.bytes as f64 - self.sent
    }
}

/// Shares of a total, max-min fair.
fn max_min(total: f64, wants: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wants.len()).collect();
    order.sort_by(|&a, &b| wants[a].total_cmp(&wants[b]));
    let mut gets = vec![0.0; wants.len()];
    let mut rest = total;
    for (at, &index) in order.iter().enumerate() {
        gets[index] = wants[index].min(rest / (order.len() - at) as f64);
        rest -= gets[index];
    }
    gets
}
