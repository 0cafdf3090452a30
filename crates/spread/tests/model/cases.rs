//! The transfers of the table.

use crate::fluid::ServerSpec;

const MB: u64 = 1_000_000;
const MIB: u64 = 1 << 20;
const SERVERS: usize = 13;

/// A transfer.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) servers: Vec<ServerSpec>,
    /// The client's link in bytes a second.
    pub(crate) link: f64,
    /// Sizes and the servers that have a replica.
    pub(crate) files: Vec<(u64, Vec<usize>)>,
}

/// A row of the table: the same transfer with several seeds.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) seeds: u64,
    pub(crate) make: fn(&mut fastrand::Rng) -> Case,
    pub(crate) bar: Option<Bar>,
}

/// The required result of the plan.
pub(crate) struct Bar {
    pub(crate) median: f64,
    pub(crate) worst: f64,
}

const fn bar(median: f64, worst: f64) -> Option<Bar> {
    Some(Bar { median, worst })
}

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "512 x 2.5 MB, 2 replicas, 5-300 Mbit/s",
        seeds: 5,
        make: |rng| case(uneven(rng), twice(rng, 512, 2_500_000)),
        bar: bar(1.10, 1.15),
    },
    Row {
        name: "50 x 40 MiB, 2 replicas, 5-300 Mbit/s",
        seeds: 5,
        make: |rng| case(uneven(rng), twice(rng, 50, 40 * MIB)),
        bar: bar(1.10, 1.15),
    },
    Row {
        name: "2 GiB on all 13, 5-300 Mbit/s",
        seeds: 5,
        make: |rng| case(uneven(rng), vec![(2 << 30, (0..SERVERS).collect())]),
        bar: bar(1.05, 1.05),
    },
    Row {
        name: "512 MiB on two, 5 and 300 Mbit/s",
        seeds: 1,
        make: |_| {
            let servers = vec![ServerSpec::steady(5.0), ServerSpec::steady(300.0)];
            case(servers, vec![(512 * MIB, vec![0, 1])])
        },
        bar: bar(1.05, 1.05),
    },
    Row {
        name: "512 x 2.5 MB, 1 replica, 77 Mbit/s",
        seeds: 1,
        make: |_| case(even(), once(512, 2_500_000)),
        bar: bar(1.05, 1.05),
    },
    Row {
        name: "512 x 2.5 MB, 2 replicas, one dies at 3 s",
        seeds: 5,
        make: |rng| case(change(even(), 1, &[(3.0, 0.0)]), twice(rng, 512, 2_500_000)),
        bar: bar(1.15, 1.15),
    },
    Row {
        name: "512 x 2.5 MB, 2 replicas, one at 10 % from 3 s on",
        seeds: 5,
        make: |rng| case(change(even(), 1, &[(3.0, 0.1)]), twice(rng, 512, 2_500_000)),
        bar: bar(1.15, 1.15),
    },
    Row {
        name: "512 x 2.5 MB, 2 replicas, one frozen from 3 to 13 s",
        seeds: 5,
        make: |rng| case(change(even(), 1, &[(3.0, 0.0), (13.0, 1.0)]), twice(rng, 512, 2_500_000)),
        bar: bar(1.15, 1.15),
    },
    Row {
        name: "512 x 2.5 MB, 2 replicas, four at 10 % from 2 to 6 s",
        seeds: 5,
        make: |rng| case(change(even(), 4, &[(2.0, 0.1), (6.0, 1.0)]), twice(rng, 512, 2_500_000)),
        bar: None,
    },
    Row {
        name: "128 x 2.5 MB on all 13, all but one die at 1 s",
        seeds: 1,
        make: |_| {
            let files = (0..128).map(|_| (2_500_000, (0..SERVERS).collect())).collect();
            case(change(even(), SERVERS - 1, &[(1.0, 0.0)]), files)
        },
        bar: None,
    },
    Row {
        name: "512 MiB on two, 20 and 300 Mbit/s, one at 1 % at 3 s",
        seeds: 1,
        make: |_| {
            let servers = vec![ServerSpec::steady(20.0).then(3.0, 0.01), ServerSpec::steady(300.0)];
            case(servers, vec![(512 * MIB, vec![0, 1])])
        },
        bar: bar(1.15, 1.15),
    },
    Row {
        name: "512 x 2.5 MB, 2 replicas, 13 x 200 Mbit/s",
        seeds: 1,
        make: |rng| case(vec![ServerSpec::steady(200.0); SERVERS], twice(rng, 512, 2_500_000)),
        bar: bar(1.05, 1.05),
    },
    Row {
        name: "512 x 2.5 MB, 2 replicas, rates change each second",
        seeds: 5,
        make: |rng| case(restless(rng), twice(rng, 512, 2_500_000)),
        bar: None,
    },
    Row {
        name: "20,000 x 10 kB, 1 replica, 77 Mbit/s",
        seeds: 1,
        make: |_| case(even(), once(20_000, MB / 100)),
        bar: bar(1.3, 1.3),
    },
];

/// A client with 1 Gbit/s.
fn case(servers: Vec<ServerSpec>, files: Vec<(u64, Vec<usize>)>) -> Case {
    Case { servers, link: 125e6, files }
}

fn even() -> Vec<ServerSpec> {
    vec![ServerSpec::steady(77.0); SERVERS]
}

/// Rates from 5 to 300 Mbit/s, even in logarithm.
fn uneven(rng: &mut fastrand::Rng) -> Vec<ServerSpec> {
    (0..SERVERS).map(|_| ServerSpec::steady(5.0 * 60f64.powf(rng.f64()))).collect()
}

/// Rates that are half to one and a half times those of `uneven`, others each second, at 10 to 300 ms.
fn restless(rng: &mut fastrand::Rng) -> Vec<ServerSpec> {
    let mut servers = uneven(rng);
    for server in &mut servers {
        *server =
            (1..90).fold(server.clone(), |spec, at| spec.then(f64::from(at), 0.5 + rng.f64()));
        server.rtt = std::time::Duration::from_millis(10 * rng.u64(1..=30));
    }
    servers
}

/// The first servers change their rates, as shares of what they begin with.
fn change(mut servers: Vec<ServerSpec>, count: usize, to: &[(f64, f64)]) -> Vec<ServerSpec> {
    for server in &mut servers[..count] {
        *server = to.iter().fold(server.clone(), |spec, &(at, share)| spec.then(at, share));
    }
    servers
}

/// Files on one server each, evenly.
fn once(count: usize, size: u64) -> Vec<(u64, Vec<usize>)> {
    (0..count).map(|file| (size, vec![file % SERVERS])).collect()
}

/// Files on two servers each, by chance.
fn twice(rng: &mut fastrand::Rng, count: usize, size: u64) -> Vec<(u64, Vec<usize>)> {
    let mut pair = || {
        let first = rng.usize(..SERVERS);
        vec![first, (first + rng.usize(1..SERVERS)) % SERVERS]
    };
    (0..count).map(|_| (size, pair())).collect()
}
