//! A decision on the number of parallel TCP connections, and what it follows from.

use super::{Audience, Message};
use hikyaku_tuner::{Measured, Phase, Standing};
use hikyaku_units::counted;
use serde_json::json;
use std::time::Duration;

/// The message about a measurement of the connections in this phase of the rule, `elapsed` after the beginning of the command.
/// `None`: this audience gets none.
pub fn decision(
    audience: Audience,
    elapsed: Duration,
    (measured, phase): (&Measured, Phase),
) -> Option<Message> {
    let (goodput, n) = (8.0 * measured.goodput(), measured.connections.round() as u64);
    let phase = phase.name();
    match audience {
        Audience::Events => {
            let event = json!({
                "event": "epoch",
                "seconds": elapsed.as_secs_f64(),
                "connections": n,
                "bytes": measured.bytes.bytes(),
                "took": measured.elapsed.as_secs_f64(),
                "bits_per_second": goodput as u64,
                "phase": phase,
                "queue": measured.queue.map(|queue| queue.as_secs_f64()),
                "is_standing": is_standing(measured.standing),
                "added": measured.added,
                "next": measured.asked,
            });
            Some(Message::Event(event.to_string()))
        }
        Audience::Lines => {
            let (all, each) = (goodput / 1e6, goodput / 1e6 / n.max(1) as f64);
            let (why, connections) = (why(measured), counted(n, "connection"));
            let next = measured.asked;
            Some(Message::Remark(format!(
                "{connections}: {all:.1} Mbit/s, {each:.1} each ({phase}{why}; next {next})"
            )))
        }
        Audience::Person | Audience::Quiet | Audience::Document => None,
    }
}

const fn is_standing(standing: Standing) -> Option<bool> {
    match standing {
        Standing::Yes => Some(true),
        Standing::No => Some(false),
        Standing::Unknown => None,
    }
}

/// The reasons of a decision, each with a comma before it.
fn why(measured: &Measured) -> String {
    let millis = measured.queue.map(|queue| queue.as_secs_f64() * 1e3);
    let queue = match (measured.standing, millis) {
        (Standing::Yes, Some(millis)) => format!(", a queue of {millis:.0} ms stands"),
        (Standing::No, Some(millis)) => format!(", packets wait {millis:.0} ms"),
        _ => String::new(),
    };
    let added = measured.added.map(|share| format!(", new ones bring {share:.2} of the old ones"));
    queue + &added.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_units::DataSize;

    #[test]
    fn a_decision_has_its_reasons() {
        let measured = Measured {
            connections: 16.0,
            bytes: DataSize::from_bytes(1),
            elapsed: Duration::from_secs(1),
            queue: Some(Duration::from_millis(38)),
            standing: Standing::Yes,
            added: Some(0.954),
            asked: 16,
        };
        let text = ", a queue of 38 ms stands, new ones bring 0.95 of the old ones";
        assert_eq!(why(&measured), text);
        let free = Measured { standing: Standing::No, added: None, ..measured };
        assert_eq!(why(&free), ", packets wait 38 ms");
        assert_eq!(why(&Measured { standing: Standing::Unknown, queue: None, ..free }), "");
        let told = |audience| decision(audience, Duration::ZERO, (&free, Phase::Hold));
        assert!(matches!(told(Audience::Events), Some(Message::Event(_))));
        let line = "16 connections: 0.0 Mbit/s, 0.0 each (hold, packets wait 38 ms; next 16)";
        assert_eq!(told(Audience::Lines), Some(Message::Remark(line.to_owned())));
        assert_eq!(told(Audience::Person), None);
    }
}
