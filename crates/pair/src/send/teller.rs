//! Regular reports of the sender: the total of the copy, and the state of the path.

use crate::limit::{Gauge, Waits};
use hikyaku_job::Meter;
use hikyaku_net::blocking::{Stop, wait};
use hikyaku_reach::{Connection, Out, Packets, Seen};
use hikyaku_transfer::{FromSender, LimitedBy, PathFigures};
use hikyaku_units::Rate;
use std::time::Duration;

/// Interval between reports.
const TELL_EVERY: Duration = Duration::from_millis(250);

/// Reports to both ends until `stop` is set. The walk counts ahead of the data, so that the receiver knows the total long
/// before the last file begins.
pub(super) fn tell(
    connection: &Connection,
    (out, meter): (&Out, &Meter),
    (limit, waits): (Option<Rate>, &Waits),
    stop: &Stop,
) {
    let (mut gauge, mut total) = (Gauge::new(), Total::default());
    while !stop.is_set() {
        for message in total.messages(meter) {
            if out.say(&message).is_err() {
                return;
            }
        }
        if let Ok(Some(seen)) = wait(connection.seen(), stop, None) {
            let path = figures(&seen, gauge.look(&seen, limit, waits));
            meter.set_path(path);
            if out.say(&FromSender::Path(path)).is_err() {
                return;
            }
        }
        stop.sleep(TELL_EVERY);
    }
}

/// The total that was reported to the receiver.
#[derive(Default)]
struct Total {
    told: Option<(u64, u64)>,
    is_final: bool,
}

impl Total {
    /// The next report, if any. A total that is repeated once is final.
    fn messages(&mut self, meter: &Meter) -> Vec<FromSender> {
        let tally = meter.tally();
        let now = (tally.total_files, tally.total_bytes);
        let mut messages = Vec::new();
        let mut say = || messages.push(FromSender::Total { files: now.0, bytes: now.1 });
        if !tally.is_counted && now == (0, 0) {
            return messages;
        }
        if self.told != Some(now) {
            (self.told, self.is_final) = (Some(now), false);
            say();
        }
        // spec: copy-total-1
        if tally.is_counted && !self.is_final {
            self.is_final = true;
            say();
        }
        messages
    }
}

/// Figures of the path. Connections over pipes have no packets.
fn figures(seen: &Seen, limited_by: LimitedBy) -> PathFigures {
    let none = Packets { sent: 0, lost: 0, resent_bytes: 0, payload: 0, queue: 0.0 };
    let Packets { sent, lost, resent_bytes, payload, queue } = seen.packets.unwrap_or(none);
    PathFigures {
        sent_packets: sent,
        lost_packets: lost,
        resent_bytes,
        packet: payload,
        rtt: seen.round_trip.as_secs_f64(),
        queue,
        limited_by,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The total at the receiver after each of these states of a walk: (files, bytes, whether all is counted).
    fn heard(moments: &[(u64, u64, bool)]) -> Vec<(u64, u64, bool)> {
        let (here, there, mut total) = (Meter::default(), Meter::default(), Total::default());
        let moments = moments.iter().map(|&(files, bytes, is_counted)| {
            here.set_total(files, bytes);
            if is_counted {
                here.set_counted();
            }
            for message in total.messages(&here) {
                let FromSender::Total { files, bytes } = message else { unreachable!() };
                there.set_total(files, bytes);
            }
            let tally = there.tally();
            (tally.total_files, tally.total_bytes, tally.is_counted)
        });
        moments.collect()
    }

    // spec: copy-total-1
    #[test]
    fn the_other_end_knows_the_whole_when_the_walk_has_ended_and_not_before() {
        for moments in [
            &[(0, 0, false), (1, 10, false), (7, 70, false), (7, 70, true)][..],
            &[(1, 0, true)],
            &[(0, 0, true)],
            &[(5, 50, false), (5, 50, true), (5, 49, true)],
        ] {
            assert_eq!(heard(moments), moments);
        }
    }
}
