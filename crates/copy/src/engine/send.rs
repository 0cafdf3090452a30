//! The end that reads.

mod complaints;
mod feed;
mod hear;
mod knowledge;
mod small;

pub(crate) use complaints::Complaints;

use super::Ends;
use super::buffers::Buffers;
use super::lane::{Lane, Readers};
use super::limit::{Gauge, Waits};
use super::meter::Meter;
use super::read::describe;
use super::talk::Out;
use super::walk::{Roots, walk};
use feed::{Feeder, load};
use hear::{Replies, hear};
use hikyaku_net::Connection;
use hikyaku_net::blocking::{Stop, wait};
use hikyaku_transfer::{EntryId, FromSender, PathFigures, Proven, SegmentIndex, Sources};
use hikyaku_units::Rate;
use knowledge::Knowledge;
use small::read_small;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What is found ahead of the sender: some 10 MB of names.
const FOUND: usize = 1 << 15;
/// Small files read at once: so many wait for a disk together.
const SMALL_READERS: usize = 4;
const SEGMENT_READERS: usize = 2;
/// How often the other end is told how the path is.
const TELL_PATH: Duration = Duration::from_millis(250);

/// Sends everything beneath `roots`; returns when the receiver has finished, or at a fault.
pub(crate) fn send(ends: Ends<'_>, roots: &Roots) {
    let Ends { connection, incoming, outgoing, fault, meter, options, .. } = ends;
    // Complaints of the walk come behind it.
    let sources = if options.several { Sources::Several } else { roots.sources };
    if let Err(error) = outgoing.say(&FromSender::Begin { sources, of: roots.of }) {
        fault.report(error);
        return;
    }
    let (ready, is_ready) = sync_channel(1);
    let (again, is_again) = channel();
    let replies = Replies { ready, again };
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
            move || tell_path(connection, (&out, meter), (limit, waits), stop)
        });
        scope.spawn(move || hear(incoming, replies, fault, meter));
        let complain = |out: Out| Complaints { out, meter, fault };
        let walk_complaints = complain(outgoing.clone());
        scope.spawn(move || walk(&roots.all, options, meter, &walk_complaints, fault, &give));
        for _ in 0..SEGMENT_READERS {
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
        if done.is_ok() && out.say(&FromSender::End).is_ok() {
            repeat(&lane, &complaints, &large, &is_again);
        }
        stop.set();
        teller.thread().unpark();
    });
}

/// Tells both ends how the path is, until it is told to stop.
fn tell_path(
    connection: &Connection,
    (out, meter): (&Out, &Meter),
    (limit, waits): (Option<Rate>, &Waits),
    stop: &Stop,
) {
    let mut gauge = Gauge::new();
    while !stop.is_set() {
        if let Ok(Some(stats)) = wait(connection.stats(), stop, None) {
            let path = PathFigures {
                sent_packets: stats.sent.packets,
                lost_packets: stats.lost_packets,
                resent_bytes: stats.resent.bytes(),
                packet: stats.datagram,
                rtt: stats.path.srtt.as_secs_f64(),
                queue: stats.path.queue.as_secs_f64(),
                limited_by: gauge.look(&stats, limit, waits),
            };
            meter.set_path(path);
            if out.say(&FromSender::Path(path)).is_err() {
                return;
            }
        }
        stop.sleep(TELL_PATH);
    }
}

/// Sends again what did not arrive as it was read, until the receiver has finished.
fn repeat(
    lane: &Lane<'_>,
    complaints: &Complaints<'_>,
    large: &HashMap<EntryId, PathBuf>,
    again: &Receiver<(EntryId, Vec<SegmentIndex>)>,
) {
    // The other half of the channel is dropped when the receiver has finished.
    while let Ok((id, segments)) = again.recv() {
        let Some(here) = large.get(&id) else { continue };
        let loaded = load(id, here.clone()).map_err(Into::into).and_then(|load| {
            let load = Arc::new(load);
            lane.send(&load, &segments, &mut Proven::nothing(load.file), &mut || true)?;
            lane.finish(&load)
        });
        if let Err(error) = loaded
            && let Ok(Some(error)) = lane.judge(error)
        {
            complaints.say(Some(id), describe(&error));
        }
    }
}
