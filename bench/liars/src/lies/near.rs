//! Lies of a near side to `hikyaku serve`, before the engine begins or beside it.

use super::words::CONTROL;
use super::{Asked, Ends, Lie, lie};
use crate::door::{Door, PORTS, greeted, near, start};
use crate::order::{Options, Order};
use crate::peer::Peer;
use hikyaku_crypto::Identity;
use hikyaku_net::blocking::block_on;
use hikyaku_reach::{Invitation, Start};
use std::io::{BufRead, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::Duration;

use Asked::Archive;
use Ends::{Somehow, With};

/// The channel: what goes to the far side, and what comes from it.
pub type Channel<'a> = (&'a mut dyn Write, &'a mut dyn BufRead);

/// What must stay open while the far side comes to its end.
pub type Held = Vec<(Option<Peer>, Door)>;

/// How a lie is told.
pub type Tell = fn(Channel<'_>) -> Held;

/// All of them. The far side ends with 0 when the near side has heard of its error, or when it has gone.
pub fn all() -> Vec<Lie<Tell>> {
    [starts(), orders(), beside()].into_iter().flatten().collect()
}

/// What is said first.
fn starts() -> Vec<Lie<Tell>> {
    vec![
        lie("start-garbage", Archive, With(2), |(out, _)| said(out, &[0xff; 20_000])),
        lie("start-of-no-end", Archive, With(2), |(out, _)| said(out, &[b'\n'; 2000])),
        lie("start-deep", Archive, With(2), |(out, _)| said(out, &[b'['; 15_000])),
        lie("start-and-gone", Archive, With(2), |(out, _)| said(out, b"")),
        lie("ports-backwards", Archive, With(2), |c| {
            started(c, |start| start.ports = (u16::MAX, 1))
        }),
        lie("ports-of-all", Archive, With(2), |c| started(c, |start| start.ports = (0, u16::MAX))),
        lie("key-that-is-none", Archive, With(2), |c| {
            started(c, |start| start.key = CONTROL.to_owned())
        }),
        lie("cipher-that-is-none", Archive, With(2), |c| {
            started(c, |start| start.tuning.cipher = Some(CONTROL.to_owned()))
        }),
        lie("policy-that-is-none", Archive, With(2), |c| {
            started(c, |start| start.tuning.policy = Some("fixed:1e999".to_owned()))
        }),
        lie("tuned-to-nought", Archive, With(2), |c| started(c, |start| tune(start, 0))),
        lie("tuned-to-all", Archive, With(2), |c| started(c, |start| tune(start, u64::MAX))),
        lie("door-at-another-port", Archive, With(2), |c| {
            started(c, |start| {
                let (key, secret) = (start.key.clone(), "0".repeat(64));
                start.door = Some(Invitation { port: 22, key, secret, window: 0 });
            })
        }),
        lie("tuned-to-nought-and-used", Archive, Somehow, |c| tuned_and_used(c, 0)),
        lie("tuned-to-all-and-used", Archive, Somehow, |c| tuned_and_used(c, u64::MAX)),
    ]
}

/// Orders.
fn orders() -> Vec<Lie<Tell>> {
    vec![
        lie("another-key", Archive, With(2), |(out, input)| {
            let Ok(door) = Door::open(PORTS) else { return Vec::new() };
            let Some(hello) = greeted(out, input, &start(&door)) else { return Vec::new() };
            for _ in 0..20 {
                let stranger = Identity::generate().ok();
                stranger.and_then(|stranger| door.dial(&hello.door, &stranger));
            }
            Vec::new()
        }),
        // spec: copy-order-1
        lie("order-garbage", Archive, With(2), |c| {
            ordered(c, |peer| {
                peer.raw([&9_u32.to_le_bytes()[..], &[0xff; 9]].concat());
            })
        }),
        lie("order-of-no-end", Archive, With(2), |c| {
            ordered(c, |peer| {
                peer.raw(vec![0xff; 1 << 20]);
            })
        }),
        lie("order-in-endless-pieces", Archive, With(2), |c| {
            ordered(c, |peer| {
                let piece = hikyaku_transfer::framed(&vec![1; 1 << 20]);
                let _ = (0..1000).all(|_| peer.raw(piece.clone()));
            })
        }),
        lie("order-and-gone", Archive, With(2), |c| {
            ordered(c, |peer| {
                peer.connection.close(hikyaku_net::AppCode::new(u64::MAX >> 2), CONTROL)
            })
        }),
        lie("order-times-order", Archive, With(0), |c| {
            ordered(c, |peer| {
                let options = Options { files: vec![b"a".to_vec(); 200_000], ..Options::archive() };
                peer.order(&Order::Get { sources: vec![b"b".to_vec(); 200_000], options });
            })
        }),
        lie("order-of-odd-paths", Archive, With(0), |c| {
            ordered(c, |peer| {
                let odd: [&[u8]; 6] =
                    [b"\0", b"", b"~nobody\xff/x", b"/proc/self/mem", b"{{{{", b"a\0b"];
                let sources = odd.map(<[u8]>::to_vec).to_vec();
                peer.order(&Order::Get { sources, options: Options::archive() });
            })
        }),
        lie("order-of-patterns", Archive, With(2), |c| {
            ordered(c, |peer| {
                let mut options = Options::archive();
                options.exclude =
                    vec!["{a,b}{c,d}".repeat(2000), "[".repeat(9999), "*a".repeat(5000)];
                peer.order(&Order::Get { sources: vec![b"/nothing".to_vec()], options });
            })
        }),
        lie("order-of-a-target-with-zero", Archive, With(0), |c| {
            ordered(c, |peer| {
                peer.order(&Order::Put { target: b"a\0b".to_vec(), options: Options::archive() });
            })
        }),
    ]
}

/// What comes beside an order, or in its place.
fn beside() -> Vec<Lie<Tell>> {
    vec![
        lie("noise-in-the-channel", Archive, With(2), |(out, input)| {
            let Ok(door) = Door::open(PORTS) else { return Vec::new() };
            if greeted(out, input, &start(&door)).is_some() {
                let mut datagram = vec![0; 2 + 65_535];
                for _ in 0..500 {
                    fastrand::fill(&mut datagram);
                    datagram[..2].copy_from_slice(&fastrand::u16(..).to_le_bytes());
                    let length = 2 + usize::from(u16::from_le_bytes([datagram[0], datagram[1]]));
                    let _ = out.write_all(&datagram[..length]);
                }
            }
            Vec::new()
        }),
        lie("noise-at-the-door", Archive, With(2), |(out, input)| {
            let (Ok(door), Ok(socket)) =
                (Door::open(PORTS), UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)))
            else {
                return Vec::new();
            };
            let Some(hello) = greeted(out, input, &start(&door)) else { return Vec::new() };
            let mut bytes = [0; 1400];
            for _ in 0..50_000 {
                fastrand::fill(&mut bytes);
                let _ = socket.send_to(&bytes, (Ipv4Addr::LOCALHOST, hello.door.port));
            }
            Vec::new()
        }),
        lie("connections-that-say-nothing", Archive, With(2), |(out, input)| {
            let Ok(door) = Door::open(PORTS) else { return Vec::new() };
            let Some(hello) = greeted(out, input, &start(&door)) else { return Vec::new() };
            let all: Vec<_> =
                (0..200).map_while(|_| door.dial(&hello.door, &door.identity)).collect();
            thread::sleep(Duration::from_millis(500));
            drop(all);
            Vec::new()
        }),
        lie("orders-in-streams", Archive, Somehow, |c| {
            ordered(c, |peer| {
                for _ in 0..15 {
                    let Ok(stream) = block_on(peer.connection.open_stream()) else { return };
                    let mut other = Peer::new(peer.connection.clone(), stream);
                    other.order(&Order::Put {
                        target: b"/hikyaku-was-here".to_vec(),
                        options: Options::archive(),
                    });
                    if !other.flood(200, |_| (vec![7_u8; 100_000], Vec::new())) {
                        return;
                    }
                }
            })
        }),
    ]
}

fn said(out: &mut dyn Write, bytes: &[u8]) -> Held {
    let _ = out.write_all(bytes).and_then(|()| out.flush());
    Vec::new()
}

fn tune(start: &mut Start, number: u64) {
    let tuning = &mut start.tuning;
    tuning.rate = Some(number);
    tuning.window = Some(number);
    tuning.buffer = Some(number);
    tuning.timeout = Some(number);
}

/// A start in which one thing is a lie; then the near side is gone.
fn started((out, input): Channel<'_>, change: impl FnOnce(&mut Start)) -> Held {
    let Ok(door) = Door::open(PORTS) else { return Vec::new() };
    let mut said = start(&door);
    change(&mut said);
    greeted(out, input, &said);
    Vec::new()
}

/// The far side is tuned to absurd figures, and then given an order that makes sense.
fn tuned_and_used((out, input): Channel<'_>, number: u64) -> Held {
    let Ok(door) = Door::open(PORTS) else { return Vec::new() };
    let mut said = start(&door);
    tune(&mut said, number);
    let Some(hello) = greeted(out, input, &said) else { return Vec::new() };
    let Some(connection) = door.dial(&hello.door, &door.identity) else { return Vec::new() };
    let Ok(stream) = block_on(connection.open_stream()) else { return Vec::new() };
    let mut peer = Peer::new(connection, stream);
    peer.order(&Order::Get { sources: vec![b"/nothing".to_vec()], options: Options::archive() });
    peer.hear();
    vec![(Some(peer), door)]
}

/// An order that is a lie.
fn ordered((out, input): Channel<'_>, tell: impl FnOnce(&mut Peer)) -> Held {
    let Ok(door) = Door::open(PORTS) else { return Vec::new() };
    let Some(hello) = greeted(out, input, &start(&door)) else {
        return Vec::new();
    };
    let Some(connection) = door.dial(&hello.door, &door.identity) else { return Vec::new() };
    let Ok(stream) = block_on(connection.open_stream()) else { return Vec::new() };
    let mut peer = Peer::new(connection, stream);
    tell(&mut peer);
    vec![(Some(peer), door)]
}

/// A lie of the engine, told to a far side that was given an honest order.
pub fn with_order(channel: Channel<'_>, order: &Order, tell: super::sender::Tell) -> Held {
    let (out, input) = channel;
    let Some((mut peer, door)) = near(out, input, order) else {
        return Vec::new();
    };
    tell(&mut peer);
    vec![(Some(peer), door)]
}
