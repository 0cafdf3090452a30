//! The grid of paths, and cases that are hard for a rule.

use crate::fair;
use crate::path::{Control, Spec};
use crate::transfer::{Sight, Transfer, run};
use hikyaku_tuner::{ClimbOptions, Controller, Paper, PaperOptions};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use std::{env, fs};

/// Fixed numbers, of which the best one is the measure.
const FIXED: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Seconds at which bytes are counted.
const TIMES: [f64; 2] = [10.0, 40.0];

/// Paths of 10 Mbit/s to 10 Gbit/s, 1 to 300 ms, with and without loss.
fn grid() -> Vec<Spec> {
    let (mut paths, mut number) = (Vec::new(), 0);
    for rate in [10.0, 100.0, 1000.0, 10_000.0] {
        for rtt in [0.001, 0.01, 0.03, 0.1, 0.2, 0.3] {
            if rtt < 0.01 && (rate == 10.0 || rate == 10_000.0) {
                continue;
            }
            for loss in [0.0, 1e-4, 1e-3, if rtt > 0.05 { 0.01 } else { 0.02 }] {
                let queue = [0.1, 1.0, 0.3, 2.0][(number + number / 4) % 4];
                paths.push(Spec::new(rate, rtt, queue, loss));
                number += 1;
            }
        }
    }
    paths
}

fn hard() -> Vec<(&'static str, Spec)> {
    let path = Spec::new(1000.0, 0.1, 1.0, 0.0);
    let lossy = Spec { loss: 1e-3, ..path };
    let shallow = Spec { queue: 0.3, ..path };
    vec![
        ("1 plain TCP beside", Spec { cross: 1, ..shallow }),
        ("8 plain TCP beside", Spec { cross: 8, ..shallow }),
        ("4 plain beside, 100 Mbit/s", Spec { cross: 4, ..Spec::new(100.0, 0.03, 1.0, 0.0) }),
        ("8 plain beside, 0.1 %", Spec { cross: 8, queue: 0.3, ..lossy }),
        ("server grants 2", Spec { granted: 2, ..path }),
        ("server grants 8, 0.1 %", Spec { granted: 8, ..lossy }),
        ("server paces all to 200", Spec { server: 200.0, ..path }),
        ("server paces each to 10", Spec { each: 10.0, ..path }),
        ("policer", Spec { queue: 0.02, ..path }),
        ("policer, 0.1 %", Spec { queue: 0.02, ..lossy }),
        ("rate x 0.3, 12-25 s", Spec { change: Some((12.0, 25.0, 0.3)), ..path }),
        ("0.1 %, x 0.1, 12-25 s", Spec { change: Some((12.0, 25.0, 0.1)), ..lossy }),
        ("0.1 %, noise 15 %", Spec { noise: 0.15, ..lossy }),
        ("200 ms, noise 15 %", Spec { noise: 0.15, rtt: 0.2, ..shallow }),
        ("Reno, 0.1 %", Spec { control: Control::Reno, queue: 0.3, ..lossy }),
        ("Reno", Spec { control: Control::Reno, ..shallow }),
        ("windows of 64 KB, 10 ms", Spec { window: 45.0, rtt: 0.01, ..path }),
        ("windows of 64 KB, 90 ms", Spec { window: 45.0, rtt: 0.09, ..path }),
    ]
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    Climb,
    /// Climb without round-trip times.
    Blind,
    Paper,
    Fixed(u32),
}

impl Rule {
    fn transfer(self) -> Transfer {
        let controller = match self {
            Self::Climb | Self::Blind => Controller::climb(&ClimbOptions::default()),
            Self::Paper => {
                let options = PaperOptions { cap: 64, ..PaperOptions::default() };
                Controller::paper(Paper::new(&options, Duration::from_millis(50)), 64)
            }
            Self::Fixed(n) => Controller::fixed(n),
        };
        let sight = if self == Self::Blind { Sight::Nothing } else { Sight::RoundTrips };
        Transfer::new(controller, sight, 0.0)
    }
}

/// The rules of the tables.
const SHOWN: [Rule; 4] = [Rule::Climb, Rule::Blind, Rule::Fixed(16), Rule::Paper];

/// Bytes of each rule on a path, the mean of several seeds.
struct Done {
    /// After 10 and 40 s.
    bytes: BTreeMap<Rule, [f64; 2]>,
    /// Connections that the rule had at the end of the last run.
    n: usize,
}

impl Done {
    fn new(spec: Spec, seeds: u64) -> Self {
        let (mut bytes, mut n) = (BTreeMap::<_, [f64; 2]>::new(), 0);
        for rule in
            FIXED.map(Rule::Fixed).into_iter().chain([Rule::Blind, Rule::Paper, Rule::Climb])
        {
            for seed in 1..=seeds {
                let mut transfers = [rule.transfer()];
                let done = run(spec, &mut transfers, (TIMES[1], &TIMES), seed);
                let sums = bytes.entry(rule).or_default();
                *sums = [sums[0] + done[0][0], sums[1] + done[1][0]];
                n = transfers[0].n();
            }
        }
        Self { bytes, n }
    }

    /// Shares of the best fixed number after 10 and 40 s.
    fn shares(&self, rule: Rule) -> [f64; 2] {
        [0, 1].map(|at| {
            let best =
                FIXED.map(|n| self.bytes[&Rule::Fixed(n)][at]).into_iter().fold(0.0, f64::max);
            self.bytes[&rule][at] / best
        })
    }

    /// The share of sixteen connections in 40 s.
    fn of_sixteen(&self) -> f64 {
        self.bytes[&Rule::Climb][1] / self.bytes[&Rule::Fixed(16)][1]
    }
}

/// Shares of several paths.
#[derive(Clone, Default)]
struct Shares(Vec<f64>);

impl Shares {
    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// The shares of a group of paths.
type Group = BTreeMap<Rule, Shares>;

fn row(text: &mut String, name: &str, group: &Group) {
    write!(text, "{name:28}").unwrap();
    for rule in SHOWN {
        write!(text, "  {:.2} ({:.2})", group[&rule].mean(), group[&rule].least()).unwrap();
    }
    text.push('\n');
}

/// The tables of the grid and of the hard cases.
fn tables(seeds: u64) -> String {
    let (mut all, mut first) = (Group::new(), Group::new());
    let (mut groups, mut sixteen) = (BTreeMap::<(u32, u32), Group>::new(), Shares::default());
    for spec in grid() {
        let done = Done::new(spec, seeds);
        sixteen.0.push(done.of_sixteen());
        let loss = (spec.loss.min(0.01) * 1e4) as u32;
        let group = groups.entry((spec.rate as u32, loss)).or_default();
        for rule in SHOWN {
            let [short, long] = done.shares(rule);
            first.entry(rule).or_default().0.push(short);
            all.entry(rule).or_default().0.push(long);
            group.entry(rule).or_default().0.push(long);
        }
    }
    let mut text = format!(
        "Share of the best fixed number in 40 s, mean (least)\n{:28}  the rule     blind        16           published\n",
        ""
    );
    for ((rate, loss), group) in &groups {
        let name = format!("{rate} Mbit/s, {:.2} % lost", f64::from(*loss) / 100.0);
        row(&mut text, &name, group);
    }
    row(&mut text, "all, first 10 s", &first);
    row(&mut text, "all", &all);
    let (rule, start) = (&all[&Rule::Climb], &first[&Rule::Climb]);
    assert!(rule.mean() >= 0.95 && rule.least() >= 0.8, "{text}");
    assert!(start.mean() >= 0.93, "{text}");
    let less = sixteen.0.iter().filter(|share| **share < 0.97).count();
    assert!(less <= 3 && sixteen.least() >= 0.88, "of sixteen: {less}, {:.2}", sixteen.least());
    text.push_str("\nHard cases: the rule (connections at the end), blind, 16, published\n");
    for (name, spec) in hard() {
        let done = Done::new(spec, seeds);
        let [rule, blind, sixteen, paper] = SHOWN.map(|rule| done.shares(rule)[1]);
        writeln!(text, "{name:28}  {rule:.2} ({})  {blind:.2}  {sixteen:.2}  {paper:.2}", done.n)
            .unwrap();
        assert!(done.of_sixteen() >= 0.8, "{name}: {:.2}", done.of_sixteen());
    }
    text
}

#[test]
fn the_rule_is_as_good_as_the_best_fixed_number_and_shares_its_path() {
    let text = format!("{}\n{}", tables(2), fair::table());
    println!("{text}");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/model/shares.txt");
    if env::var_os("UPDATE").is_some() {
        fs::write(&file, &text).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == text,
        "the shares have changed; `UPDATE=1` and this test rewrite them:\n{text}"
    );
}

#[test]
#[ignore = "a minute: four seeds"]
fn the_grid_with_more_seeds() {
    println!("{}", tables(4));
}
