//! A server that breaks the protocol causes an error, and no other effect.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod server;

use hikyaku_gridftp::{
    Channel, DataHosts, FtpError, Kind, Login, Part, Plan, Progress, Rename, Server, Settings,
    Store, Transferred, Wanted,
};
use server::{FIRST_OFFSET, Lie, byte, start};
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PART: Part<'_> = Part { path: b"/f", offset: FIRST_OFFSET, length: 100_000 };

fn open(address: SocketAddr) -> Result<Channel, FtpError> {
    let host = address.ip().to_string();
    let server = Server { host, port: address.port(), login: Login::Anonymous };
    // An honest server answers at once.
    let settings = Settings { patience: Duration::from_secs(5), ..Settings::default() };
    Channel::open(&server, &settings)
}

/// Downloads the part through `n` connections. Bytes outside of it are a failure of the test.
fn get(channel: &mut Channel, n: u32) -> Result<(Transferred, Vec<u8>), FtpError> {
    let bytes = Mutex::new(vec![0; PART.length as usize]);
    let counted = AtomicU64::new(0);
    let done = channel.get(&PART, n, &counted, |offset, piece| {
        let at = offset.checked_sub(PART.offset).expect("not before the part") as usize;
        bytes.lock().unwrap()[at..at + piece.len()].copy_from_slice(piece);
        Ok(())
    })?;
    Ok((done, bytes.into_inner().unwrap()))
}

fn download(lie: Lie) -> Result<(), FtpError> {
    get(&mut open(start(lie))?, 2).map(drop)
}

#[test]
fn an_honest_server_sends_parts_over_the_same_connections() {
    let mut channel = open(start(Lie::None)).unwrap();
    for _ in 0..3 {
        let (done, bytes) = get(&mut channel, 2).unwrap();
        assert_eq!(done.connections, 2);
        let want: Vec<u8> = (PART.offset..PART.offset + PART.length).map(byte).collect();
        assert!(bytes == want, "other bytes");
    }
    assert_eq!(get(&mut channel, 5).unwrap().0.connections, 5, "and over others");
}

/// Three parts, of which two are asked for at once, and the last over other connections.
struct Three<'a> {
    store: Arc<Store<'a>>,
    asked: u64,
    done: Vec<Transferred>,
}

impl<'a> Plan<'a, Arc<Store<'a>>> for Three<'a> {
    fn next(&mut self, _: Option<&Progress>) -> Option<Wanted<'a, Arc<Store<'a>>>> {
        let under_way = self.asked - self.done.len() as u64;
        if self.asked == 3 || under_way == 2 {
            return None;
        }
        let offset = PART.offset + self.asked * PART.length;
        let connections = if self.asked == 2 { 5 } else { 2 };
        self.asked += 1;
        Some(Wanted { part: Part { offset, ..PART }, connections, with: Arc::clone(&self.store) })
    }

    fn done(&mut self, done: &Transferred) {
        self.done.push(*done);
    }
}

#[test]
fn the_next_part_is_asked_for_before_the_last_one_ends() {
    let bytes = Mutex::new(vec![0; 3 * PART.length as usize]);
    let store: Arc<Store<'_>> = Arc::new(|offset, piece: &[u8]| {
        let at = (offset - PART.offset) as usize;
        bytes.lock().unwrap()[at..at + piece.len()].copy_from_slice(piece);
        Ok(())
    });
    let mut plan = Three { store, asked: 0, done: Vec::new() };
    let mut channel = open(start(Lie::WaitsForNext)).unwrap();
    let begin = Instant::now();
    channel.download(&mut plan, &AtomicU64::new(0)).unwrap();
    let elapsed = begin.elapsed();
    let connections: Vec<_> = plan.done.iter().map(|done| done.connections).collect();
    assert_eq!(connections, [2, 2, 5]);
    let sum: Duration = plan.done.iter().map(|done| done.elapsed).sum();
    assert!(sum <= elapsed, "the times of the parts overlap: {:?}", plan.done);
    assert!(channel.is_in_step());
    let want: Vec<u8> = (PART.offset..PART.offset + 3 * PART.length).map(byte).collect();
    assert!(*bytes.lock().unwrap() == want, "other bytes");
}

#[test]
fn each_lie_is_named() {
    let cases = [
        (Lie::OtherProtocol, "is this an FTP server"),
        (Lie::EndlessGreeting, "a line of more than"),
        (Lie::EndlessFeatures, "a reply of more than"),
        (Lie::BlockBeyond, "not asked for"),
        (Lie::BlockOverflow, "makes no sense"),
        (Lie::BlockTwice, "the same bytes twice"),
        (Lie::BlockErrors, "suspects errors"),
        (Lie::HalfPart, "before all of it was sent"),
        (Lie::EndMillion, "more data connections than are possible"),
        (Lie::EndTwice, "the end of a part twice"),
        (Lie::CutBlock, "a data connection is lost"),
        (Lie::OnlyWords, "nothing has come"),
        (Lie::NoLastReply, "the control connection is lost"),
        (Lie::Refuses, "refuses ERET: 550 no such file"),
    ];
    for (lie, want) in cases {
        let error = download(lie).expect_err(&format!("{lie:?}")).to_string();
        assert!(error.contains(want), "{lie:?}: {error}");
    }
}

#[test]
fn more_connections_than_asked_for_end_the_transfer() {
    let error = download(Lie::MoreConnections).unwrap_err().to_string();
    assert!(error.contains("more data connections than asked for"), "{error}");
}

#[test]
fn a_block_beyond_the_part_ends_the_transfer() {
    let mut channel = open(start(Lie::BlockBeyond)).unwrap();
    assert!(matches!(get(&mut channel, 1), Err(FtpError::Lie(_))));
}

#[test]
fn names_of_a_listing_that_lead_elsewhere_cannot_be_used() {
    let entries = open(start(Lie::None)).unwrap().list(b"/d/").unwrap();
    let names: Vec<_> = entries.iter().map(|entry| entry.name.clone().unwrap()).collect();
    assert_eq!([names[0].as_bytes(), names[1].as_bytes()], [b"a", b"b"]);
    assert_eq!((entries[0].facts.kind, entries[1].facts.kind), (Kind::File, Kind::Directory));
    let entries = open(start(Lie::BadNames)).unwrap().list(b"/d/").unwrap();
    assert!(entries.len() == 3 && entries.iter().all(|entry| entry.name.is_err()));
    let error = open(start(Lie::NoListing)).unwrap().list(b"/d/").unwrap_err();
    assert!(error.to_string().contains("cannot be read"), "{error}");
}

#[test]
fn an_upload_is_not_sent_to_another_host() {
    // 192.0.2.1 is of no host (RFC 5737). The server's own port 2313 refuses at once, or takes the connection.
    let put = |lie| {
        let mut channel = open(start(lie)).unwrap();
        channel.put(&PART, 1, &AtomicU64::new(0), |_, _| Ok(())).unwrap_err()
    };
    match put(Lie::OtherHost) {
        FtpError::Connect { address, told, .. } => {
            assert_eq!(address, "127.0.0.1:2313".parse().unwrap());
            assert_eq!(told, Some("192.0.2.1:2313".parse().unwrap()));
        }
        error => panic!("{error}"),
    }
    assert!(put(Lie::NoAddress).to_string().contains("an address that cannot be read"));
}

#[test]
fn a_name_that_the_server_would_take_for_another_one_is_not_sent() {
    let name = "/d/\u{65e5}\u{672c}.txt".as_bytes();
    type Ask = fn(&mut Channel, &[u8]) -> Result<(), FtpError>;
    let asks: [Ask; 9] = [
        |channel, name| channel.facts(name).map(drop),
        |channel, name| channel.make_dir(name).map(drop),
        |channel, name| channel.remove(name),
        |channel, name| {
            channel.rename(&Rename { from: name, to: b"/d/a", mode: None, modified: None })
        },
        |channel, name| {
            channel.rename(&Rename { from: b"/d/a", to: name, mode: None, modified: None })
        },
        |channel, name| channel.checksum("md5", name, 0, 1).map(drop),
        |channel, name| channel.list(name).map(drop),
        |channel, name| {
            let part = Part { path: name, ..PART };
            channel.get(&part, 1, &AtomicU64::new(0), |_, _| Ok(())).map(drop)
        },
        |channel, name| {
            let part = Part { path: name, ..PART };
            channel.put(&part, 1, &AtomicU64::new(0), |_, _| Ok(())).map(drop)
        },
    ];
    for (number, ask) in asks.into_iter().enumerate() {
        let mut channel = open(start(Lie::DropsNames)).unwrap();
        let error = ask(&mut channel, name).unwrap_err();
        assert!(matches!(error, FtpError::LosesName { .. }), "{number}: {error}");
        assert!(channel.facts(b"/d/").unwrap().is_some(), "{number}: other names are taken");
    }
    let mut channel = open(start(Lie::KeepsNames)).unwrap();
    assert_eq!(channel.facts(name).unwrap(), None);
    assert!(channel.facts("/d/\u{e9}".as_bytes()).unwrap().is_some());
}

#[test]
fn a_data_connection_of_another_host_is_closed_and_told() {
    let error = download(Lie::OtherSource).unwrap_err();
    let FtpError::Stranger { from, server, .. } = &error else { panic!("{error}") };
    assert_eq!([from.to_string(), server.to_string()], ["127.0.0.2", "127.0.0.1"]);
    let (address, settings) = (start(Lie::OtherSource), DataHosts::Any);
    let settings = Settings { data_hosts: settings, ..Settings::default() };
    let (host, port) = (address.ip().to_string(), address.port());
    let server = Server { host, port, login: Login::Anonymous };
    get(&mut Channel::open(&server, &settings).unwrap(), 2).unwrap();
}

#[test]
fn a_path_with_a_line_end_is_not_sent() {
    let mut channel = open(start(Lie::None)).unwrap();
    for path in [&b"a\nDELE b"[..], b"a\r", b"a\0"] {
        assert!(matches!(channel.remove(path), Err(FtpError::BadPath)));
    }
}

#[test]
fn an_error_of_the_caller_ends_the_transfer() {
    let mut channel = open(start(Lie::None)).unwrap();
    let full = |_, _: &[u8]| Err(std::io::ErrorKind::StorageFull.into());
    let error = channel.get(&PART, 2, &AtomicU64::new(0), full).unwrap_err();
    assert!(matches!(error, FtpError::Local(_)), "{error}");
}

#[test]
fn a_server_that_cannot_connect_to_this_end_is_asked_in_stream_mode() {
    let (address, other) = (start(Lie::CannotConnect), start(Lie::CannotConnect));
    let settings = Settings { patience: Duration::from_secs(20), ..Settings::default() };
    let open = |address: SocketAddr| {
        let host = address.ip().to_string();
        let server = Server { host, port: address.port(), login: Login::Anonymous };
        Channel::open(&server, &settings).unwrap()
    };
    let error = get(&mut open(address), 2).unwrap_err();
    assert!(matches!(error, FtpError::NotReached(_)) && error.may_pass(), "{error}");
    // All channels with these settings know it.
    let mut channel = open(other);
    for _ in 0..2 {
        let (done, bytes) = get(&mut channel, 2).unwrap();
        let want: Vec<u8> = (PART.offset..PART.offset + PART.length).map(byte).collect();
        assert!(done.connections == 1 && bytes == want, "other bytes");
    }
    assert!(channel.is_out_of_reach());
}
