//! Short dialogues over impaired paths: small transfers in both directions, on streams and objects
//! at the same time.

use crate::apps::Apps;
use crate::duo::{Duo, index, overhear};
use crate::paths::EFFICIENCY_1500;
use crate::trace;
use crate::watch::Watch;
use crate::wire::{Cargo, Way, Wire};
use crate::world::SimError;
use hikyaku_link::{LinkSpec, LossModel, Outage, Reorder};
use hikyaku_proto::{Config, Side, StreamKind};
use hikyaku_units::{DataSize, Instant, Probability, Rate};
use std::fmt;
use std::time::Duration;

/// A path, and the transfers over it.
#[derive(Clone, Debug)]
pub struct Brief {
    /// The seed that generated it and with which it runs.
    pub seed: u64,
    /// From client to server, and back.
    pub links: [LinkSpec; 2],
    /// What client and server send: for each stream its kind and its bytes.
    pub loads: [Vec<(StreamKind, u64)>; 2],
}

const SIDES: [Side; 2] = [Side::Client, Side::Server];
/// Bytes of IP and UDP headers of a datagram.
const HEADER_BYTES: u32 = 28;
/// Maximum steps of the simulation, above what any link needs.
const STEPS_MAX: u64 = 300_000;

impl Brief {
    /// The dialogue of `seed`. The rate is 1 Mbit/s - 10 Gbit/s and the round-trip time 0.2 - 600
    /// ms, both uniform on a logarithmic scale. A third of the paths each have up to 20 % loss
    /// (independent or in bursts), jitter, reordering, duplication and corruption. A sixth each
    /// have an outage, or an MTU black hole. Each side sends up to 300 kB on one to four streams.
    pub fn random(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed ^ 0x6272_6965);
        let rtt = 0.2e-3 * 3000f64.powf(rng.f64());
        let rates = [(); 2].map(|()| 1e6 * 10_000f64.powf(rng.f64()));
        let is_even = rng.u8(0..3) > 0;
        let rates = if is_even { [rates[0]; 2] } else { rates };
        let links = rates.map(|rate| impaired(&mut rng, rate, rtt));
        let loads = [(); 2].map(|()| {
            let count = rng.usize(1..=4);
            let load = |rng: &mut fastrand::Rng| {
                let kind = if rng.bool() { StreamKind::Ordered } else { StreamKind::Object };
                (kind, (100.0 * 750f64.powf(rng.f64())) as u64)
            };
            (0..count).map(|_| load(&mut rng)).collect()
        });
        Self { seed, links, loads }
    }

    /// The maximum time of the dialogue: what the slower direction needs at a quarter of its rate,
    /// sixteen round trips, and twice the duration of outages. With loss a last packet may be lost
    /// several times, and the sender's probe timeout grows each time.
    pub fn bound(&self) -> Duration {
        let mut carry = 0.0f64;
        let mut cut = Duration::ZERO;
        let mut loss = 0.0f64;
        let mut rtt = Duration::ZERO;
        for (link, load) in self.links.iter().zip(&self.loads) {
            let rate = link.rate.map_or(f64::INFINITY, |rate| rate.bytes_per_sec());
            let bytes: u64 = load.iter().map(|(_, bytes)| bytes + 3000).sum();
            let lost = mean_loss(link);
            carry = carry.max(bytes as f64 / (rate * EFFICIENCY_1500 * (1.0 - lost)));
            cut += link.outages.iter().map(|outage| outage.lasts).sum();
            loss = loss.max(lost);
            rtt += link.delay + link.jitter + link.reorder.extra;
        }
        let rounds = 16.0 + 160.0 * loss;
        Duration::from_secs_f64(0.2 + 4.0 * carry + rounds * rtt.as_secs_f64() + 8.0 * loss)
            + cut * 2
    }

    /// Runs the dialogue. Returns its duration.
    pub fn run(&self) -> Result<Duration, SimError> {
        let mut talk = Talk::new(self);
        talk.run(self).map_err(|what| SimError { what, at: talk.duo.now, seed: self.seed })
    }
}

/// The mean fraction of lost packets.
fn mean_loss(link: &LinkSpec) -> f64 {
    let lost = match link.loss {
        LossModel::None => 0.0,
        LossModel::Bernoulli(loss) | LossModel::Bursts { loss, .. } => loss.get(),
        LossModel::Periodic(n) => 1.0 / n as f64,
    };
    1.0 - (1.0 - lost) * (1.0 - link.corrupt.get())
}

/// A link with some impairments.
fn impaired(rng: &mut fastrand::Rng, rate: f64, rtt: f64) -> LinkSpec {
    let mut one_in = |n: u8, value: f64| if rng.u8(0..n) == 0 { value } else { 0.0 };
    let lossy = one_in(3, 0.2);
    let jitter = one_in(3, rtt * 0.3);
    let reorder = one_in(3, 0.05);
    let duplicate = one_in(3, 0.05);
    let corrupt = one_in(3, 0.03);
    let is_cut = one_in(6, 1.0) > 0.0;
    let is_narrow = one_in(6, 1.0) > 0.0;
    let product = rate / 8.0 * rtt;
    let loss = Probability::new(lossy * rng.f64().powi(2));
    let from = Instant::from_millis(1000) + Duration::from_secs_f64(rng.f64() * 6.0 * rtt);
    let lasts = Duration::from_secs_f64(0.02 * 150f64.powf(rng.f64()));
    LinkSpec {
        rate: Some(Rate::from_bits_per_sec(rate as u64)),
        delay: Duration::from_secs_f64(rtt / 2.0),
        queue: Some(DataSize::from_bytes((product * 2.0 * rng.f64()).max(20.0 * 1500.0) as u64)),
        loss: match rng.u8(0..2) {
            0 => LossModel::Bernoulli(loss),
            _ => LossModel::Bursts { loss, mean_burst: 1.0 + 9.0 * rng.f64() },
        },
        jitter: Duration::from_secs_f64(jitter),
        reorder: Reorder {
            probability: Probability::new(reorder),
            extra: Duration::from_secs_f64(rtt * rng.f64()),
        },
        duplicate: Probability::new(duplicate),
        corrupt: Probability::new(corrupt * rng.f64()),
        mtu: is_narrow.then(|| rng.u32(1228..1500)),
        outages: if is_cut { vec![Outage { from, lasts }] } else { Vec::new() },
        queue_packets: None,
        ecn: None,
        aqm: None,
        police: None,
        background: None,
    }
}

/// A running dialogue.
struct Talk {
    duo: Duo,
    apps: Apps,
    watch: Watch,
    wire: Wire,
    has_spoken: [bool; 2],
}

impl Talk {
    fn new(brief: &Brief) -> Self {
        let config = Config {
            stream_window: Config::default().initial_window,
            // A server that answers late must not count as unreachable.
            connect_timeout: Duration::from_secs(60),
            ..Config::default()
        };
        let mut rng = fastrand::Rng::with_seed(brief.seed);
        Self {
            duo: Duo::apart(&config, &config),
            apps: Apps::new(brief.seed),
            watch: Watch::new([&config; 2]),
            wire: Wire::new([&brief.links[0], &brief.links[1]], &mut rng),
            has_spoken: [false; 2],
        }
    }

    fn run(&mut self, brief: &Brief) -> Result<Duration, String> {
        let began = self.duo.now;
        let limit = brief.bound() * 4 + Duration::from_secs(60);
        for _ in 0..STEPS_MAX {
            for side in SIDES {
                self.turn(side, &brief.loads[index(side)])?;
            }
            let took = self.duo.now - began;
            if self.has_spoken == [true; 2] && self.apps.unfinished().is_none() {
                return Ok(took);
            }
            if took > limit {
                return Err(format!("took too long: {:?}", self.apps.unfinished()));
            }
            self.advance()?;
        }
        Err("a busy loop".to_owned())
    }

    /// Lets one end do all that it has to do now.
    fn turn(&mut self, side: Side, load: &[(StreamKind, u64)]) -> Result<(), String> {
        self.apps.handle_events(self.duo.end(side))?;
        if let Some(reason) = self.apps.closed(side) {
            return Err(format!("{side:?} ended: {reason}"));
        }
        self.write_load(side, load);
        self.apps.read(self.duo.end(side), usize::MAX)?;
        for packet in self.duo.take(side) {
            self.watch.leaves(side, &packet)?;
            if trace::is_asked() {
                println!(
                    "{:?} {side:?}, {} bytes: {:?}",
                    self.duo.now,
                    packet.len(),
                    overhear(&packet)
                );
            }
            let way = Way { flow: 0, from: index(side), extra: Duration::ZERO };
            let len = packet.len() as u32 + HEADER_BYTES;
            self.wire.send(self.duo.now, way, Cargo::Datagram(packet), len);
        }
        Ok(())
    }

    /// Writes all data of this end once it is connected, and ends the streams that the peer has
    /// opened.
    fn write_load(&mut self, side: Side, load: &[(StreamKind, u64)]) {
        let end = self.duo.end(side);
        if !end.is_handshaking() {
            if !std::mem::replace(&mut self.has_spoken[index(side)], true) {
                for (kind, bytes) in load {
                    if let Some(id) = self.apps.open(end, *kind) {
                        self.apps.say(end, id, *bytes as usize);
                    }
                }
            }
            self.apps.finish_all(end);
        }
    }

    /// Advances to the time of the next event, and delivers the packets that arrive then.
    fn advance(&mut self) -> Result<(), String> {
        let due =
            self.duo.next_timeout().map(|due| due.max(self.duo.now + Duration::from_micros(10)));
        let next = [due, self.wire.next()].into_iter().flatten().min();
        self.duo.now = self.duo.now.max(next.ok_or("nothing will ever happen")?);
        while let Some(packet) = self.wire.pop(self.duo.now) {
            let Cargo::Datagram(bytes) = packet.cargo else { continue };
            self.watch.arrives(SIDES[packet.to], &bytes);
            if trace::is_asked() {
                println!("{:?} at {:?}: {:?}", self.duo.now, SIDES[packet.to], overhear(&bytes));
            }
            self.duo.give(SIDES[packet.to], [bytes]);
        }
        Ok(())
    }
}

impl fmt::Display for Brief {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: ", self.seed)?;
        for (link, load) in self.links.iter().zip(&self.loads) {
            let rate = link.rate.map(|rate| rate.to_string()).unwrap_or_default();
            let delay = link.delay.as_secs_f64() * 1e3;
            let bytes: u64 = load.iter().map(|(_, bytes)| bytes).sum();
            let lost = mean_loss(link) * 100.0;
            write!(f, "{bytes} bytes over {rate}, {delay:.1} ms, {lost:.1} % lost")?;
            write!(f, ", cut {:?}, mtu {:?}; ", link.outages.first().map(|o| o.lasts), link.mtu)?;
        }
        Ok(())
    }
}
