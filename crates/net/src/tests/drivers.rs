//! Several drivers on one port, and several of one client.

use super::*;
use crate::command::Stray;
use crate::mailbox::Mailbox;
use hikyaku_udp::{Poller, RecvMeta, UdpSocket};

const BYTES: u64 = 3_000_000;

fn lab(drivers: u8, steering: Offload) -> Lab {
    let drivers = Drivers::Fixed(drivers.try_into().unwrap());
    let mut lab = Lab::with("127.0.0.1:0", |config| {
        config.endpoint.drivers = drivers;
        config.endpoint.socket.steering = steering;
    });
    let config = EndpointConfig { drivers, ..quiet() };
    lab.endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), config).unwrap();
    lab
}

/// Transfers over all of the connections at once, in both directions.
fn carry(connections: Vec<(Connection, Connection)>) {
    carry_bytes(connections, BYTES);
}

fn carry_bytes(connections: Vec<(Connection, Connection)>, bytes: u64) {
    let threads = connections.into_iter().map(|(client, server)| {
        thread::spawn(move || {
            let answering = thread::spawn(move || {
                block_on(async {
                    let (mut to, mut from) = server.accept_stream().await.unwrap().split();
                    assert_eq!(receive_pattern(&mut from).await.unwrap(), bytes);
                    send_pattern(&mut to, bytes).await;
                    // The connection stays until the client has all.
                    server.closed().await
                })
            });
            block_on(async {
                let (mut to, mut from) = client.open_stream().await.unwrap().split();
                send_pattern(&mut to, bytes).await;
                assert_eq!(receive_pattern(&mut from).await.unwrap(), bytes);
            });
            drop(client);
            answering.join().unwrap();
        })
    });
    let threads: Vec<_> = threads.collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn connections_spread_over_the_drivers_of_both_ends() {
    for drivers in [1, 2, 8] {
        let lab = lab(drivers, Offload::WhereSupported);
        assert_eq!(lab.endpoint.crew().loads(), [0]);
        let connections: Vec<_> = (0..drivers).map(|_| lab.connect()).collect();
        let one_each = vec![1; drivers.into()];
        // One that has just been made may count twice.
        eventually("each driver has one", || {
            lab.endpoint.crew().loads() == one_each
                && lab.listener.endpoint().crew().loads() == one_each
        });
        let more: Vec<_> = (0..drivers).map(|_| lab.connect()).collect();
        eventually("each driver has two", || {
            lab.endpoint.crew().loads() == vec![2; drivers.into()]
        });
        carry(connections.into_iter().chain(more).collect());
        eventually("their drivers forget them", || {
            lab.endpoint.crew().loads().iter().sum::<usize>() == 0
        });
        // The next one needs no further driver.
        let again = lab.connect();
        assert_eq!(lab.endpoint.crew().loads().len(), usize::from(drivers));
        carry(vec![again]);
    }
}

#[test]
fn many_clients_use_all_drivers_and_those_that_stop_hold_up_nobody() {
    let lab = lab(4, Offload::WhereSupported);
    let config = || EndpointConfig { drivers: Drivers::ONE, ..quiet() };
    let endpoints: Vec<_> = (0..64)
        .map(|_| Endpoint::bind("127.0.0.1:0".parse().unwrap(), config()).unwrap())
        .collect();
    let connections = endpoints.iter().map(|endpoint| {
        let client = block_on(endpoint.connect(lab.listener.local_addr(), lab.trusting())).unwrap();
        (client, block_on(lab.listener.accept()).unwrap())
    });
    let mut connections: Vec<_> = connections.collect();
    // Each client aims by chance: that one of four drivers has none of 64 is a matter of 10^-7.
    assert!(lab.listener.endpoint().crew().loads().iter().all(|&load| load > 0));
    // These streams are not read, and do not end.
    let stopped = connections.split_off(48);
    let fills = stopped.iter().map(|(client, _)| {
        let mut stream = block_on(client.open_stream()).unwrap().split().0;
        block_on(stream.write_chunk(patterned(0, 100_000))).unwrap();
        stream
    });
    let fills: Vec<_> = fills.collect();
    carry_bytes(connections, 500_000);
    drop((fills, stopped));
    eventually("all are forgotten", || {
        lab.listener.endpoint().crew().loads().iter().sum::<usize>() == 0
    });
}

#[test]
fn drivers_pass_on_what_the_kernel_gives_to_another() {
    let lab = lab(4, Offload::Off);
    // The aim is a driver, and the kernel chooses one by the addresses.
    let connections: Vec<_> = (0..8).map(|_| lab.connect()).collect();
    eventually("each driver of the server has two", || {
        lab.listener.endpoint().crew().loads() == [2; 4]
    });
    carry(connections);
}

#[test]
fn a_client_at_the_port_of_a_listener_is_found_by_its_driver() {
    let (one, other) = (lab(3, Offload::WhereSupported), lab(3, Offload::WhereSupported));
    let connect = || {
        let address = other.listener.local_addr();
        let client = block_on(one.listener.endpoint().connect(address, other.trusting())).unwrap();
        (client, block_on(other.listener.accept()).unwrap())
    };
    let connections: Vec<_> = (0..6).map(|_| connect()).collect();
    eventually("each driver has two", || one.listener.endpoint().crew().loads() == [2; 3]);
    carry(connections);
}

#[test]
fn a_driver_that_is_slow_loses_messages_and_holds_up_nobody() {
    let poller = Poller::new().unwrap();
    let mailbox = Mailbox::new(poller.waker());
    let meta = RecvMeta {
        source: "192.0.2.1:1".parse().unwrap(),
        destination: None,
        ecn: None,
        len: 1,
        stride: 1,
        overflows: 0,
        arrived: None,
    };
    (0..100).for_each(|_| mailbox.pass(Stray { meta, bytes: vec![0] }));
    let mut waiting = 0;
    while mailbox.stray().is_some() {
        waiting += 1;
    }
    assert_eq!((waiting, mailbox.take_dropped(), mailbox.take_dropped()), (64, 36, 0));
}

#[test]
fn forged_packets_to_each_driver_draw_no_answer() {
    let lab = lab(4, Offload::WhereSupported);
    let connections: Vec<_> = (0..4).map(|_| lab.connect()).collect();
    let stranger = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &SocketOptions::default());
    let (stranger, to) = (stranger.unwrap(), lab.listener.local_addr());
    for number in 0..4_000_u64 {
        let mut packet = vec![0x40; 1200];
        packet[8..16].copy_from_slice(&((number << 8) | (number % 4)).to_le_bytes());
        // One without room in the socket is lost.
        let _ = stranger.send(&hikyaku_udp::Transmit::to(to, &packet));
    }
    carry(connections);
    let mut batch = hikyaku_udp::RecvBatch::new(1);
    assert_eq!(stranger.recv(&mut batch).unwrap_or(0), 0);
}
