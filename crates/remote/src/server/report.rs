//! The state of this machine and of the connection, for the client.

use super::Session;
use crate::message::{MachineReport, PathReport, Report};
use hikyaku_net::blocking::{Stop, wait};
use hikyaku_reach::{Held, Seen};
use hikyaku_store::{ErrorKind, Result, StoreError, StorePath};
use std::time::{Duration, Instant};

/// The transport answers within this, or the report is without it.
const PATIENCE: Duration = Duration::from_millis(100);

/// Answers [`Request::Report`](crate::Request::Report).
// spec: store-report-2
pub(super) fn report(session: &Session) -> Result<Report> {
    let Some(probe) = &session.probe else {
        return Err(StoreError::new("report on", &StorePath::ROOT, ErrorKind::Denied));
    };
    let until = Some(Instant::now() + PATIENCE);
    let seen = wait(session.connection.seen(), &Stop::default(), until).ok().flatten();
    let machine = MachineReport::from(&probe.load());
    Ok(Report { machine, path: seen.as_ref().map(path) })
}

fn path(seen: &Seen) -> PathReport {
    let micros = |seconds: f64| (seconds * 1e6) as u64;
    PathReport {
        sent_payload: seen.sent_payload,
        sent_packets: seen.packets.map(|packets| packets.sent),
        lost_packets: seen.packets.map(|packets| packets.lost),
        resent_bytes: seen.packets.map(|packets| packets.resent_bytes),
        rtt_micros: micros(seen.round_trip.as_secs_f64()),
        queue_micros: seen.packets.map(|packets| micros(packets.queue)),
        allowed_rate: match seen.held {
            Held::ByRate(bytes_per_second) => Some(bytes_per_second as u64),
            Held::Starting | Held::ByPipe { .. } => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::connections;
    use crate::{Client, Limits, RemoteError, Server};
    use hikyaku_run_log::SharedProbe;
    use hikyaku_store::Memory;
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::thread;

    /// What a client hears of a server with this probe.
    fn ask(probe: Option<Arc<SharedProbe>>) -> std::result::Result<crate::Report, RemoteError> {
        let (ours, theirs) = connections();
        thread::scope(|scope| {
            let server = Server::new(Arc::new(Memory::default()), Limits::default());
            let served = scope.spawn(move || server.with_reports(probe).attend(theirs).unwrap());
            let client = Client::new(ours).unwrap();
            let (say, hear) = channel();
            client.report_then(move |report| say.send(report).unwrap());
            let heard = hear.recv().unwrap();
            client.connection().close(hikyaku_net::code::DONE, "");
            served.join().unwrap();
            heard
        })
    }

    // spec: store-report-1, store-report-2
    #[test]
    fn a_server_tells_its_state_only_if_it_has_a_probe() {
        let report = ask(Some(Arc::new(SharedProbe::new(Some(std::env::temp_dir()))))).unwrap();
        assert!(report.machine.memory_total.is_some_and(|bytes| bytes > 0), "{report:?}");
        assert!(report.machine.disk_total.is_some_and(|bytes| bytes > 0), "{report:?}");
        assert!(report.path.is_some());
        let refused = ask(None).unwrap_err();
        assert!(matches!(refused, RemoteError::Refused { .. }), "{refused}");
    }
}
