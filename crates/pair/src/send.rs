//! The end that reads.

mod before;
mod complaints;
mod feed;
mod hear;
mod knowledge;
mod pour;
mod small;
mod teller;

pub(crate) use complaints::Complaints;
pub(crate) use hear::TooSoon;

use super::Ends;
use super::buffers::Buffers;
use super::incoming::MOST_REPEATED;
use super::lane::{Lane, Readers};
use super::limit::Waits;
use super::spot::Spot;
use super::threads;
use super::walk::{Roots, walk};
use crate::error::PairError;
use feed::{Feeder, load};
use hear::{Asked, Replies, hear, wishes};
use hikyaku_net::blocking::Stop;
use hikyaku_reach::Out;
use hikyaku_transfer::{EntryId, FromSender, OtherSources, Proven, Sources};
use hikyaku_units::Rate;
use knowledge::Knowledge;
use small::read_small;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;
use teller::tell;

/// Number of entries that the walk finds ahead of the sender: some 10 MB of names.
const FOUND: usize = 1 << 15;
/// Number of small files that are read at the same time, so that a disk has several requests.
const SMALL_READERS: usize = 4;
/// Maximum number of characters of the sources' names that the journal of the receiver contains.
const MOST_FROM: usize = 1000;

/// Sends everything beneath `roots`; returns when the receiver has finished, or at a fault.
pub(crate) fn send(ends: Ends<'_>, roots: &Roots) {
    let Ends { connection, incoming, outgoing, fault, meter, options, claims, .. } = ends;
    // Complaints of the walk come behind it.
    let sources =
        if options.other_sources == OtherSources::Some { Sources::Several } else { roots.sources };
    if let Err(error) =
        outgoing.say(&FromSender::Begin { sources, of: roots.of, from: beginning(&roots.from) })
    {
        fault.report(error);
        return;
    }
    let (ready, is_ready) = sync_channel(1);
    let (again, is_again) = wishes();
    let is_all_said = AtomicBool::new(false);
    let replies = Replies { ready, again, is_all_said: &is_all_said };
    let (give, found) = sync_channel(FOUND);
    let (small, small_queue) = sync_channel(2 * SMALL_READERS);
    let small_queue = Mutex::new(small_queue);
    let readers = Readers::new();
    let segments = readers.queue();
    let buffers = Arc::new(Buffers::default());
    let waits = Waits::default();
    let lane = Lane { connection, out: outgoing.clone(), readers, fault, waits: &waits };
    let stop = Stop::default();
    thread::scope(|scope| {
        let stop = &stop;
        let teller = scope.spawn({
            let out = outgoing.clone();
            let limit = options.limit.map(Rate::from_bits_per_sec);
            let waits = &waits;
            move || tell(connection, (&out, meter), (limit, waits), stop)
        });
        scope.spawn(move || hear(incoming, replies, fault, meter));
        let complain = |out: Out| Complaints { out, meter, fault };
        let walk_complaints = complain(outgoing.clone());
        scope.spawn(move || walk(roots, (options, claims), meter, &walk_complaints, fault, &give));
        for _ in 0..threads::that_read() {
            scope.spawn(|| Readers::work(&segments, &buffers));
        }
        let all_small: Vec<_> = (0..SMALL_READERS)
            .map(|_| {
                let complaints = complain(outgoing.clone());
                let queue = &small_queue;
                scope.spawn(move || read_small(queue, options, &complaints))
            })
            .collect();
        let mut feeder = Feeder {
            out: outgoing.clone(),
            lane,
            small,
            complaints: complain(outgoing),
            meter,
            fault,
            large: HashMap::new(),
            next: 0,
            options,
            knowledge: Knowledge::new(is_ready),
        };
        let done = feeder.all(&found);
        drop(found);
        let Feeder { out, lane, small, large, complaints, .. } = feeder;
        drop(small);
        all_small.into_iter().for_each(|reader| drop(reader.join()));
        meter.set_counted();
        // Of files without a true size the walk had counted something else.
        let tally = meter.tally();
        let total = FromSender::Total { files: tally.total_files, bytes: tally.total_bytes };
        is_all_said.store(done.is_ok(), Ordering::Release);
        if done.is_ok() && out.say(&total).is_ok() && out.say(&FromSender::End).is_ok() {
            repeat(&lane, &complaints, &large, &is_again);
        }
        stop.set();
        teller.thread().unpark();
    });
}

/// As much of a text as a message has room for.
fn beginning(text: &str) -> String {
    text.chars().take(MOST_FROM).collect()
}

/// Sends again what did not arrive as it was read, until the receiver has finished.
fn repeat(
    lane: &Lane<'_>,
    complaints: &Complaints<'_>,
    large: &HashMap<EntryId, Spot>,
    again: &Asked,
) {
    let mut repeated: HashMap<EntryId, usize> = HashMap::new();
    // The other half of the channel is dropped when the receiver has finished.
    while let Some((id, segments)) = again.next() {
        let Some(spot) = large.get(&id) else { continue };
        let so_far = repeated.entry(id).or_default();
        *so_far += segments.len();
        // spec: copy-again-1
        if *so_far > MOST_REPEATED as usize {
            lane.fault.report(PairError::ended("the receiving end asks for too much again"));
            return;
        }
        let loaded = load(id, spot).map_err(Into::into).and_then(|load| {
            let load = Arc::new(load);
            lane.send(&load, &segments, &mut Proven::nothing(load.file), &mut || true)?;
            lane.finish(&load)
        });
        if let Err(error) = loaded
            && let Ok(Some(error)) = lane.judge(error)
        {
            complaints.say(Some(id), spot.failure(&error));
        }
    }
}
