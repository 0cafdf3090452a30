//! The table of all states and events.

use super::*;
use alloc::format;
use alloc::string::String;

const EVENTS: [Event; 8] = [
    Event::SocketEnd,
    Event::SocketReset,
    Event::WriteFailed,
    Event::StreamEnd,
    Event::StreamReset,
    Event::StreamStopped,
    Event::Lost,
    Event::Forgotten,
];

/// Whether a gateway can observe this event in this state.
fn can_happen(flow: &Flow, event: Event) -> bool {
    match event {
        Event::SocketEnd | Event::StreamStopped => flow.is_outgoing_open(),
        Event::WriteFailed | Event::StreamEnd | Event::StreamReset => flow.is_incoming_open(),
        Event::SocketReset | Event::Lost => true,
        Event::Forgotten => flow.is_outgoing_open() != flow.is_incoming_open(),
    }
}

/// outgoing, incoming, event: outgoing, incoming, act, end
const TABLE: &str = "\
Open Open SocketEnd: Ended Open FinishStream -
Open Open SocketReset: Broken Broken ResetStream Reset
Open Open WriteFailed: Open Broken StopStream -
Open Open StreamEnd: Open Ended ShutSocket -
Open Open StreamReset: Broken Broken ResetStream Reset
Open Open StreamStopped: Broken Open - -
Open Open Lost: Broken Broken - Abort
Open Ended SocketEnd: Ended Ended FinishStream Clean
Open Ended SocketReset: Broken Broken ResetStream Reset
Open Ended StreamStopped: Broken Ended - Reset
Open Ended Lost: Broken Broken - Abort
Open Ended Forgotten: Broken Broken ResetStream Reset
Open Broken SocketEnd: Broken Broken ResetStream Reset
Open Broken SocketReset: Broken Broken ResetStream Reset
Open Broken StreamStopped: Broken Broken - Reset
Open Broken Lost: Broken Broken - Abort
Open Broken Forgotten: Broken Broken ResetStream Reset
Ended Open SocketReset: Broken Broken StopStream Reset
Ended Open WriteFailed: Ended Broken StopStream Reset
Ended Open StreamEnd: Ended Ended ShutSocket Clean
Ended Open StreamReset: Broken Broken - Reset
Ended Open Lost: Broken Broken - Abort
Ended Open Forgotten: Broken Broken StopStream Reset
Broken Open SocketReset: Broken Broken StopStream Reset
Broken Open WriteFailed: Broken Broken StopStream Reset
Broken Open StreamEnd: Broken Ended ShutSocket Reset
Broken Open StreamReset: Broken Broken - Reset
Broken Open Lost: Broken Broken - Abort
Broken Open Forgotten: Broken Broken StopStream Reset
";

#[test]
fn every_state_answers_every_event_as_the_table_says() {
    let directions = [Direction::Open, Direction::Ended, Direction::Broken];
    let mut table = String::new();
    let pairs = directions
        .iter()
        .flat_map(|&outgoing| directions.iter().map(move |&incoming| Flow { outgoing, incoming }));
    for before in pairs.filter(|flow| flow.is_outgoing_open() || flow.is_incoming_open()) {
        for event in EVENTS.into_iter().filter(|event| can_happen(&before, *event)) {
            let mut flow = before;
            let step = flow.on(event);
            let act = step.act.map_or_else(|| "-".into(), |act| format!("{act:?}"));
            let end = step.end.map_or_else(|| "-".into(), |end| format!("{end:?}"));
            let Flow { outgoing, incoming } = before;
            table.push_str(&format!(
                "{outgoing:?} {incoming:?} {event:?}: {:?} {:?} {act} {end}\n",
                flow.outgoing, flow.incoming
            ));
        }
    }
    assert_eq!(table, TABLE);
}

#[test]
fn a_flow_ends_clean_only_after_two_ends() {
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..10_000 {
        let (mut flow, mut told) = (Flow::default(), alloc::vec::Vec::new());
        let end = loop {
            let event = EVENTS[rng.usize(..EVENTS.len())];
            if can_happen(&flow, event) {
                told.push(event);
                if let Some(end) = flow.on(event).end {
                    break end;
                }
            }
        };
        let ends = |told: &[Event]| {
            told.len() == 2 && told.contains(&Event::SocketEnd) && told.contains(&Event::StreamEnd)
        };
        assert_eq!(end == End::Clean, ends(&told), "{told:?}");
    }
}
