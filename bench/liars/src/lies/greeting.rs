//! Lies of a far side before a copy begins: through the channel of ssh, and at the ports of both ends.

use super::sender::all as senders;
use super::words::CONTROL;
use super::{Asked, Ends, Lie, find, lie};
use crate::door::{Door, Far};
use crate::peer::Peer;
use hikyaku_crypto::Identity;
use hikyaku_reach::{Greeting, Hello, Speaks, Start, Versions};
use std::io::{self, BufRead, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::thread;
use std::time::Duration;

use Asked::Archive;
use Ends::With;

/// A far side, whatever its channel is.
pub type Any = Far<Box<dyn BufRead>, Box<dyn Write>>;

/// How a lie is told. Gives what must stay open.
pub type Tell = fn(&mut Any) -> io::Result<Option<(Peer, Door)>>;

/// How the far side's lines begin.
const MARK: &str = "\u{1}hikyaku-serve ";

/// All of them.
pub fn all() -> Vec<Lie<Tell>> {
    vec![
        lie("gone", Archive, With(6), (|_| Ok(None)) as Tell),
        lie("chatter", Archive, With(6), |far| {
            far.print(CONTROL.repeat(100).as_bytes());
            Ok(None)
        }),
        lie("endless-chatter", Archive, With(6), |far| {
            while far.output.write_all(CONTROL.repeat(1000).as_bytes()).is_ok() {}
            Ok(None)
        }),
        lie("another-version", Archive, With(2), |far| {
            let mut speaks = Speaks::ours();
            speaks.protocol = Versions::new(u32::MAX, u32::MAX).expect("a range of one");
            far.print(&Greeting { version: CONTROL.repeat(100), speaks }.line());
            Ok(None)
        }),
        lie("greeting-that-is-none", Archive, With(2), |far| {
            far.print(format!("{MARK}{{\"version\":{CONTROL}\n").as_bytes());
            Ok(None)
        }),
        lie("endless-greeting", Archive, With(2), |far| {
            far.print(format!("{MARK}{}", "{\"version\":[".repeat(1 << 20)).as_bytes());
            Ok(None)
        }),
        lie("refusal", Archive, With(2), |far| {
            far.begin()?;
            far.print(&Hello::refusal(&CONTROL.repeat(2000), Some(&CONTROL.repeat(2000))));
            Ok(None)
        }),
        lie("no-hello", Archive, With(5), |far| {
            far.begin()?;
            thread::sleep(Duration::from_secs(20));
            Ok(None)
        }),
        lie("hello-that-is-none", Archive, With(2), |far| {
            far.begin()?;
            far.print(format!("{MARK}{{\"addresses\":[1e999],\"door\":null}}\n").as_bytes());
            Ok(None)
        }),
        lie("another-port", Archive, With(2), |far| told(far, |hello, _| hello.door.port = 22)),
        lie("port-nought", Archive, With(2), |far| told(far, |hello, _| hello.door.port = 0)),
        lie("key-that-is-none", Archive, With(2), |far| {
            told(far, |hello, _| hello.door.key = CONTROL.to_owned())
        }),
        lie("secret-that-is-none", Archive, With(2), |far| {
            told(far, |hello, _| hello.door.secret = "7".repeat(9000))
        }),
        lie("another-key", Archive, With(5), |far| {
            told(far, |hello, _| {
                let other = Identity::generate().map(|identity| identity.fingerprint().to_string());
                hello.door.key = other.unwrap_or_default();
            })
        }),
        lie("no-window", Archive, With(0), |far| told(far, |hello, _| hello.door.window = 0)),
        lie("window-of-all", Archive, With(0), |far| {
            told(far, |hello, _| hello.door.window = u64::MAX)
        }),
        lie("addresses", Archive, With(0), |far| {
            told(far, |hello, _| {
                let odd = [Ipv4Addr::BROADCAST, Ipv4Addr::UNSPECIFIED, Ipv4Addr::new(224, 0, 0, 1)];
                let odd = odd.into_iter().map(IpAddr::from);
                let all_hosts = IpAddr::from(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1));
                hello.addresses = odd.chain(vec![all_hosts; 300]).collect();
            })
        }),
        lie("hello-twice", Archive, With(0), |far| {
            told(far, |hello, far| {
                far.print(&hello.line());
                far.print(CONTROL.repeat(5000).as_bytes());
            })
        }),
        lie("noise-at-the-door", Archive, With(0), |far| {
            let start = far.begin()?;
            noise(&start);
            greeted(far, &start, |_, _| ())
        }),
        lie("strangers-at-the-door", Archive, With(0), |far| {
            let start = far.begin()?;
            let door = Door::open(start.ports)?;
            let near = start.door.clone().ok_or(io::ErrorKind::InvalidData)?;
            for _ in 0..20 {
                let stranger = Identity::generate().map_err(io::Error::other)?;
                // It is sent away when its key is seen.
                door.dial(&near, &stranger);
            }
            greeted(far, &start, |_, _| ())
        }),
    ]
}

/// Tells all but one thing as it is.
fn told(
    far: &mut Any,
    change: impl FnOnce(&mut Hello, &mut Any),
) -> io::Result<Option<(Peer, Door)>> {
    let start = far.begin()?;
    greeted(far, &start, change)
}

fn greeted(
    far: &mut Any,
    start: &Start,
    change: impl FnOnce(&mut Hello, &mut Any),
) -> io::Result<Option<(Peer, Door)>> {
    let door = Door::open(start.ports)?;
    let addresses = vec![Ipv4Addr::LOCALHOST.into()];
    let mut hello = Hello { addresses, door: door.invitation.clone() };
    change(&mut hello, far);
    far.print(&hello.line());
    let mut peer = far.await_near(start, &door)?;
    if let Some(truth) = find(senders(), "truth") {
        truth(&mut peer);
    }
    Ok(Some((peer, door)))
}

/// Datagrams that are none of ours, and some that nearly are.
fn noise(start: &Start) {
    let (Some(door), Ok(socket)) = (&start.door, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))) else {
        return;
    };
    let there = (Ipv4Addr::LOCALHOST, door.port);
    let mut bytes = [0; 1400];
    for _ in 0..100_000 {
        fastrand::fill(&mut bytes);
        let length = fastrand::usize(..bytes.len());
        let _ = socket.send_to(&bytes[..length], there);
    }
}
