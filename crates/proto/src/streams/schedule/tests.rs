//! The order in which streams are served.

use super::*;
use alloc::vec::Vec;

const RTT: Duration = Duration::from_millis(100);

/// Streams with bytes to send, and their schedule.
struct Fixture {
    schedule: Schedule,
    streams: BTreeMap<StreamId, (Place, u64)>,
    now: Instant,
}

impl Fixture {
    fn new() -> Self {
        let schedule = Schedule::new();
        Self { schedule, streams: BTreeMap::new(), now: Instant::from_millis(1000) }
    }

    fn write(&mut self, id: u32, bytes: u64) {
        let id = StreamId(id);
        let (place, unsent) = self.streams.entry(id).or_default();
        let backlog = if *unsent == 0 { Backlog::New } else { Backlog::Old };
        *unsent += bytes;
        self.schedule.enter(id, place, backlog, (self.now, RTT));
    }

    fn set_priority(&mut self, id: u32, priority: Priority) {
        let (place, _) = self.streams.entry(StreamId(id)).or_default();
        self.schedule.set_priority(StreamId(id), place, priority);
    }

    /// Serves one stream with at most `most` bytes. Returns its id and the bytes sent.
    fn serve(&mut self, most: u64) -> Option<(u32, u64)> {
        let id = self.schedule.first()?;
        let (place, unsent) = self.streams.get_mut(&id).unwrap();
        let bytes = self.schedule.share(place).min(most).min(*unsent);
        *unsent -= bytes;
        let rest = if *unsent == 0 { Rest::Nothing } else { Rest::Some };
        self.schedule.on_sent(id, place, bytes, rest);
        Some((id.0, bytes))
    }

    fn order(&mut self, turns: usize) -> Vec<u32> {
        (0..turns).map_while(|_| self.serve(u64::MAX)).map(|(id, _)| id).collect()
    }
}

/// Streams that have used up the bytes that they may send before the others.
fn busy(count: u32) -> Fixture {
    let mut fixture = Fixture::new();
    (0..count).for_each(|id| fixture.write(id, 100_000_000));
    fixture.order(count as usize);
    fixture
}

#[test]
fn busy_streams_take_turns_of_one_batch() {
    let mut fixture = busy(3);
    assert_eq!(fixture.order(6), [0, 1, 2, 0, 1, 2]);
    assert_eq!(fixture.serve(u64::MAX), Some((0, TURN_BYTES)));
    // A turn may take more than one call.
    assert_eq!(fixture.serve(1000), Some((1, 1000)));
    assert_eq!(fixture.serve(u64::MAX), Some((1, TURN_BYTES - 1000)));
}

#[test]
fn a_single_busy_stream_has_no_limit_on_its_turn() {
    let mut fixture = busy(1);
    assert_eq!(fixture.serve(50_000_000), Some((0, 50_000_000)));
}

#[test]
fn an_idle_stream_precedes_busy_ones_once_a_round_trip() {
    let mut fixture = busy(100);
    fixture.write(500, 100);
    assert_eq!(fixture.serve(u64::MAX), Some((500, 100)));
    // The stream may use the rest of its bytes at once,
    fixture.write(500, 100_000);
    assert_eq!(fixture.serve(u64::MAX), Some((500, SPARSE_BYTES - 100)));
    // takes turns with the others for more,
    assert_eq!(fixture.order(101).last(), Some(&500));
    while fixture.streams[&StreamId(500)].1 > 0 {
        fixture.serve(u64::MAX);
    }
    // and does not get new ones by writing again within a round trip.
    fixture.write(500, 100);
    assert_ne!(fixture.schedule.first(), Some(StreamId(500)));
    while fixture.streams[&StreamId(500)].1 > 0 {
        fixture.serve(u64::MAX);
    }
    fixture.now += RTT;
    fixture.write(500, 100);
    assert_eq!(fixture.schedule.first(), Some(StreamId(500)));
}

#[test]
fn bytes_blocked_by_flow_control_get_no_precedence() {
    let mut fixture = busy(2);
    let id = StreamId(7);
    let mut place = Place::default();
    fixture.schedule.enter(id, &mut place, Backlog::Old, (fixture.now, RTT));
    assert_ne!(fixture.schedule.first(), Some(id));
    fixture.schedule.leave(&mut place);
    assert_eq!(fixture.order(3), [0, 1, 0]);
}

#[test]
fn urgent_streams_precede_all_others_and_take_turns() {
    let mut fixture = busy(10);
    fixture.write(20, 100);
    for id in [30, 31] {
        fixture.set_priority(id, Priority::Urgent);
        fixture.write(id, 2 * TURN_BYTES);
    }
    assert_eq!(fixture.order(5), [30, 31, 30, 31, 20]);
    fixture.write(30, TURN_BYTES);
    fixture.set_priority(30, Priority::Normal);
    assert_ne!(fixture.schedule.first(), Some(StreamId(30)));
}

#[test]
fn a_stream_that_leaves_is_not_served() {
    let mut fixture = busy(3);
    let (place, _) = fixture.streams.get_mut(&StreamId(1)).unwrap();
    fixture.schedule.leave(place);
    assert_eq!(fixture.order(4), [0, 2, 0, 2]);
}
