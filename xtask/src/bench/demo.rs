//! `cargo xtask demo`: TCP and hikyaku side by side over the same kind of bad long link, then scp and
//! `hikyaku cp`.

mod copy;

use super::BenchArgs;
use super::contender::Contender;
use super::context::Ctx;
use super::line::{End, Place};
use super::link::Link;
use super::sysctl::{Buffers, RAISED};
use super::transfer::Transfer;
use crate::process::Running;
use crate::{packages, root};
use anyhow::{Context, Result, bail};
use hikyaku_lab::{Lab, Side};
use std::io::Write;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Options of `cargo xtask demo`.
#[derive(clap::Args)]
pub(crate) struct DemoArgs {
    /// How long TCP and hikyaku run before the copy, in seconds.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(3..=600))]
    seconds: u32,
}

const LINK: Link = Link::gigabit(200.0, 0.01);

/// How many characters a full link is wide.
const WIDTH: f64 = 20.0;

/// How long a program may take before it listens, and to end after its time.
const PATIENCE: Duration = Duration::from_secs(15);

/// Runs both at once, each over a link of its own, with a line a second.
pub(crate) fn run(args: &DemoArgs) -> Result<ExitCode> {
    if !packages::is_root() {
        bail!(
            "the demo makes network namespaces and needs root\n\
             try: sudo env \"PATH=$PATH\" cargo xtask demo"
        );
    }
    packages::ensure_present(packages::NETWORK_TOOLS)?;
    let ctx = Ctx::new(&root::workspace(), &BenchArgs::default());
    let seconds = f64::from(args.seconds);
    let contenders = [Contender::iperf3("", seconds)?, Contender::perf(&ctx, seconds)?];
    let _buffers = Buffers::limit(RAISED)?;
    println!(
        "\nTwo equal links: 1 Gbit/s, 200 ms there and back, 1 % of all packets lost.\n\
         TCP is iperf3 with Debian's settings (CUBIC); hikyaku is encrypted.\n\n\
         {:>6}   {:<40}   hikyaku",
        "", "TCP"
    );
    let [tcp, ours] = contenders;
    let mut tcp = Racer::start(tcp)?;
    let mut ours = Racer::start(ours)?;
    let began = Instant::now();
    for second in 1..=args.seconds {
        sleep((began + Duration::from_secs(second.into())).duration_since(Instant::now()));
        println!("{second:>4} s   {:<40}   {}", tcp.second()?, ours.second()?);
        // A reader at the end of a pipe wants to see it live as well.
        std::io::stdout().flush()?;
    }
    let (tcp, ours) = (tcp.finish()?, ours.finish()?);
    println!("\nreceived by the application, in {seconds} s:");
    for (name, transfer) in [("TCP", &tcp), ("hikyaku", &ours)] {
        println!("  {name:<8} {:>8}   {}", size(transfer.bytes), rate(transfer.whole()));
    }
    println!("\n{}", verdict(ours.bytes, tcp.bytes, LINK.eff() * seconds / 8.0));
    copy::side_by_side(&ctx)?;
    Ok(ExitCode::SUCCESS)
}

/// One of the two, with its link.
struct Racer {
    who: Contender,
    // The programs go before the lab that they run in.
    client: Running,
    server: Running,
    lab: Lab,
    delivered: u64,
}

impl Racer {
    fn start(who: Contender) -> Result<Self> {
        let lab = Lab::up(LINK.lab(1)?)?;
        let server = Running::start(&mut who.server(&lab.server()).at(&lab, End::Server))?;
        lab.wait_for_listener(Side::Server(1), PATIENCE)?;
        lab.restart()?;
        let client = Running::start(&mut who.client(&lab.server()).at(&lab, End::Client))?;
        Ok(Self { who, client, server, lab, delivered: 0 })
    }

    /// What came over the link since the last call, as a bar.
    fn second(&mut self) -> Result<String> {
        let delivered = self.lab.report()?.up.delivered_bytes;
        let bits = (delivered - self.delivered) as f64 * 8.0;
        self.delivered = delivered;
        Ok(format!("{} |{}|", rate(bits), bar(bits / LINK.rate)))
    }

    fn finish(mut self) -> Result<Transfer> {
        let until = Instant::now() + PATIENCE;
        let client = self.client.wait(until)?;
        let client = client.with_context(|| format!("{} did not end", self.who.name()))?;
        let server = match self.server.wait(Instant::now() + Duration::from_secs(3))? {
            Some(server) => server,
            None => self.server.stop()?,
        };
        self.who.read(&client.stdout, &server.stdout).with_context(|| client.stderr.clone())
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

fn verdict(ours: f64, tcp: f64, possible: f64) -> String {
    let times = if tcp > 0.0 { ours / tcp } else { f64::INFINITY };
    let times = if times >= 10.0 { format!("{times:.0}") } else { format!("{times:.1}") };
    let share = 100.0 * ours / possible;
    format!("hikyaku moved {times} times as much as TCP: {share:.0} % of what the link can carry.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_readable() {
        assert_eq!(bar(0.5), "##########          ");
        assert_eq!(bar(1.2), "#".repeat(20));
        assert_eq!((size(2.5e9), size(12.34e6)), ("2.50 GB".to_owned(), "12.3 MB".to_owned()));
        assert_eq!(
            verdict(2e9, 1e7, 2.5e9),
            "hikyaku moved 200 times as much as TCP: 80 % of what the link can carry."
        );
    }
}
