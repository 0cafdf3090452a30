//! When the next chunk is asked for.

use super::*;
use crate::tuning::Connections;
use hikyaku_gridftp::Mode;
use hikyaku_tuner::{PaperOptions, Phase};
use hikyaku_units::DataSize;

const MIB: u64 = 1 << 20;
const RTT: Duration = Duration::from_millis(100);

/// The request of the plan while nothing, or the oldest chunk, was under way.
type Asked = Option<(u64, u64, u32)>;

/// Calls `check` with the chunks of a file of 4,000 MiB, of which the first has 32 MiB over 4 connections.
fn with_chunks(foresight: Foresight, check: impl FnOnce(&mut Chunks<'_, '_, ()>)) {
    let window = DataSize::from_bytes(279_620);
    let tuned = Connections::Published(PaperOptions { window, ..PaperOptions::default() });
    chunks_of(&tuned, foresight, |_| {}, check);
}

/// Calls `check` with the chunks of a file of 4,000 MiB by this rule, and `record` with the complete ones.
fn chunks_of(
    connections: &Connections,
    foresight: Foresight,
    mut record: impl FnMut(&Range<u64>),
    check: impl FnOnce(&mut Chunks<'_, '_, ()>),
) {
    let mut tuning = Tuning::new(connections, Mode::Extended, RTT);
    let mut missing = Missing::new(0..4000 * MIB, &[]);
    let tools = Tools {
        path: b"/f",
        with: (),
        tuning: &mut tuning,
        foresight,
        parts: Parts::Chunks,
        rtt: RTT,
        report: &|_, _, _| (),
    };
    check(&mut Chunks::new(tools, &mut missing, &mut record));
}

fn ask(chunks: &mut Chunks<'_, '_, ()>, progress: Option<(u64, u64)>) -> Asked {
    let progress = progress.map(|(bytes, millis)| Progress {
        connections: 4,
        bytes,
        elapsed: Duration::from_millis(millis),
        local_share: 0.0,
    });
    let wanted = chunks.next(progress.as_ref())?;
    Some((wanted.part.offset, wanted.part.length, wanted.connections))
}

#[test]
fn the_next_chunk_is_asked_for_three_round_trips_before_the_end() {
    with_chunks(Foresight::Measured, |chunks| {
        let (offset, length, n) = ask(chunks, None).unwrap();
        assert_eq!((offset, n), (0, 4));
        // 10 MiB/s: the rest of the chunk takes longer than 300 ms while more than 3 MiB are left.
        let at = |left: u64| (length - left, (length - left) * 1000 / (10 * MIB));
        assert_eq!(ask(chunks, Some(at(length - MIB))), None, "not before half of it has come");
        assert_eq!(ask(chunks, Some(at(4 * MIB))), None);
        let next = ask(chunks, Some(at(2 * MIB))).unwrap();
        assert_eq!((next.0, next.2), (length, 8), "with what was measured");
        // Twice the measured goodput for 3 s. The times of the progress are in milliseconds.
        assert_eq!(next.1 / MIB, 60);
        assert!(chunks.is_ahead());
        assert_eq!(ask(chunks, Some((length, 4000))), None, "one ahead is enough");
    });
}

#[test]
fn a_fixed_number_of_connections_has_chunks_as_well() {
    for n in [4, 1] {
        let mut done = Vec::new();
        let record = |chunk: &Range<u64>| done.push(chunk.clone());
        chunks_of(
            &Connections::Fixed { n, chunk: Duration::from_secs(3) },
            Foresight::Final,
            record,
            |chunks| {
                for seconds in [1, 2] {
                    let (_, length, connections) = ask(chunks, None).unwrap();
                    assert_eq!(connections, n, "{n}");
                    let first = if seconds == 1 { 16 * MIB } else { 3 * 16 * MIB };
                    assert_eq!(length, first, "{n}: three seconds at the goodput of the last one");
                    chunks.done(&Transferred {
                        connections,
                        elapsed: Duration::from_secs(seconds),
                        local_share: 0.0,
                        retransmitted: None,
                    });
                }
            },
        );
        assert_eq!(done, [0..16 * MIB, 16 * MIB..64 * MIB], "{n}: each is recorded");
    }
}

#[test]
fn without_progress_the_decision_waits_for_the_end() {
    for foresight in [Foresight::Final, Foresight::None] {
        with_chunks(foresight, |chunks| {
            let (_, length, _) = ask(chunks, None).unwrap();
            assert_eq!(ask(chunks, Some((length, 3000))), None, "{foresight:?}");
            chunks.done(&Transferred {
                connections: 4,
                elapsed: Duration::from_secs(3),
                local_share: 0.0,
                retransmitted: None,
            });
            let next = ask(chunks, None).unwrap();
            assert_eq!((next.0, next.2), (length, 8), "{foresight:?}");
        });
    }
}

#[test]
fn a_final_number_needs_no_measuring() {
    with_chunks(Foresight::Final, |chunks| {
        let mut last = ask(chunks, None).unwrap();
        while chunks.tuning.asked().phase != Phase::Found {
            // Each connection carries 1 MiB a second, up to 16 of them; more disturb each other.
            let n = u64::from(last.2);
            let goodput = if n <= 16 { n * MIB } else { 16 * MIB - (n - 16) * MIB / 4 };
            chunks.done(&Transferred {
                connections: last.2,
                elapsed: Duration::from_secs_f64(last.1 as f64 / goodput as f64),
                local_share: 0.0,
                retransmitted: None,
            });
            last = ask(chunks, None).unwrap();
        }
        let next = ask(chunks, Some((0, 1))).unwrap();
        assert_eq!((next.0, next.2), (last.0 + last.1, last.2));
    });
}
