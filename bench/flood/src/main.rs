//! First packets from addresses that are not the sender's: what a listener has to bear whose address is known.
//!
//! Bench `flood` runs it in a namespace that it made.
#![forbid(unsafe_code)]

use anyhow::{Context, Result, ensure};
use clap::Parser;
use hikyaku_crypto::{ClientCredentials, Fingerprint, PeerName, Trust, random_u64};
use hikyaku_proto::{ClientIds, Config, Connection, ConnectionId};
use hikyaku_units::Instant as Moment;
use serde::Serialize;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// First packets for a hikyaku listener, from addresses that are feigned.
#[derive(Parser)]
struct Args {
    /// The listener
    #[arg(long)]
    to: SocketAddr,
    /// First packets a second
    #[arg(long)]
    rate: f64,
    /// For how long
    #[arg(long)]
    seconds: f64,
    /// The first of the addresses that are feigned; this host must own them all
    #[arg(long)]
    from: Ipv4Addr,
}

/// What came of it.
#[derive(Serialize)]
struct Flooded {
    packets: u64,
    bytes: u64,
    seconds: f64,
    /// Bytes that came back.
    answered: u64,
}

/// Addresses that are feigned.
const SOURCES: u32 = 200;
/// First flights that differ in every id. A listener that keeps nothing of them cannot know that they come
/// again.
const FLIGHTS: usize = 2000;
/// How often what is due is sent.
const TICK: Duration = Duration::from_millis(1);
/// What a sender that was not scheduled makes good for, in ticks.
const BEHIND: f64 = 5.0;
/// How many packets are sent between looks at what came back; nothing that divides the number of sockets.
const LOOK: u64 = 49;

/// Floods, and prints what was sent as JSON.
fn main() -> Result<()> {
    let args = Args::parse();
    ensure!(args.rate > 0.0 && args.seconds > 0.0, "nothing to send");
    println!("{}", serde_json::to_string(&flood(&args)?)?);
    Ok(())
}

fn flood(args: &Args) -> Result<Flooded> {
    let packets = flights()?;
    let sources = sources(args)?;
    let mut done = Flooded { packets: 0, bytes: 0, seconds: 0.0, answered: 0 };
    let mut room = [0; 2048];
    let began = Instant::now();
    let mut credit = 0.0;
    let mut last = 0.0;
    while done.seconds < args.seconds {
        sleep(TICK);
        done.seconds = began.elapsed().as_secs_f64();
        let most = BEHIND * TICK.as_secs_f64() * args.rate;
        credit = f64::min(credit + (done.seconds - last) * args.rate, most);
        last = done.seconds;
        while credit >= 1.0 {
            credit -= 1.0;
            let packet = &packets[done.packets as usize % packets.len()];
            let socket = &sources[done.packets as usize % sources.len()];
            // A full queue of the host is no reason to stop: the count says what left.
            if let Ok(sent) = socket.send(packet) {
                done.bytes += sent as u64;
            }
            done.packets += 1;
            if done.packets.is_multiple_of(LOOK) {
                while let Ok(came) = socket.recv(&mut room) {
                    done.answered += came as u64;
                }
            }
        }
    }
    Ok(done)
}

/// The packets of first flights as honest clients would send them.
fn flights() -> Result<Vec<Vec<u8>>> {
    let peer = PeerName::new("example.org", 4433)?;
    let credentials = ClientCredentials::new(Trust::Pinned(Fingerprint::of(b"somebody")));
    let now = Moment::from_millis(1000);
    let (mut packets, mut out) = (Vec::new(), Vec::new());
    for _ in 0..FLIGHTS {
        let [local, destination] = [(); 2].map(|()| ConnectionId(random_u64()));
        let config = Config::default();
        let params = Connection::local_params(&config, local, destination).encode();
        let session = Box::new(credentials.session(&peer, params)?.0);
        let ids = ClientIds { local, destination, seed: random_u64() };
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let mut client = Connection::client(now, config, session, nowhere, ids);
        while let Some(transmit) = client.poll_transmit(now, &mut out) {
            packets.extend(out[..transmit.len].chunks(transmit.segment).map(<[u8]>::to_vec));
        }
    }
    Ok(packets)
}

/// A socket of each address.
fn sources(args: &Args) -> Result<Vec<UdpSocket>> {
    let bound = |address: Ipv4Addr| -> std::io::Result<UdpSocket> {
        let socket = UdpSocket::bind((address, 0))?;
        socket.connect(args.to)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    let first = u32::from(args.from);
    let addresses = (first..first + SOURCES).map(Ipv4Addr::from);
    addresses.map(|a| bound(a).with_context(|| format!("cannot send from {a}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_is_one_that_a_listener_has_to_look_at() {
        let listener = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let args = Args {
            to: listener.local_addr().unwrap(),
            rate: 500.0,
            seconds: 0.2,
            from: Ipv4Addr::new(127, 9, 0, 1),
        };
        let sent = flood(&args).unwrap();
        assert!(sent.packets > 0 && sent.answered == 0);
        let mut room = [0; 2048];
        let mut sources = std::collections::BTreeSet::new();
        for _ in 0..sent.packets.min(50) {
            let (len, from) = listener.recv_from(&mut room).unwrap();
            let (header, _) = hikyaku_wire::LongHeader::decode(&room[..len]).unwrap();
            assert_eq!(header.kind, hikyaku_wire::LongType::Initial);
            assert!(len >= hikyaku_wire::MIN_INITIAL_LEN);
            sources.insert(from);
        }
        assert!(sources.len() > 1);
    }
}
