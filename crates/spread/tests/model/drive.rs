//! The scheduler over the fluid servers.

use crate::cases::Case;
use crate::fluid::{Event, Message, World};
use hikyaku_spread::{
    AskId, Command, FileId, SEGMENT_BYTES, ServerId, ServerSettings, Settings, Spread, Work,
};
use hikyaku_units::{DataSize, Instant, Rate};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// How a transfer ended.
pub(crate) struct Outcome {
    /// Seconds until everything was proven; `None` if that never came.
    pub(crate) took: Option<f64>,
    /// Bytes that arrived more than once, as a share of all.
    pub(crate) twice: f64,
}

/// The longest time without anything arriving.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(30);

/// The number of objects that a server sends at once.
const LANES: usize = 4;

/// An ask at the client: the segments in the order in which they come, with where each one ends.
struct Coming {
    segments: Vec<(FileId, Range<u64>, u64)>,
    proven: usize,
    arrived: u64,
}

/// Runs a transfer to its end.
pub(crate) fn run(case: &Case, settings: Settings) -> Outcome {
    let mut world = World::new(&case.servers, case.link, LANES);
    let mut spread = Spread::new(settings);
    spread.handle_capacity(Some(Rate::from_bytes_per_sec(case.link)));
    for server in &case.servers {
        let id = spread.add_server(ServerSettings::default()).expect("thirteen fit");
        spread.handle_up(id, server.rtt, Instant::ZERO);
    }
    for (size, replicas) in &case.files {
        let replicas: Vec<ServerId> = replicas.iter().map(|&at| ServerId(at as u16)).collect();
        spread.add_file(DataSize::from_bytes(*size), &replicas).expect("the files fit");
    }
    let mut coming = BTreeMap::new();
    let mut heard = Duration::ZERO;
    obey(&mut spread, &mut world, &mut coming, case);
    while spread.unfinished() > 0 {
        let events = world.step();
        if !events.is_empty() {
            heard = world.now;
        } else if world.now - heard > IDLE_MAX {
            return Outcome { took: None, twice: 0.0 };
        }
        for event in events {
            report(&mut spread, &world, &mut coming, event);
        }
        obey(&mut spread, &mut world, &mut coming, case);
    }
    let all: u64 = case.files.iter().map(|(size, _)| size).sum();
    let twice = world.arrived as f64 / all as f64 - 1.0;
    Outcome { took: Some(world.now.as_secs_f64()), twice }
}

fn instant(world: &World) -> Instant {
    Instant::ZERO + world.now
}

fn report(spread: &mut Spread, world: &World, coming: &mut BTreeMap<u64, Coming>, event: Event) {
    match event {
        Event::Bytes { server, id, bytes } => {
            let (server, size) = (ServerId(server as u16), DataSize::from_bytes(bytes));
            spread.handle_progress(server, AskId(id), size, instant(world));
            let ask = coming.get_mut(&id).expect("only what was asked comes");
            ask.arrived += bytes;
            while let Some((file, range, end)) = ask.segments.get(ask.proven) {
                if *end > ask.arrived {
                    break;
                }
                spread.handle_proven(*file, range.clone());
                ask.proven += 1;
            }
        }
        Event::End { server, id } => {
            coming.remove(&id);
            spread.handle_end(ServerId(server as u16), AskId(id), instant(world));
        }
    }
}

fn obey(spread: &mut Spread, world: &mut World, coming: &mut BTreeMap<u64, Coming>, case: &Case) {
    while let Some(command) = spread.poll_command(instant(world)) {
        match command {
            Command::Ask { server, ask, work } => {
                let ask_of = ask_of(work, case);
                let bytes = ask_of.segments.last().map_or(0, |last| last.2);
                coming.insert(ask.0, ask_of);
                world.send(usize::from(server.0), Message::Ask { id: ask.0, bytes });
            }
            Command::Cut { server, ask, from } => {
                let message = Message::Cut { id: ask.0, from: from.bytes() };
                world.send(usize::from(server.0), message);
            }
            Command::Cap { .. }
            | Command::Retry { .. }
            | Command::Rest { .. }
            | Command::Done { .. } => {}
        }
    }
}

fn ask_of(work: Work, case: &Case) -> Coming {
    let parts: Vec<(FileId, Range<u64>)> = match work {
        Work::Ranges { file, ranges } => ranges.into_iter().map(|range| (file, range)).collect(),
        Work::Files(files) => {
            files.into_iter().map(|file| (file, 0..case.files[file.0 as usize].0)).collect()
        }
    };
    let (mut segments, mut end) = (Vec::new(), 0);
    for (file, range) in parts {
        let mut from = range.start;
        while from < range.end {
            let to = (from + SEGMENT_BYTES).min(range.end);
            end += to - from;
            segments.push((file, from..to, end));
            from = to;
        }
    }
    Coming { segments, proven: 0, arrived: 0 }
}
