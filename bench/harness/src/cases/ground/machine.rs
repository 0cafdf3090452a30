//! What the machine itself can do: the frame in which all other figures stand.

use crate::bench::{ALONE, Bench, Order};
use crate::record::row::{Cell, Row};
use crate::rig::context::Ctx;
use anyhow::Result;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const BENCH: Bench = Bench {
    id: "machine",
    title: "The machine: copying, system calls, cores",
    method: "Copies between two buffers of one size on one thread; the cheapest system call in a \
             loop; and how much work all cores do together, as a multiple of one core.",
    cells,
    run,
    order: Order::ByCell,
    compare: ALONE,
};

/// How long each figure is measured.
const SPAN: Duration = Duration::from_millis(300);

fn cells(_: &Ctx) -> Vec<Cell> {
    vec![
        Cell::new("copy-cached").with("buffer KiB", 64),
        Cell::new("copy-large").with("buffer KiB", 64 << 10),
        Cell::new("syscall"),
        Cell::new("cores"),
    ]
}

fn run(_: &Ctx, cell: &Cell) -> Result<Row> {
    Ok(match cell.id() {
        "syscall" => Row::new().with("call", 1e9 / per_second(system_call), "ns"),
        "cores" => Row::new().with("all cores", all_cores(), "x one"),
        _ => {
            let size = cell.setting("buffer KiB").parse::<usize>()? << 10;
            Row::new().with("copy", copy(size), "GB/s")
        }
    })
}

/// Gigabytes a second that one thread copies.
fn copy(size: usize) -> f64 {
    let source = vec![1_u8; size];
    let mut target = vec![0_u8; size];
    let copies = per_second(|| {
        target.copy_from_slice(black_box(&source));
        black_box(&mut target);
    });
    copies * size as f64 / 1e9
}

fn system_call() {
    black_box(rustix::process::getppid());
}

/// What all cores do in the time in which one core, alone, does 1.
fn all_cores() -> f64 {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let alone = per_second(compute);
    let together: f64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(|| per_second(compute))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).sum()
    });
    together / alone
}

/// A little work that stays in registers.
fn compute() {
    let mut state = black_box(1_u64);
    for _ in 0..10_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).rotate_left(17);
    }
    black_box(state);
}

/// How often `work` is done in a second.
fn per_second(mut work: impl FnMut()) -> f64 {
    work();
    let begin = Instant::now();
    let mut count = 0_u64;
    let mut batch = 1_u64;
    loop {
        (0..batch).for_each(|_| work());
        count += batch;
        let elapsed = begin.elapsed();
        if elapsed >= SPAN {
            return count as f64 / elapsed.as_secs_f64();
        }
        // The clock is read rarely when the work is short, often when it is long.
        if elapsed * 20 < SPAN {
            batch *= 2;
        }
    }
}
