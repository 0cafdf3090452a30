//! Failures, and their errors.

use super::*;
use crate::blocking::{Cut, Stop, wait};
use std::future::{Future, pending};
use std::net::UdpSocket;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Wake, Waker};
use std::time::Instant;

#[test]
fn a_stream_dropped_in_the_middle_is_an_error_and_not_an_end() {
    let lab = Lab::new();
    let (client, server) = lab.connect();
    let mut stream = block_on(client.open_stream()).unwrap();
    block_on(stream.write_chunk(patterned(0, 1000))).unwrap();
    let mut other = block_on(server.accept_stream()).unwrap();
    drop(stream);
    let error = block_on(receive_pattern(other.halves().1)).unwrap_err();
    assert!(matches!(error, ReadError::Reset(StreamCode::DROPPED)), "{error}");
}

#[test]
fn a_connection_closed_in_the_middle_is_an_error_and_not_an_end() {
    let lab = Lab::new();
    let (client, server) = lab.connect();
    let mut stream = block_on(client.open_stream()).unwrap();
    block_on(stream.write_chunk(patterned(0, 1000))).unwrap();
    let mut other = block_on(server.accept_stream()).unwrap();
    client.close(AppCode::new(code::APPLICATION + 7), "enough");
    let error = block_on(receive_pattern(other.halves().1)).unwrap_err();
    let ReadError::Closed(CloseReason::Peer { code, reason }) = error else { panic!("{error}") };
    assert_eq!((code, reason.as_str()), (code::APPLICATION + 7, "enough"));
    assert_eq!(block_on(client.closed()), CloseReason::Local);
    assert!(block_on(client.open_stream()).is_err());
    assert!(block_on(stream.write_chunk(patterned(0, 1))).is_err());
    assert!(block_on(client.stats()).is_some());
}

/// Records the close reason of the connection at the moment at which one of its streams is woken.
struct Noted {
    connection: Connection,
    reasons: Mutex<Vec<Option<CloseReason>>>,
}

impl Wake for Noted {
    fn wake(self: Arc<Self>) {
        self.reasons.lock().unwrap().push(self.connection.close_reason());
    }
}

#[test]
fn the_reason_of_the_end_is_known_when_the_first_stream_is_told() {
    let lab = Lab::new();
    let (client, server) = lab.connect();
    let mut stream = block_on(client.open_stream()).unwrap();
    block_on(stream.write_chunk(patterned(0, 10))).unwrap();
    let mut other = block_on(server.accept_stream()).unwrap();
    let receiving = other.halves().1;
    block_on(receiving.read_chunk()).unwrap().unwrap();
    let noted = Arc::new(Noted { connection: server.clone(), reasons: Mutex::default() });
    let waker = Waker::from(noted.clone());
    let mut reading = pin!(receiving.read_chunk());
    assert!(reading.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    // The driver may still be reporting the ten bytes. It has done so when it announces the next stream.
    let mut second = block_on(client.open_stream()).unwrap();
    block_on(second.write_chunk(patterned(0, 10))).unwrap();
    drop(block_on(server.accept_stream()).unwrap());
    assert!(reading.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    noted.reasons.lock().unwrap().clear();
    client.close(AppCode::new(code::APPLICATION + 7), "enough");
    eventually("the end", || !noted.reasons.lock().unwrap().is_empty());
    let first = noted.reasons.lock().unwrap()[0].clone();
    assert!(matches!(first, Some(CloseReason::Peer { .. })), "{first:?}");
}

#[test]
fn a_reader_that_goes_stops_the_writer() {
    let lab = Lab::new();
    let (client, server) = lab.connect();
    let mut stream = block_on(client.open_stream()).unwrap();
    block_on(stream.write_chunk(patterned(0, 1000))).unwrap();
    drop(block_on(server.accept_stream()).unwrap());
    eventually("the stop", || {
        matches!(
            block_on(stream.write_chunk(patterned(0, 10))),
            Err(WriteError::Stopped(StreamCode::DROPPED))
        )
    });
}

#[test]
fn dropped_connections_end_at_the_other_side() {
    let lab = Lab::new();
    let (client, server) = lab.connect();
    let clone = client.clone();
    drop(client);
    assert_eq!(server.close_reason(), None);
    drop(clone);
    let reason = block_on(server.closed());
    assert!(matches!(reason, CloseReason::Peer { code: code::DONE, .. }), "{reason}");
}

/// Carries datagrams to `server` and back, each `late`.
pub(super) fn far_away(server: SocketAddr, late: Duration) -> SocketAddr {
    let near = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    let far = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    let address = near.local_addr().unwrap();
    let client = Arc::new(OnceLock::new());
    for (from, to, is_back) in [(&near, &far, false), (&far, &near, true)] {
        let (from, to, client) = (from.clone(), to.clone(), client.clone());
        let (give, take) = std::sync::mpsc::channel::<(Instant, Vec<u8>, SocketAddr)>();
        thread::spawn(move || {
            let mut bytes = [0; 65_536];
            while let Ok((len, source)) = from.recv_from(&mut bytes) {
                let target = if is_back { *client.get().expect("it asked first") } else { server };
                if !is_back {
                    client.get_or_init(|| source);
                }
                let _ = give.send((Instant::now() + late, bytes[..len].to_vec(), target));
            }
        });
        thread::spawn(move || {
            for (due, datagram, target) in take {
                thread::sleep(due.saturating_duration_since(Instant::now()));
                let _ = to.send_to(&datagram, target);
            }
        });
    }
    address
}

#[test]
fn who_has_no_time_for_last_words_waits_for_no_answer() {
    let lab = Lab::new();
    let address = far_away(lab.listener.local_addr(), Duration::from_millis(300));
    let config = EndpointConfig { closing: Duration::ZERO, ..quiet() };
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), config).unwrap();
    let client = block_on(endpoint.connect(address, lab.trusting())).unwrap();
    let server = block_on(lab.listener.accept()).unwrap();
    client.close(AppCode::DONE, "");
    drop((client, endpoint));
    assert_eq!(server.close_reason(), None, "the word is still on its way");
    let reason = block_on(server.closed());
    assert!(matches!(reason, CloseReason::Peer { code: code::DONE, .. }), "{reason}");
}

#[test]
fn a_stream_that_nobody_accepted_keeps_no_connection() {
    let lab = Lab::new();
    let (client, server) = lab.connect();
    let mut stream = block_on(client.open_stream()).unwrap();
    block_on(stream.write_chunk(patterned(0, 1000))).unwrap();
    eventually("the stream", || {
        block_on(server.stats()).is_some_and(|stats| stats.received_payload.bytes() == 1000)
    });
    drop(server);
    eventually("the end", || client.close_reason().is_some());
    let reason = block_on(client.closed());
    assert!(matches!(reason, CloseReason::Peer { code: code::DONE, .. }), "{reason}");
}

#[test]
fn handles_outlive_their_endpoint_and_say_so() {
    let lab = Lab::new();
    let (client, server) = lab.connect();
    let stream = block_on(client.open_stream()).unwrap();
    let Lab { listener, endpoint, .. } = lab;
    drop(endpoint);
    assert_eq!(client.close_reason(), Some(CloseReason::Local));
    assert!(block_on(client.open_stream()).is_err());
    drop(listener);
    assert!(block_on(server.accept_stream()).is_err());
    drop((stream, client, server));
}

#[test]
fn nobody_there_is_said_within_the_time_out() {
    // Bound, and silent.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let lab = Lab::new();
    let mut config = lab.trusting();
    config.transport.connect_timeout = Duration::from_millis(400);
    let start = Instant::now();
    let target = silent.local_addr().unwrap();
    let error = block_on(lab.endpoint.connect(target, config)).err().unwrap();
    assert!(start.elapsed() < Duration::from_secs(2));
    let port = target.port();
    let text = format!("no answer from 127.0.0.1 UDP port {port} within 1 s");
    assert_eq!(error.to_string(), text);
}

#[test]
fn names_and_families_that_lead_nowhere_are_named() {
    let lab = Lab::new();
    let connect =
        |host: &str| block_on(lab.endpoint.connect((host, 9), lab.trusting())).err().unwrap();
    let error = connect("does-not-exist.invalid");
    assert!(matches!(&error, ConnectError::NotFound { host, .. } if host.contains("invalid")));
    assert!(matches!(connect("::1"), ConnectError::WrongFamily { .. }));
    assert!(matches!(connect("a b"), ConnectError::Name(_)));
}

#[test]
fn another_key_is_refused_and_both_keys_are_named() {
    let lab = Lab::new();
    let other = Identity::generate().unwrap().fingerprint();
    let config = ConnectConfig::new(Trust::Pinned(other));
    let error = block_on(lab.endpoint.connect(lab.listener.local_addr(), config)).err().unwrap();
    let ConnectError::Untrusted(Untrusted::Pin { shown, pinned, .. }) = error else {
        panic!("{error}");
    };
    assert_eq!((shown, pinned), (lab.fingerprint, other));
}

#[test]
fn a_taken_port_is_named() {
    let lab = Lab::new();
    let taken = lab.listener.local_addr();
    let error = Endpoint::bind(taken, quiet()).err().unwrap();
    assert!(error.to_string().contains(&taken.port().to_string()), "{error}");
}

#[test]
fn strangers_meet_silence() {
    let lab = Lab::new();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let target = lab.listener.local_addr();
    for first in [0x00, 0x01, 0x80, 0x81, 0x82, 0x83, 0xc0, 0xff] {
        for len in [0, 1, 15, 16, 17, 40, 1199, 1200, 1472, 9000] {
            let mut garbage = vec![0xa5; len];
            garbage.iter_mut().take(1).for_each(|byte| *byte = first);
            stranger.send_to(&garbage, target).unwrap();
        }
    }
    let mut room = [0; 2000];
    assert!(stranger.recv(&mut room).is_err(), "an answer to garbage");
    lab.connect();
}

#[test]
fn another_version_is_told_the_ones_spoken_here() {
    let lab = Lab::new();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut packet = vec![0; 1200];
    packet[0] = 0x80;
    packet[4..8].copy_from_slice(&77_u32.to_le_bytes());
    stranger.send_to(&packet, lab.listener.local_addr()).unwrap();
    let mut room = [0; 2000];
    let len = stranger.recv(&mut room).unwrap();
    assert_eq!(room[0], 0x83);
    assert_eq!(room[len - 4..len], hikyaku_wire::Version::CURRENT.0.to_le_bytes());
}

#[test]
fn a_busy_listener_wants_proof_and_honest_clients_give_it() {
    let lab = Lab::with("127.0.0.1:0", |config| config.prove_from = 0);
    let (client, server) = lab.connect();
    let mut stream = block_on(client.open_stream()).unwrap();
    block_on(send_pattern(stream.halves().0, 100_000));
    let mut other = block_on(server.accept_stream()).unwrap();
    assert_eq!(block_on(receive_pattern(other.halves().1)).unwrap(), 100_000);
}

/// A wire of some milliseconds each way between `to` and who comes first.
fn long_wire(to: SocketAddr) -> SocketAddr {
    const DELAY: Duration = Duration::from_millis(50);
    let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let at = socket.local_addr().unwrap();
    thread::spawn(move || {
        let (mut client, mut room) = (None, [0; 65_536]);
        while let Ok((length, from)) = socket.recv_from(&mut room) {
            let there = if from == to { client } else { Some(to) };
            client = if from == to { client } else { Some(from) };
            let (socket, datagram) = (socket.clone(), room[..length].to_vec());
            thread::spawn(move || {
                thread::sleep(DELAY);
                there.map(|there| socket.send_to(&datagram, there))
            });
        }
    });
    at
}

#[test]
fn a_stream_that_comes_to_a_closed_connection_is_not_waited_on() {
    let lab = Lab::new();
    let wire = long_wire(lab.listener.local_addr());
    let client = block_on(lab.endpoint.connect(wire, lab.trusting())).unwrap();
    let server = block_on(lab.listener.accept()).unwrap();
    let mut streams = [(); 2].map(|()| block_on(client.open_stream()).unwrap());
    server.close(AppCode::DONE, "");
    block_on(server.closed());
    // The client does not know it yet.
    for stream in &mut streams {
        let _ = block_on(stream.write_chunk(patterned(0, 1000)));
    }
    block_on(client.closed());
    // Messages that it sent meanwhile have arrived by then.
    thread::sleep(Duration::from_millis(100));
    assert!(matches!(block_on(server.accept_stream()), Err(OpenError::Closed(_))));
}

#[test]
fn a_wait_ends_when_it_is_told_to() {
    let late = wait(pending::<()>(), &Stop::default(), Some(Instant::now()));
    assert_eq!(late, Err(Cut::TooLate));
    let stop = Stop::default();
    let told = stop.clone();
    let thread = thread::spawn(move || wait(pending::<()>(), &told, None));
    stop.set();
    thread.thread().unpark();
    assert_eq!(thread.join().unwrap(), Err(Cut::Stopped));
    assert_eq!(wait(async { 1 }, &Stop::default(), None), Ok(1));
}
