//! Bench `processor`: what a processor can do when the network does not hold it up.

use crate::bench::{Bench, Order};
use crate::record::row::{Bar, Cell, CellResult, Row, median};
use crate::rig::contender::{Contender, Perf};
use crate::rig::context::Ctx;
use crate::rig::trial;
use crate::rig::veth::{Segmentation, Veth};
use anyhow::{Context, Result};

#[cfg(test)]
mod tests;

pub(crate) const BENCH: Bench = Bench {
    id: "processor",
    title: "Speed of the machine, on one connection over veth",
    method: "Memory to memory for 6 s, the client on one processor and the server on the other, all \
             contenders in turn and round by round. `raw` seals, sends, receives and opens packets \
             in supers of 64 KB and nothing else; the better of in place and out of place is what \
             ours is compared with, in the same round. `plain` hands supers over whole, which \
             flatters all; with `software` the kernel cuts and joins them. quinn, noq and s2n-quic \
             seal with AES-128-GCM, with windows of 64 MB (noq 4 MB), and quinn and noq with \
             batches cut to what fits into UDP. A run during which \
             others took more than 0.15 of a core is repeated.",
    cells,
    run,
    order: Order::ByRound,
    compare,
};

const SECONDS: f64 = 6.0;

const PLACES: [(u32, &str); 4] =
    [(1500, "plain"), (9000, "plain"), (1500, "software"), (9000, "software")];

/// Ciphers: our `--cipher`, and the raw loop's name for the same.
const CIPHERS: [(&str, &str); 3] =
    [("aegis128l", "aegis128l"), ("aes128gcm", "aes128gcm"), ("chacha20poly1305", "chacha20")];

const STREAMS: [&str; 2] = ["ordered", "object"];
const MODES: [&str; 2] = ["inplace", "outofplace"];
const OTHERS: [&str; 3] = ["quinn", "noq", "s2n-quic"];

fn cells(_: &Ctx) -> Vec<Cell> {
    let of_place = |(mtu, segmentation): (u32, &'static str)| {
        let cell = move |who: String| {
            Cell::new(id(mtu, segmentation, &who))
                .with("MTU", mtu)
                .with("segmentation", segmentation)
                .with("who", who)
        };
        let others = OTHERS.into_iter().map(str::to_owned);
        CIPHERS.into_iter().flat_map(who_with).chain(others).map(cell)
    };
    PLACES.into_iter().flat_map(of_place).collect()
}

/// Who runs with a cipher: the raw loop in both modes and ours with both kinds of stream.
fn who_with((cipher, _): (&str, &str)) -> Vec<String> {
    let raw = MODES.map(|mode| raw(cipher, mode));
    let ours = STREAMS.map(|streams| ours(cipher, streams));
    raw.into_iter().chain(ours).collect()
}

fn raw(cipher: &str, mode: &str) -> String {
    format!("raw-{cipher}-{mode}")
}

fn ours(cipher: &str, streams: &str) -> String {
    format!("hikyaku-{cipher}-{streams}")
}

fn id(mtu: u32, segmentation: &str, who: &str) -> String {
    format!("mtu{mtu}-{segmentation}.{who}")
}

fn run(ctx: &Ctx, cell: &Cell) -> Result<Row> {
    let mtu = cell.setting("MTU");
    let who = contender(ctx, cell.setting("who"), mtu)?.pinned();
    let segmentation = match cell.setting("segmentation") {
        "software" => Segmentation::Software,
        _ => Segmentation::None,
    };
    let veth = Veth::up(mtu.parse()?, segmentation)?;
    let (transfer, notes) = trial::unimpaired(ctx, &veth, &who, SECONDS)?;
    let mut row = Row::new().with("goodput", transfer.whole() / 1e9, "Gbit/s");
    let ours = &transfer.ours;
    if !ours.limited_by.is_empty() {
        let per_gb = |seconds: f64| seconds * 1e9 / transfer.bytes;
        row = row.with("client", per_gb(ours.client.cpu_seconds), "s/GB").with(
            "server",
            per_gb(ours.server.cpu_seconds),
            "s/GB",
        );
        row = row.note(format!("limited by {}", ours.limited_by));
    }
    row.notes.extend(transfer.error);
    row.notes.extend(notes);
    Ok(row)
}

fn contender(ctx: &Ctx, who: &str, mtu: &str) -> Result<Contender> {
    let peer = |program: &str, window: u32| {
        let options = format!("--mtu {mtu} --window {window}");
        Contender::peer(ctx, program, &options, SECONDS)
    };
    match who {
        "quinn" => return peer("peer-quinn", 64 << 20),
        // A larger window lets it run into its limit of packets behind one gap.
        "noq" => return peer("peer-noq", 4 << 20),
        "s2n-quic" => return peer("peer-s2n", 64 << 20),
        _ => {}
    }
    let words: Vec<&str> = who.split('-').collect();
    let [kind, cipher, how] = words[..] else { anyhow::bail!("nobody is called {who}") };
    if kind == "raw" {
        let known = CIPHERS.into_iter().find(|(name, _)| *name == cipher);
        let cipher = known.context("the raw loop has no such cipher")?.1;
        let options = format!("--mtu {mtu} --cipher {cipher} --mode {how}");
        return Contender::rawloop(ctx, &options, SECONDS);
    }
    let program = ctx.hikyaku()?.to_path_buf();
    let both = format!("--cipher {cipher}");
    let perf = Perf { program, both, client: format!("--streams {how}"), ..Perf::default() };
    Contender::perf_with(perf, SECONDS)
}

/// Ours against the raw loop with the same cipher; with the default cipher also against others.
fn compare(results: &mut [CellResult]) {
    for (mtu, segmentation) in PLACES {
        let runs = |results: &[CellResult], who: &str| -> Vec<f64> {
            let id = id(mtu, segmentation, who);
            let result = results.iter().find(|result| result.cell == id);
            let runs = result.map_or(&[][..], |result| &result.runs);
            runs.iter().filter_map(|run| run.value("goodput")).collect()
        };
        for (cipher, _) in CIPHERS {
            let [inplace, outofplace] = MODES.map(|mode| runs(results, &raw(cipher, mode)));
            let best = pairwise(&inplace, &outofplace, f64::max);
            for streams in STREAMS {
                let who = ours(cipher, streams);
                let mine = runs(results, &who);
                let mut ratios = vec![("of raw", ratio(&mine, &best), Some(0.8))];
                if (cipher, streams) == (CIPHERS[0].0, STREAMS[0]) {
                    for other in OTHERS {
                        let ratio = ratio(&mine, &runs(results, other));
                        ratios.push((other, ratio, least_lead(mtu, segmentation, other)));
                    }
                }
                let id = id(mtu, segmentation, &who);
                let Some(result) = results.iter_mut().find(|result| result.cell == id) else {
                    continue;
                };
                for (name, ratio, least) in ratios {
                    if let Some(ratio) = ratio {
                        result.median.push(&named(name), ratio, "x", least.map(Bar::AtLeast));
                    }
                }
            }
        }
    }
}

fn named(other: &str) -> String {
    if other == "of raw" { other.to_owned() } else { format!("to {other}") }
}

/// How many times as fast as another stack ours has to be.
fn least_lead(mtu: u32, segmentation: &str, other: &str) -> Option<f64> {
    match (mtu, segmentation, other) {
        (1500, "plain", "quinn") => Some(3.0),
        (1500, "plain", "s2n-quic") => Some(2.5),
        (1500, "software", "quinn") => Some(2.0),
        _ => None,
    }
}

/// The median over the rounds of the ratio in each.
fn ratio(mine: &[f64], theirs: &[f64]) -> Option<f64> {
    let ratios = pairwise(mine, theirs, |mine, theirs| mine / theirs);
    (!ratios.is_empty()).then(|| median(ratios))
}

fn pairwise(a: &[f64], b: &[f64], both: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    a.iter().zip(b).map(|(&a, &b)| both(a, b)).collect()
}
