//! What limits a flow, from what was seen of it.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn reading(bytes: u64, source: u64, sink: u64) -> Reading {
    let time = Duration::from_millis;
    Reading { bytes, source: time(source), sink: time(sink) }
}

fn far(server: f64, path: f64, reader: f64) -> Option<FarParts> {
    Some(FarParts { server, path, reader })
}

#[test]
fn what_is_waited_for_is_the_limit() {
    use Disk::{Behind, Keeps};
    let (none, down, up) = (reading(0, 1000, 0), reading(9, 900, 0), reading(9, 10, 900));
    for (outgoing, incoming, far, disk, wanted) in [
        (none, none, None, Keeps, Limit::Idle),
        (none, none, None, Behind, Limit::Idle),
        (none, down, far(0.01, 0.9, 0.0), Keeps, Limit::Path),
        (none, down, far(0.9, 0.01, 0.0), Keeps, Limit::FarTcp),
        (none, down, far(0.9, 0.01, 0.0), Behind, Limit::FarTcp),
        (none, down, far(0.1, 0.09, 0.0), Keeps, Limit::Path),
        (none, down, None, Keeps, Limit::PathOrFarTcp),
        (none, reading(9, 10, 900), far(0.01, 0.9, 0.0), Keeps, Limit::Program),
        (none, reading(9, 10, 900), far(0.01, 0.9, 0.0), Behind, Limit::Disk),
        // Nothing passes, because the program has stopped to read.
        (none, reading(0, 0, 1000), None, Keeps, Limit::Program),
        (up, none, far(0.0, 0.0, 0.0), Keeps, Limit::Path),
        (up, none, far(0.0, 0.0, 0.9), Keeps, Limit::FarTcp),
        (up, none, None, Keeps, Limit::PathOrFarTcp),
        (reading(9, 900, 10), none, None, Keeps, Limit::Program),
    ] {
        let doing = Doing::Other;
        let observed = Observed { time: SECOND, outgoing, incoming, socket: 0.1, far, disk, doing };
        assert_eq!(observed.limit(), wanted, "{outgoing:?} {incoming:?} {far:?} {disk:?}");
    }
    // A socket that is full says the same as the gateway's waits: the program reads in bursts.
    let incoming = reading(9, 800, 100);
    let full = Observed {
        time: SECOND,
        outgoing: none,
        incoming,
        socket: 0.9,
        far: None,
        disk: Keeps,
        doing: Doing::Other,
    };
    assert_eq!(full.limit(), Limit::Program);
    for (doing, disk, wanted) in [
        (Doing::Computing, Keeps, Limit::Processor),
        (Doing::Computing, Behind, Limit::Disk),
        (Doing::Writing, Keeps, Limit::Disk),
    ] {
        let observed = Observed { doing, disk, ..full };
        assert_eq!(observed.limit(), wanted, "{doing:?} {disk:?}");
        // A program that reads all that comes is not the limit, whatever else it does.
        let empty = Observed { socket: 0.1, far: far(0.0, 0.9, 0.0), ..observed };
        assert_eq!(empty.limit(), Limit::Path, "{doing:?} {disk:?}");
    }
}
