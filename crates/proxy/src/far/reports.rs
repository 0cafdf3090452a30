//! What the far gateway says of its flows while they go on: what each of them waits for.

use crate::meter::{Meters, Reading};
use bytes::Bytes;
use hikyaku_forward::{Listening, Report, Waited, framed};
use hikyaku_reach::SendHalf;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::interval;

/// The flows that are open, by their streams.
#[derive(Default)]
pub(super) struct Reports(Mutex<BTreeMap<u32, Told>>);

/// A flow, and what was said of it last.
struct Told {
    meters: Arc<Meters>,
    bytes: u64,
    /// Something has passed then.
    moved: Instant,
}

/// The place of an open flow. Dropping it ends the flow.
pub(super) struct Place {
    reports: Arc<Reports>,
    flow: u32,
    meters: Arc<Meters>,
}

/// A report is sent so often, if there is something to say.
const EVERY: Duration = Duration::from_millis(500);
/// Of a flow in which nothing passes for so long nothing is said.
const QUIET: Duration = Duration::from_secs(5);

impl Reports {
    /// A flow begins.
    pub(super) fn enter(self: &Arc<Self>, flow: u32) -> Place {
        let meters = Arc::<Meters>::default();
        let told = Told { meters: meters.clone(), bytes: 0, moved: Instant::now() };
        self.all().insert(flow, told);
        Place { reports: self.clone(), flow, meters }
    }

    /// What the flows have waited for until `now`, those in which most has passed since the last report first; `None` if
    /// all of them are quiet.
    fn take(&self, now: Instant) -> Option<Report> {
        let mut flows = Vec::new();
        for (&flow, told) in self.all().iter_mut() {
            let (bytes, before) = (told.meters.bytes(), told.bytes);
            if bytes != before {
                (told.bytes, told.moved) = (bytes, now);
            }
            if now.saturating_duration_since(told.moved) < QUIET {
                flows.push((bytes - before, waited(flow, &told.meters, now)));
            }
        }
        flows.sort_by_key(|(moved, _)| std::cmp::Reverse(*moved));
        flows.truncate(Report::FLOWS_MAX);
        let flows: Vec<Waited> = flows.into_iter().map(|(_, waited)| waited).collect();
        (!flows.is_empty()).then_some(Report { flows })
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u32, Told>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn waited(flow: u32, meters: &Meters, now: Instant) -> Waited {
    let outgoing: Reading = meters.outgoing.read(now);
    let reader = meters.incoming.read(now).sink;
    Waited { flow, server: outgoing.source, path: outgoing.sink, reader }
}

/// Sends reports, and what has become of listeners, until the near gateway is gone.
pub(super) async fn say(
    reports: Arc<Reports>,
    mut listening: mpsc::Receiver<Listening>,
    mut send: SendHalf,
) {
    let mut ticks = interval(EVERY);
    loop {
        let message = tokio::select! {
            Some(listening) = listening.recv() => listening.encode(),
            _ = ticks.tick() => match reports.take(Instant::now()) {
                Some(report) => report.encode(),
                None => continue,
            },
        };
        if send.write_chunk(Bytes::from(framed(&message))).await.is_err() {
            // Dropping this half would reset the stream.
            return std::future::pending().await;
        }
    }
}

impl Place {
    /// What passes in the flow.
    pub(super) fn meters(&self) -> Arc<Meters> {
        self.meters.clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.reports.all().remove(&self.flow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::Wait;

    #[test]
    fn what_flows_wait_for_is_said_until_they_are_quiet() {
        let reports = Arc::<Reports>::default();
        let begin = Instant::now();
        let at = |millis| begin + Duration::from_millis(millis);
        let (slow, fast) = (reports.enter(4), reports.enter(8));
        slow.meters().outgoing.add(10);
        slow.meters().outgoing.wait(Some(Wait::Source), at(0));
        fast.meters().outgoing.add(1000);
        fast.meters().outgoing.wait(Some(Wait::Sink), at(100));
        fast.meters().incoming.wait(Some(Wait::Sink), at(200));
        let time = Duration::from_millis;
        let wanted = [
            Waited { flow: 8, server: time(0), path: time(400), reader: time(300) },
            Waited { flow: 4, server: time(500), path: time(0), reader: time(0) },
        ];
        assert_eq!(reports.take(at(500)).unwrap().flows, wanted);
        fast.meters().outgoing.add(1);
        assert_eq!(reports.take(at(5400)).unwrap().flows.len(), 2);
        let left = reports.take(at(5600)).unwrap().flows;
        assert_eq!(left.iter().map(|waited| waited.flow).collect::<Vec<_>>(), [8]);
        drop((slow, fast));
        assert_eq!(reports.take(at(5700)), None);
        let _many: Vec<Place> = (0..100).map(|flow| reports.enter(flow)).collect();
        assert_eq!(reports.take(Instant::now()).unwrap().flows.len(), Report::FLOWS_MAX);
    }
}
