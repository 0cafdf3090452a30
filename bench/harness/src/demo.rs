//! `cargo xtask demo`: TCP, untuned and tuned, and hikyaku side by side over the same kind of bad long link, then scp
//! and `hikyaku cp`.

mod copy;

use crate::bench::BenchArgs;
use crate::rig::contender::Contender;
use crate::rig::context::Ctx;
use crate::rig::line::{End, Place};
use crate::rig::link::{Link, host};
use crate::rig::sysctl::{Buffers, RAISED};
use crate::rig::transfer::Transfer;
use anyhow::{Context, Result, bail};
use hikyaku_lab::{HostProfile, Lab, LabSpec, Side};
use std::io::Write;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};
use xtask::{NETWORK_TOOLS, Running, ensure_present, is_root, workspace};

/// Options of `cargo xtask demo`.
#[derive(clap::Args)]
pub(crate) struct DemoArgs {
    /// How long TCP and hikyaku run before the copy, in seconds.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(3..=600))]
    seconds: u32,
}

const LINK: Link = Link::gigabit(200.0, 0.01);

/// How many characters a full link is wide.
const WIDTH: f64 = 12.0;
/// How many characters a column of the table is wide, with what keeps it from the next.
const COLUMN: usize = 24;

/// How long a program may take before it listens, and to end after its time.
const PATIENCE: Duration = Duration::from_secs(15);

/// Runs all at once, each over a link of its own, with a line a second.
pub(crate) fn run(args: &DemoArgs) -> Result<ExitCode> {
    if !is_root() {
        bail!(
            "the demo makes network namespaces and needs root\n\
             try: sudo env \"PATH=$PATH\" cargo xtask demo"
        );
    }
    ensure_present(NETWORK_TOOLS)?;
    let ctx = Ctx::new(&workspace(), &BenchArgs::default());
    let seconds = f64::from(args.seconds);
    let mut entrants = vec![Entrant {
        name: "TCP CUBIC",
        who: Contender::iperf3("", seconds)?,
        host: host(false, "cubic"),
    }];
    if has_bbr() {
        let (who, host) = (Contender::iperf3("", seconds)?, host(true, "bbr"));
        entrants.push(Entrant { name: "TCP BBR, tuned", who, host });
    } else {
        println!("TCP BBR is left out: this kernel has none loaded (try: modprobe tcp_bbr)");
    }
    let who = Contender::perf(&ctx, seconds)?;
    entrants.push(Entrant { name: "hikyaku", who, host: HostProfile::default() });
    let _buffers = Buffers::limit(RAISED)?;
    println!(
        "\nEqual links, one for each: 1 Gbit/s, 200 ms there and back, 1 % of all packets lost.\n\
         TCP is iperf3: CUBIC with Debian's settings, BBR with buffers of 1 GB at both ends.\n\
         hikyaku is encrypted, with UDP buffers of 32 MB. Mbit/s on the link:\n"
    );
    println!("{}", row("", entrants.iter().map(|entrant| entrant.name.to_owned())));
    let racers: Result<Vec<Racer>> = entrants.into_iter().map(Racer::start).collect();
    let mut racers = racers?;
    let began = Instant::now();
    for second in 1..=args.seconds {
        sleep((began + Duration::from_secs(second.into())).duration_since(Instant::now()));
        let cells: Result<Vec<String>> = racers.iter_mut().map(Racer::second).collect();
        println!("{}", row(&format!("{second} s"), cells?));
        // A reader at the end of a pipe wants to see it live as well.
        std::io::stdout().flush()?;
    }
    let ends: Result<Vec<Outcome>> = racers.into_iter().map(Racer::finish).collect();
    let ends = ends?;
    println!("\nreceived by the application, in {seconds} s:");
    for Outcome { name, transfer, problems } in &ends {
        println!("  {name:<16} {:>8}   {}", size(transfer.bytes), rate(transfer.whole()));
        for problem in problems {
            println!("  {:<16} not a fair figure: {problem}", "");
        }
    }
    let moved: Vec<_> = ends.iter().map(|end| (end.name, end.transfer.bytes)).collect();
    println!("\n{}", verdict(&moved, LINK.eff() * seconds / 8.0));
    copy::side_by_side(&ctx)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether hosts here can have BBR as their congestion control.
fn has_bbr() -> bool {
    let available = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let available = std::fs::read_to_string(available).unwrap_or_default();
    available.split_whitespace().any(|name| name == "bbr")
}

/// Who takes part.
struct Entrant {
    name: &'static str,
    who: Contender,
    /// The TCP settings at both ends.
    host: HostProfile,
}

/// What came of it.
struct Outcome {
    name: &'static str,
    transfer: Transfer,
    /// What the lab itself did wrong.
    problems: Vec<String>,
}

/// One who takes part, with its link.
struct Racer {
    name: &'static str,
    who: Contender,
    // The programs go before the lab that they run in.
    client: Running,
    server: Running,
    lab: Lab,
    delivered: u64,
}

impl Racer {
    fn start(entrant: Entrant) -> Result<Self> {
        let Entrant { name, who, host } = entrant;
        let lab = Lab::up(LabSpec { host, ..LINK.lab(1)? })?;
        let server = Running::start(&mut who.server(&lab.server()).at(&lab, End::Server))?;
        lab.wait_for_listener(Side::Server(1), PATIENCE)?;
        lab.restart()?;
        let client = Running::start(&mut who.client(&lab.server()).at(&lab, End::Client))?;
        Ok(Self { name, who, client, server, lab, delivered: 0 })
    }

    /// What came over the link since the last call, as a bar.
    fn second(&mut self) -> Result<String> {
        let delivered = self.lab.report()?.up.delivered_bytes;
        let bits = (delivered - self.delivered) as f64 * 8.0;
        self.delivered = delivered;
        Ok(format!("{:>6.1} |{}|", bits / 1e6, bar(bits / LINK.rate)))
    }

    fn finish(mut self) -> Result<Outcome> {
        let problems = self.lab.report()?.problems;
        let until = Instant::now() + PATIENCE;
        let client = self.client.wait(until)?;
        let client = client.with_context(|| format!("{} did not end", self.who.name()))?;
        let server = match self.server.wait(Instant::now() + Duration::from_secs(3))? {
            Some(server) => server,
            None => self.server.stop()?,
        };
        let transfer = self.who.read(&client.stdout, &server.stdout);
        let transfer = transfer.with_context(|| client.stderr.clone())?;
        Ok(Outcome { name: self.name, transfer, problems })
    }
}

fn bar(share: f64) -> String {
    let full = (share.clamp(0.0, 1.0) * WIDTH).round() as usize;
    format!("{:<width$}", "#".repeat(full), width = WIDTH as usize)
}

fn rate(bits: f64) -> String {
    format!("{:>6.1} Mbit/s", bits / 1e6)
}

fn size(bytes: f64) -> String {
    if bytes >= 1e9 { format!("{:.2} GB", bytes / 1e9) } else { format!("{:.1} MB", bytes / 1e6) }
}

/// A line of the table.
fn row(begin: &str, cells: impl IntoIterator<Item = String>) -> String {
    let cells = cells.into_iter().map(|cell| format!("{cell:<COLUMN$}"));
    format!("{begin:>6}  {}", cells.collect::<String>()).trim_end().to_owned()
}

/// Who moved how much, the last of them ours, on a link that can carry `possible`.
fn verdict(moved: &[(&str, f64)], possible: f64) -> String {
    let Some(((name, ours), others)) = moved.split_last() else { return String::new() };
    let times = |(other, bytes): &(&str, f64)| {
        let times = if *bytes > 0.0 { ours / bytes } else { f64::INFINITY };
        let times = if times >= 10.0 { format!("{times:.0}") } else { format!("{times:.1}") };
        format!("{times} times as much as {other}")
    };
    let others = others.iter().map(times).collect::<Vec<_>>().join(" and ");
    let share = 100.0 * ours / possible;
    format!("{name} moved {others}: {share:.0} % of what the link can carry.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_readable() {
        assert_eq!(bar(0.5), "######      ");
        assert_eq!(bar(1.2), "#".repeat(12));
        assert_eq!((size(2.5e9), size(12.34e6)), ("2.50 GB".to_owned(), "12.3 MB".to_owned()));
        let moved = [("TCP CUBIC", 1e7), ("TCP BBR, tuned", 1.6e9), ("hikyaku", 2e9)];
        assert_eq!(
            verdict(&moved, 2.5e9),
            "hikyaku moved 200 times as much as TCP CUBIC and 1.2 times as much as TCP BBR, tuned: \
             80 % of what the link can carry."
        );
    }

    #[test]
    fn the_table_fits_a_terminal() {
        let cell = format!("{:>6.1} |{}|", 999.9, bar(1.0));
        let line = row("600 s", [cell.clone(), cell.clone(), cell]);
        assert!(line.len() <= 80 && line.contains("|    999.9 |"), "{line}");
    }
}
