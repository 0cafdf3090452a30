//! Tests with OpenSSH's server, and with one that follows a script.

use super::*;
use crate::extensions::Extension;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SERVER: &str = "/usr/lib/openssh/sftp-server";

/// A client of OpenSSH's server, if that is installed. The server ends with the pipe.
fn real() -> Option<(Client, Child)> {
    if !Path::new(SERVER).exists() {
        println!("SKIPPED: no {SERVER}");
        return None;
    }
    let mut child =
        Command::new(SERVER).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    Some((Client::start(output, input).unwrap(), child))
}

/// A client of a server that says `said` after its version, whatever is asked.
fn scripted(said: &[u8]) -> Client {
    let (near, mut far) = UnixStream::pair().unwrap();
    far.write_all(&[0, 0, 0, 5, 2, 0, 0, 0, 3]).unwrap();
    let said = said.to_vec();
    thread::spawn(move || {
        let mut greeting = [0; 9];
        far.read_exact(&mut greeting).unwrap();
        // The first byte of a request: what is said then has a request to answer.
        far.read_exact(&mut [0]).unwrap();
        far.write_all(&said).unwrap();
        let mut rest = Vec::new();
        let _ = far.read_to_end(&mut rest);
    });
    Client::start(near.try_clone().unwrap(), near).unwrap()
}

#[test]
fn files_are_written_and_read_with_many_requests_under_way() {
    let Some((client, mut child)) = real() else { return };
    let dir = std::env::temp_dir().join(format!("hikyaku-sftp-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join("a").display().to_string().into_bytes();
    let block = |n: u64| vec![n as u8; 1000];
    let flags = Request::WRITE | Request::CREATE | Request::EXCLUSIVE;
    let open = Request::Open { path: &path, flags, attributes: Attributes::default() };
    let file = client.open(&open).unwrap();
    assert!(client.open(&open).is_err(), "a file was made twice");
    let tickets: Vec<Ticket> = (0..1_000)
        .map(|n| {
            let data = block(n);
            let write = Request::Write { handle: file.bytes(), offset: n * 1000, data: &data };
            client.ask(&write)
        })
        .collect();
    tickets.into_iter().for_each(|ticket| client.is_done(ticket).unwrap());
    client.close(&file).unwrap();
    let attributes = client.attributes(&Request::Stat(&path)).unwrap();
    assert_eq!(attributes.size, Some(1_000_000));
    let open =
        Request::Open { path: &path, flags: Request::READ, attributes: Attributes::default() };
    let file = client.open(&open).unwrap();
    let tickets: Vec<Ticket> = (0..1_001)
        .map(|n| {
            client.ask(&Request::Read { handle: file.bytes(), offset: n * 1000, length: 1000 })
        })
        .collect();
    for (n, ticket) in (0..).zip(tickets) {
        let wanted = if n < 1_000 { block(n) } else { Vec::new() };
        assert!(client.data(ticket, 1000).unwrap() == wanted, "block {n}");
    }
    client.close(&file).unwrap();
    let folder = dir.display().to_string().into_bytes();
    let listing = client.open(&Request::OpenDir(&folder)).unwrap();
    let mut names = Vec::new();
    while let Some(entries) = client.entries(&listing).unwrap() {
        names.extend(entries.into_iter().map(|entry| entry.name));
    }
    names.sort();
    assert_eq!(names, [b".".to_vec(), b"..".to_vec(), b"a".to_vec()]);
    assert!(client.attributes(&Request::LStat(b"/no/such")).unwrap_err().is_absent());
    assert!(client.version().has(Extension::PosixRename));
    drop(client);
    let _ = child.kill();
    let _ = child.wait();
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn what_was_not_asked_for_is_an_error() {
    let string = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes(), bytes].concat();
    let framed = |body: Vec<u8>| [&(body.len() as u32).to_be_bytes()[..], &body].concat();
    let data = |id: u8, bytes: &[u8]| framed([&[103, 0, 0, 0, id][..], &string(bytes)].concat());
    let read = Request::Read { handle: b"h", offset: 0, length: 3 };
    let longer = scripted(&data(0, b"abcd"));
    let ticket = longer.ask(&read);
    assert_eq!(longer.data(ticket, 3), Err(Failed::Odd));
    let other = scripted(&data(7, b"abc"));
    let ticket = other.ask(&read);
    assert!(matches!(other.data(ticket, 3), Err(Failed::Broken(why)) if why.contains("not made")));
    let noise = scripted(b"Welcome to the machine\n");
    let ticket = noise.ask(&read);
    assert!(matches!(noise.data(ticket, 3), Err(Failed::Broken(why)) if why.contains("not SFTP")));
    let endless = scripted(&data(0, &[7; 100_000]));
    let ticket = endless.ask(&read);
    assert!(matches!(endless.data(ticket, 3), Err(Failed::Broken(why)) if why.contains("longer")));
    let status = scripted(&data(0, b""));
    assert_eq!(status.done(&Request::Remove(b"a")), Err(Failed::Odd));
}

#[test]
fn answers_to_many_requests_come_in_their_order() {
    let Some((client, mut child)) = real() else { return };
    let paths = [&b"/"[..], b"/no/such", b"/proc", b"/proc/self/no"];
    let many = 3 * GROUP_MAX + 1;
    let requests: Vec<_> = (0..many).map(|n| Request::Stat(paths[n % paths.len()])).collect();
    let answers = client.all(&requests);
    assert_eq!(answers.len(), many);
    for (n, answer) in answers.into_iter().enumerate() {
        let is_there = n % 2 == 0;
        assert_eq!(answer.attributes().map_err(|error| error.is_absent()).is_ok(), is_there, "{n}");
    }
    assert!(client.all(&[]).is_empty());
    let _ = child.kill();
    let _ = child.wait();
    // What was not answered is a failure of its own.
    let lost = client.all(&requests[..2]);
    assert!(lost.into_iter().all(|answer| matches!(answer.done(), Err(Failed::Lost(_)))));
}

#[test]
fn who_waits_hears_of_the_end() {
    let (near, far) = UnixStream::pair().unwrap();
    let mut greeted = far.try_clone().unwrap();
    greeted.write_all(&[0, 0, 0, 5, 2, 0, 0, 0, 3]).unwrap();
    let client = Client::start(near.try_clone().unwrap(), near).unwrap();
    let ticket = client.ask(&Request::Stat(b"a"));
    drop((far, greeted));
    let lost = client.wait(ticket).unwrap_err();
    assert_eq!(lost.to_string(), "the SFTP connection is lost: the server has closed it");
    // The pipe is known to have ended: a later request does not wait either.
    assert!(matches!(client.done(&Request::Remove(b"a")), Err(Failed::Lost(_))));
}

#[test]
fn another_version_is_refused() {
    let (near, mut far) = UnixStream::pair().unwrap();
    far.write_all(&[0, 0, 0, 5, 2, 0, 0, 0, 6]).unwrap();
    let started = Client::start(near.try_clone().unwrap(), near);
    assert_eq!(started.err(), Some(Failed::Version(6)));
}
