//! Idle connections to a server on loopback that counts them.

use super::*;
use crate::client::{Client, NamedBy, Place, Settings, Turn};
use crate::fault::Fault;
use crate::url::Url;
use hikyaku_tcp::{GrantMemory, Grants};
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// The connections that a server has accepted.
type Accepted = Arc<Mutex<Vec<TcpStream>>>;

/// Starts a server whose every file is `x`. Returns its address.
fn server() -> (String, Accepted) {
    server_of(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
}

/// Starts a server with one answer to all requests.
fn server_of(answer: &'static [u8]) -> (String, Accepted) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let accepted = Accepted::default();
    let noted = accepted.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            noted.lock().unwrap().push(stream.try_clone().unwrap());
            thread::spawn(move || {
                let mut lines = BufReader::new(stream);
                let mut line = String::new();
                while lines.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                    if line == "\r\n" {
                        lines.get_mut().write_all(answer).unwrap();
                    }
                    line.clear();
                }
            });
        }
    });
    (address, accepted)
}

fn count(accepted: &Accepted) -> usize {
    accepted.lock().unwrap().len()
}

/// A client, and a connection of it whose answer has been read.
fn asked(client: &Client, url: &Url) -> Connection {
    let place = Place::new(url.clone(), NamedBy::User);
    let mut answer = client.get(&place, None, (&Stop::default(), Turn::AtOnce)).unwrap();
    assert_eq!(answer.connection.read(2).unwrap(), "x");
    answer.connection
}

fn client() -> Client {
    let time = Duration::from_secs(30);
    let settings = Settings { connect_within: time, patience: time, ..Settings::default() };
    Client::new(settings).unwrap()
}

#[test]
fn one_request_after_the_other_goes_over_one_connection() {
    let (address, accepted) = server();
    let (client, url) = (client(), Url::parse(&format!("http://{address}/a")).unwrap());
    for file in ["a", "b", "c"] {
        client.keep(asked(&client, &url.join(file).unwrap()));
    }
    assert_eq!(count(&accepted), 1);
    client.close_idle(&url.origin);
    client.keep(asked(&client, &url));
    assert_eq!(count(&accepted), 2, "the idle one was closed");
    drop((asked(&client, &url), asked(&client, &url)));
    assert_eq!(count(&accepted), 3, "one cannot carry two answers at once");
}

#[test]
fn a_connection_is_kept_for_its_server_and_for_a_while() {
    let (address, _) = server();
    let (client, url) = (client(), Url::parse(&format!("http://{address}/a")).unwrap());
    let (idle, now, stop) = (Idle::default(), Instant::now(), Stop::default());
    let other = Url::parse("http://127.0.0.1:1/a").unwrap().origin;
    idle.keep(asked(&client, &url), now);
    assert!(idle.take(&other, &stop, now).is_none(), "of another server");
    assert!(idle.take(&url.origin, &stop, now + IDLE_TIME_MAX / 2).is_some());
    assert!(idle.take(&url.origin, &stop, now).is_none(), "it was taken");
    idle.keep(asked(&client, &url), now);
    assert!(idle.take(&url.origin, &stop, now + IDLE_TIME_MAX).is_none(), "too old");
}

#[test]
fn idle_connections_are_bounded_and_the_latest_stay() {
    let (address, _) = server();
    let (client, url) = (client(), Url::parse(&format!("http://{address}/a")).unwrap());
    let (idle, now, stop) = (Idle::default(), Instant::now(), Stop::default());
    let at = |number: usize| now + Duration::from_millis(number as u64);
    for number in 0..IDLE_MAX + 2 {
        idle.keep(asked(&client, &url), at(number));
    }
    assert_eq!(idle.lock().len(), IDLE_MAX);
    assert_eq!(idle.lock().first().map(|(since, _)| *since), Some(at(2)));
    idle.close(&url.origin, at(IDLE_MAX + 2));
    assert_eq!(idle.lock().last().map(|(since, _)| *since), Some(at(IDLE_MAX)));
    assert!(idle.take(&url.origin, &stop, now).is_some());
}

#[test]
fn a_connection_with_unread_bytes_is_closed() {
    let (address, _) = server();
    let (client, url) = (client(), Url::parse(&format!("http://{address}/a")).unwrap());
    let (idle, now, stop) = (Idle::default(), Instant::now(), Stop::default());
    let place = Place::new(url.clone(), NamedBy::User);
    let unread = || client.get(&place, None, (&stop, Turn::AtOnce)).unwrap().connection;
    idle.keep(unread(), now);
    assert!(idle.lock().is_empty());
    // The server sends the byte with the head.
    idle.keep_after(unread(), now);
    assert!(idle.take(&url.origin, &stop, now).is_some());
}

#[test]
fn an_idle_connection_that_is_of_no_use_is_replaced() {
    let closed: fn(&mut TcpStream) = |stream| stream.shutdown(Shutdown::Both).unwrap();
    let sends_more: fn(&mut TcpStream) = |stream| stream.write_all(b"more").unwrap();
    for end in [closed, sends_more] {
        let (address, accepted) = server();
        let (client, url) = (client(), Url::parse(&format!("http://{address}/a")).unwrap());
        for number in 1..4 {
            client.keep(asked(&client, &url));
            assert_eq!(count(&accepted), number);
            end(accepted.lock().unwrap().last_mut().unwrap());
        }
    }
}

#[test]
fn the_connection_of_a_refusal_is_kept_unless_it_was_refused_itself() {
    let missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\n\r\nmissing";
    let busy = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy";
    for (answer, connections) in [(&missing[..], 1), (&busy[..], 3)] {
        let (address, accepted) = server_of(answer);
        let (client, url) = (client(), Url::parse(&format!("http://{address}/a")).unwrap());
        for _ in 0..3 {
            let place = Place::new(url.clone(), NamedBy::User);
            let refused = client.get(&place, None, (&Stop::default(), Turn::AtOnce)).map(drop);
            assert!(matches!(refused, Err(Fault::Status { .. })), "{refused:?}");
        }
        assert_eq!(count(&accepted), connections);
    }
}

/// Servers that grant this number of connections.
struct Granting(u32);

impl GrantMemory for Granting {
    fn recall(&self, _: &str) -> Option<u32> {
        Some(self.0)
    }

    fn note(&self, _: &str, _: Option<u32>) {}
}

#[test]
fn an_answer_that_is_read_later_gives_way_to_a_request_without_a_place() {
    let (address, accepted) = server();
    let url = Url::parse(&format!("http://{address}/a")).unwrap();
    for granted in [1, 2] {
        let time = Duration::from_secs(30);
        let grants = Grants::remembering(Arc::new(Granting(granted)));
        let settings =
            Settings { connect_within: time, patience: time, grants, ..Settings::default() };
        let client = Client::new(settings).unwrap();
        let get = || {
            let place = Place::new(url.clone(), NamedBy::User);
            client.get(&place, None, (&Stop::default(), Turn::AtOnce))
        };
        let parked = client.park(get().unwrap().connection);
        let other = get().unwrap();
        let stop = Stop::default();
        match parked.take(&stop) {
            Some(mut connection) if granted == 2 => assert_eq!(connection.read(2).unwrap(), "x"),
            kept => assert!(kept.is_none() && granted == 1, "{granted}"),
        }
        // One that is read stays.
        if granted == 1 {
            assert!(matches!(get().map(drop), Err(Fault::Full)));
        }
        drop(other);
        assert_eq!(count(&accepted), 2);
        accepted.lock().unwrap().clear();
    }
}
