//! Addresses that answer, refuse or are silent, tried a little after each other.

use super::*;
use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, TcpListener};

const WITHIN: Duration = Duration::from_secs(20);
/// A wait for all of [`WITHIN`] looks more often than this whether the connection is still wanted.
const LOOKS_MAX: u128 = WITHIN.as_millis() / LOOK_EVERY.as_millis() / 2;

fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// A listener whose queue is full, so that the kernel drops each further SYN, and the connections in the queue.
fn silent() -> (SocketAddr, TcpListener, Vec<TcpStream>) {
    use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
    let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&fd, &SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)).unwrap();
    listen(&fd, 0).unwrap();
    let listener = TcpListener::from(fd);
    let address = listener.local_addr().unwrap();
    let within = Duration::from_millis(200);
    let mut held = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, within) {
        held.push(stream);
        assert!(held.len() < 100, "the queue has no end");
    }
    (address, listener, held)
}

#[test]
fn families_take_turns() {
    let all = addresses(&["[::1]:1", "[::2]:1", "[::3]:1", "1.0.0.1:1"]);
    let want = addresses(&["[::1]:1", "1.0.0.1:1", "[::2]:1", "[::3]:1"]);
    assert_eq!(in_turn(&all, 8), want);
    assert_eq!(in_turn(&all, 3), want[..3]);
    assert_eq!(in_turn(&all[..0], 3), []);
}

#[test]
fn an_address_that_does_not_answer_delays_the_next_one_a_little() {
    let (silent, _listener, _held) = silent();
    let open = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = open.local_addr().unwrap();
    let (begin, looks) = (Instant::now(), Cell::new(0));
    let goes_on = || looks.replace(looks.get() + 1) < LOOKS_MAX;
    // The first address would have taken all of the time.
    let won = connect_first(&[silent, address], &Options::default(), WITHIN, &goes_on).unwrap();
    assert_eq!(won.address, address);
    // The handshake is that of the winner, which began later.
    assert!(won.handshake + ATTEMPT_DELAY <= begin.elapsed(), "{:?}", won.handshake);
}

#[test]
fn a_refusal_lets_the_next_address_begin_and_the_last_error_is_returned() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let open = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = open.local_addr().unwrap();
    let options = Options::default();
    let won = connect_first(&[closed, closed, address], &options, WITHIN, &|| true).unwrap();
    assert_eq!(won.address, address);
    let error = connect_first(&[closed, closed], &options, WITHIN, &|| true).unwrap_err();
    assert!(error.is_refusal(), "{error}");
    assert!(connect_first(&[], &options, WITHIN, &|| true).is_err());
}

#[test]
fn a_connection_that_is_not_wanted_any_more_is_given_up() {
    let (silent, _listener, _held) = silent();
    let looks = Cell::new(0);
    let goes_on = || looks.replace(looks.get() + 1) > 0;
    let error = connect_first(&[silent], &Options::default(), WITHIN, &goes_on).unwrap_err();
    assert!(matches!(&error, ConnectError::Io(error) if error.kind() == ErrorKind::Interrupted));
    assert_eq!(looks.get(), 1);
    let short = Duration::from_millis(100);
    let error = connect_first(&[silent], &Options::default(), short, &|| true).unwrap_err();
    assert!(matches!(&error, ConnectError::Io(error) if error.kind() == ErrorKind::TimedOut));
}
