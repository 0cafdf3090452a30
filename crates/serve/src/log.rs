//! `--log-dir`: the state of this machine and of the sessions, while there are any.

use crate::sessions::Sessions;
use hikyaku_net::blocking::{Stop, wait};
use hikyaku_reach::Seen;
use hikyaku_run_log::{Flow, Line, MachineId, Recorder, Role, SAMPLE_EVERY, millis};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A sample of the machine is written this often while there are no sessions.
const IDLE: Duration = Duration::from_secs(60);
/// It is looked this often whether the daemon ends, and whether samples are due.
const LOOK: Duration = Duration::from_millis(100);
/// Time within which the transport must report a session. Otherwise the sample is written without it.
const PATIENCE: Duration = Duration::from_millis(50);

/// A session that was seen.
struct Known {
    m: MachineId,
    sent: u64,
    heard: u64,
}

/// Writes samples until `is_over` is set.
pub(crate) fn keep(recorder: &Recorder, sessions: &Sessions, is_over: &AtomicBool) {
    let mut known: HashMap<u64, Known> = HashMap::new();
    let mut last: Option<Instant> = None;
    while !is_over.load(Ordering::Relaxed) {
        let now = Instant::now();
        let there = sessions.list();
        let pause = if there.is_empty() { IDLE } else { SAMPLE_EVERY };
        if last.is_none_or(|last| now.duration_since(last) >= pause) {
            last = Some(now);
            known.retain(|number, _| there.iter().any(|(other, _)| other == number));
            for (number, guest) in &there {
                known.entry(*number).or_insert_with(|| Known {
                    m: recorder.add_machine(&guest.key.to_string(), Role::Client),
                    sent: 0,
                    heard: 0,
                });
            }
            recorder.sample(now, |t, lines| {
                for (number, guest) in &there {
                    let seen =
                        wait(guest.connection.seen(), &Stop::default(), Some(now + PATIENCE));
                    let Some(seen) = seen.ok().flatten() else { continue };
                    if let Some(known) = known.get_mut(number) {
                        lines.extend(known.flow(t, &seen).map(Line::Flow));
                    }
                }
            });
        }
        thread::park_timeout(LOOK);
    }
}

impl Known {
    /// A sample of the session, unless nothing has moved since the last one.
    fn flow(&mut self, t: f64, seen: &Seen) -> Option<Flow> {
        let is_still = (self.sent, self.heard) == (seen.sent, seen.heard);
        (self.sent, self.heard) = (seen.sent, seen.heard);
        let packets = seen.packets;
        (!is_still).then(|| Flow {
            t,
            m: self.m,
            sent_bytes: Some(seen.sent_payload),
            sent_packets: packets.map(|packets| packets.sent),
            lost_packets: packets.map(|packets| packets.lost),
            resent_bytes: packets.map(|packets| packets.resent_bytes),
            rtt_ms: Some(millis(seen.round_trip.as_secs_f64())),
            queue_ms: packets.map(|packets| millis(packets.queue)),
            ..Flow::default()
        })
    }
}
