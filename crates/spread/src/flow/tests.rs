//! The time is the least one, by the cut over every set of servers, and the flow obeys its limits.

use super::*;

struct Case {
    sizes: Vec<u64>,
    sets: Vec<Vec<usize>>,
    sources: Vec<Source>,
}

fn random(rng: &mut fastrand::Rng) -> Case {
    let (servers, groups) = (rng.usize(1..=7), rng.usize(1..=12));
    let source = |rng: &mut fastrand::Rng| Source {
        rate: if rng.u8(0..8) == 0 { 0.0 } else { rng.f64() * 4e7 + 1e5 },
        busy: if rng.bool() { 0 } else { rng.u64(0..30_000_000) },
    };
    let sources: Vec<Source> = (0..servers).map(|_| source(rng)).collect();
    let set = |rng: &mut fastrand::Rng| -> Vec<usize> {
        let mut set: Vec<usize> = (0..servers).filter(|_| rng.u8(0..3) == 0).collect();
        set.push(rng.usize(0..servers));
        set.sort_unstable();
        set.dedup();
        set
    };
    let sets = (0..groups).map(|_| set(rng)).collect();
    Case { sizes: (0..groups).map(|_| rng.u64(0..100_000_000)).collect(), sets, sources }
}

impl Case {
    fn network(&self) -> Network {
        let mut network = Network::default();
        self.sets.iter().for_each(|set| network.add_group(set.iter().copied()));
        network
    }

    fn is_live(&self, group: usize) -> bool {
        self.sets[group].iter().any(|&server| self.sources[server].rate > 0.0)
    }

    /// The largest lower bound: for each set of servers, the groups that no other server has.
    fn least_time(&self) -> f64 {
        let all = 0..1u32 << self.sources.len();
        all.map(|mask| {
            let is_in = |server: &usize| mask >> *server & 1 == 1;
            let only = (0..self.sets.len()).filter(|&group| {
                self.is_live(group)
                    && self.sets[group]
                        .iter()
                        .all(|server| is_in(server) || self.sources[*server].rate <= 0.0)
            });
            let bytes: u64 = only.map(|group| self.sizes[group]).sum();
            let inside = (0..self.sources.len()).filter(is_in).map(|server| self.sources[server]);
            if bytes == 0 { 0.0 } else { time_for(bytes, inside) }
        })
        .fold(0.0, f64::max)
    }

    fn check(&self, network: &Network, time: f64) {
        let mut given = vec![0; self.sources.len()];
        for (group, &size) in self.sizes.iter().enumerate() {
            let edges = &network.edges[network.range(group)];
            edges.iter().for_each(|edge| given[usize::from(edge.server)] += edge.flow);
            let flow: u64 = edges.iter().map(|edge| edge.flow).sum();
            assert_eq!(flow, if self.is_live(group) { size } else { 0 }, "group {group}");
        }
        for (given, source) in given.iter().zip(&self.sources) {
            assert!(*given <= source.capacity(time), "{given} of {source:?} in {time}");
        }
    }
}

#[test]
fn the_time_is_the_least_and_everything_is_given() {
    let mut rng = fastrand::Rng::with_seed(3);
    for round in 0..3_000 {
        let mut case = random(&mut rng);
        let mut network = case.network();
        for _ in 0..3 {
            let (time, least) = (network.solve(&case.sizes, &case.sources, 0.0), case.least_time());
            assert!((time - least).abs() <= 1e-6 * least + 1e-4, "round {round}: {time}, {least}");
            case.check(&network, time);
            // The next plan begins with this flow, other sizes and other rates.
            case.sizes.iter_mut().for_each(|size| *size = (*size as f64 * rng.f64() * 1.2) as u64);
            case.sources.iter_mut().for_each(|source| source.rate *= rng.f64() * 2.0);
        }
    }
}

#[test]
fn the_link_is_a_lower_bound() {
    let mut network = Network::default();
    network.add_group([0, 1].into_iter());
    let sources = [Source { rate: 10.0, busy: 0 }; 2];
    assert_eq!(network.solve(&[200], &sources, 25.0), 25.0);
    assert_eq!(network.solve(&[200], &sources, 0.0), 10.0);
}

/// All sets of `count` servers.
fn sets(servers: usize, count: usize) -> Vec<Vec<usize>> {
    let Some(rest) = count.checked_sub(1) else { return vec![Vec::new()] };
    let with_last = |last: usize| {
        sets(last, rest).into_iter().map(move |mut set| {
            set.push(last);
            set
        })
    };
    (0..servers).flat_map(with_last).collect()
}

/// `cargo test --release -p hikyaku-spread --lib cost -- --ignored --nocapture` prints microseconds.
#[test]
#[ignore = "it prints a figure"]
fn cost_of_a_plan() {
    extern crate std;
    for (servers, replicas) in [(13, 2), (32, 2), (13, 3), (256, 1)] {
        let mut rng = fastrand::Rng::with_seed(1);
        let sources: Vec<Source> = (0..servers)
            .map(|_| Source { rate: 6e5 * 60f64.powf(rng.f64()), busy: rng.u64(0..5_000_000) })
            .collect();
        let mut network = Network::default();
        sets(servers, replicas).iter().for_each(|set| network.add_group(set.iter().copied()));
        let mut sizes: Vec<u64> =
            (0..network.groups()).map(|_| rng.u64(1 << 20..50 << 20)).collect();
        let mut timed = |sizes: &[u64], sources: &[Source]| {
            let start = std::time::Instant::now();
            network.solve(sizes, sources, 0.0);
            start.elapsed().as_micros()
        };
        let first = timed(&sizes, &sources);
        // Half a second later the sent bytes are done, and the rates have changed.
        let mut next = Vec::new();
        for _ in 0..20 {
            sizes.iter_mut().for_each(|size| *size = *size * 95 / 100);
            let moved =
                |source: &Source| Source { rate: source.rate * (0.9 + 0.2 * rng.f64()), ..*source };
            let sources: Vec<Source> = sources.iter().map(moved).collect();
            next.push(timed(&sizes, &sources));
        }
        next.sort_unstable();
        let (groups, median) = (sizes.len(), next[next.len() / 2]);
        std::println!("{groups} groups x {servers} servers: first {first} us, next {median} us");
    }
}
