//! Tests of the socket on the loopback interface.

use super::*;
use hikyaku_units::DataSize;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

const V4: &str = "127.0.0.1:0";
const V6: &str = "[::1]:0";

fn socket(address: &str, options: &SocketOptions) -> UdpSocket {
    UdpSocket::bind(address.parse().unwrap(), options).unwrap()
}

fn plain(address: &str) -> UdpSocket {
    socket(address, &SocketOptions::default())
}

fn without_gso() -> SocketOptions {
    SocketOptions { segmentation: Offload::Off, ..SocketOptions::default() }
}

fn without_gro() -> SocketOptions {
    SocketOptions { coalescing: Offload::Off, ..SocketOptions::default() }
}

/// Contents in which each byte depends on its position.
fn numbered(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}

/// Receives until `datagrams` datagrams have arrived; returns the metadata of each message, and
/// each datagram.
fn receive(socket: &UdpSocket, datagrams: usize) -> (Vec<RecvMeta>, Vec<Vec<u8>>) {
    let poller = Poller::new().unwrap();
    let mut batch = RecvBatch::new(8);
    let (mut metas, mut contents) = (Vec::new(), Vec::new());
    while contents.len() < datagrams {
        let ready = poller.wait(socket, Interest::Readable, Some(Duration::from_secs(5))).unwrap();
        assert!(ready.is_readable(), "{} of {datagrams} datagrams came", contents.len());
        socket.recv(&mut batch).unwrap();
        for mut message in batch.messages() {
            metas.push(message.meta);
            contents.extend(message.datagrams().map(|datagram| datagram.to_vec()));
        }
    }
    (metas, contents)
}

fn send_segments(from: &UdpSocket, to: &UdpSocket, bytes: &[u8], size: usize) {
    let transmit = Transmit { segment_size: Some(size), ..Transmit::to(to.local_addr(), bytes) };
    assert_eq!(from.send(&transmit).unwrap(), SendOutcome::Sent);
}

fn segments_of(bytes: &[u8], size: usize) -> Vec<Vec<u8>> {
    bytes.chunks(size).map(<[u8]>::to_vec).collect()
}

#[test]
fn a_batch_arrives_as_its_segments() {
    for address in [V4, V6] {
        let (sender, receiver) = (plain(address), socket(address, &without_gro()));
        assert_eq!(sender.granted().gso, Support::Present);
        let bytes = numbered(20 * 1400 + 17);
        send_segments(&sender, &receiver, &bytes, 1400);
        let (metas, datagrams) = receive(&receiver, 21);
        assert_eq!(datagrams, segments_of(&bytes, 1400));
        assert!(metas.iter().all(|meta| meta.len == meta.stride));
    }
}

#[test]
fn coalesced_datagrams_report_their_stride() {
    for address in [V4, V6] {
        let (sender, receiver) = (plain(address), plain(address));
        assert_eq!(receiver.granted().gro, Support::Present);
        let bytes = numbered(44 * 1472 + 3);
        send_segments(&sender, &receiver, &bytes, 1472);
        let (metas, datagrams) = receive(&receiver, 45);
        assert_eq!(datagrams, segments_of(&bytes, 1472));
        // Loopback does not segment a batch, so it arrives as one message.
        assert_eq!(metas.len(), 2, "44 x 1472 is one batch, and the rest another: {metas:?}");
        assert_eq!((metas[0].len, metas[0].stride), (44 * 1472, 1472));
        assert_eq!(metas[0].source, sender.local_addr());
        assert_eq!(metas[0].overflows, 0);
    }
}

#[test]
fn without_segmentation_the_datagrams_are_the_same() {
    let (sender, receiver) = (socket(V4, &without_gso()), plain(V4));
    assert_eq!(sender.granted().gso, Support::Absent);
    let bytes = numbered(100 * 1000 + 1);
    send_segments(&sender, &receiver, &bytes, 1000);
    assert_eq!(receive(&receiver, 101).1, segments_of(&bytes, 1000));
}

#[test]
fn a_refused_batch_switches_segmentation_off_and_still_arrives() {
    let (sender, receiver) = (plain(V4), plain(V4));
    // The kernel answers EINVAL to a segmented send on a socket without checksums.
    sys::set_int(sender.as_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
    let bytes = numbered(10 * 1200 + 5);
    for _ in 0..2 {
        send_segments(&sender, &receiver, &bytes, 1200);
        assert_eq!(receive(&receiver, 11).1, segments_of(&bytes, 1200));
        assert_eq!(sender.granted().gso, Support::Absent);
    }
}

#[test]
fn ecn_fields_and_the_local_address_are_received() {
    for (address, local) in [(V4, "127.0.0.1"), (V6, "::1")] {
        let local: IpAddr = local.parse().unwrap();
        let options = SocketOptions { dscp: Some(8), ..SocketOptions::default() };
        let (sender, receiver) = (socket(address, &options), plain(address));
        for ecn in [None, Some(Ecn::Ect0), Some(Ecn::Ect1), Some(Ecn::Ce)] {
            let to = Transmit::to(receiver.local_addr(), b"mark");
            sender.send(&Transmit { ecn, ..to }).unwrap();
            let (metas, _) = receive(&receiver, 1);
            assert_eq!((metas[0].ecn, metas[0].destination), (ecn, Some(local)), "{address}");
        }
    }
}

#[test]
fn the_source_can_be_chosen() {
    let (sender, receiver) = (plain("0.0.0.0:0"), plain(V4));
    let to = Transmit::to(receiver.local_addr(), b"from");
    let source: IpAddr = "127.0.0.9".parse().unwrap();
    sender.send(&Transmit { source: Some(source), ..to }).unwrap();
    assert_eq!(receive(&receiver, 1).0[0].source.ip(), source);

    let gone: IpAddr = "192.0.2.1".parse().unwrap();
    let error = sender.send(&Transmit { source: Some(gone), ..to }).unwrap_err();
    assert!(
        matches!(error, SendError::SourceUnavailable { address } if address == gone),
        "{error}"
    );
}

#[test]
fn one_socket_serves_both_families() {
    let both = plain("[::]:0");
    let port = both.local_addr().port();
    for address in [V4, V6] {
        let peer = plain(address);
        let there = SocketAddr::new(peer.local_addr().ip(), port);
        let marked = Transmit { ecn: Some(Ecn::Ect0), ..Transmit::to(there, b"ping") };
        peer.send(&marked).unwrap();
        let (metas, _) = receive(&both, 1);
        assert_eq!(metas[0].source, peer.local_addr());
        assert_eq!(metas[0].destination, Some(there.ip()));
        assert_eq!(metas[0].ecn, Some(Ecn::Ect0));
        // The answer sets source address and ECN field, by different control messages in each
        // family.
        let answer = Transmit {
            source: metas[0].destination,
            ecn: Some(Ecn::Ce),
            segment_size: Some(2),
            ..Transmit::to(metas[0].source, b"pong")
        };
        both.send(&answer).unwrap();
        let (metas, datagrams) = receive(&peer, 2);
        assert_eq!(metas[0].ecn, Some(Ecn::Ce));
        assert_eq!(metas[0].source, there);
        assert_eq!(datagrams, [b"po", b"ng"]);
    }
}

#[test]
fn a_mapped_destination_is_ipv4() {
    let receiver = plain(V4);
    let port = receiver.local_addr().port();
    let mapped: SocketAddr = format!("[::ffff:127.0.0.1]:{port}").parse().unwrap();
    for sender in [plain(V4), plain("[::]:0")] {
        let marked = Transmit { ecn: Some(Ecn::Ect1), ..Transmit::to(mapped, b"x") };
        sender.send(&marked).unwrap();
        assert_eq!(receive(&receiver, 1).0[0].ecn, Some(Ecn::Ect1));
    }
}

#[test]
fn one_family_leaves_the_other_port_free() {
    let options = SocketOptions { family: Family::OnlyV6, ..SocketOptions::default() };
    let v6 = socket("[::]:0", &options);
    let port = v6.local_addr().port();
    plain(&format!("0.0.0.0:{port}"));
}

#[test]
fn too_big_is_typed_and_keeps_segmentation() {
    let (sender, receiver) = (plain(V4), plain(V4));
    let bytes = vec![0; MAX_BATCH_BYTES + 1];
    let error = sender.send(&Transmit::to(receiver.local_addr(), &bytes)).unwrap_err();
    assert!(matches!(error, SendError::TooBig { size: 65_508 }), "{error}");
    assert_eq!(sender.granted().gso, Support::Present);
    assert!(sender.send(&Transmit::to(receiver.local_addr(), &bytes[1..])).is_ok());
}

#[test]
fn a_closed_port_is_no_error() {
    let sender = plain(V4);
    let closed = plain(V4).local_addr();
    for _ in 0..3 {
        assert_eq!(sender.send(&Transmit::to(closed, b"x")).unwrap(), SendOutcome::Sent);
        assert_eq!(sender.recv(&mut RecvBatch::new(1)).unwrap(), 0);
    }
}

#[test]
fn a_taken_port_is_named() {
    let first = plain(V4);
    let port = first.local_addr().port();
    let error = UdpSocket::bind(first.local_addr(), &SocketOptions::default()).unwrap_err();
    assert!(matches!(error, BindError::PortTaken { .. }), "{error}");
    assert!(error.to_string().contains(&port.to_string()), "{error}");
}

#[test]
fn other_bind_errors_are_typed() {
    let bind = |address: &str, options: &SocketOptions| {
        UdpSocket::bind(address.parse().unwrap(), options).unwrap_err()
    };
    let error = bind("192.0.2.1:0", &SocketOptions::default());
    assert!(matches!(error, BindError::AddressUnavailable { .. }), "{error}");
    let options =
        SocketOptions { bind_device: Some("no-such-if".into()), ..SocketOptions::default() };
    let error = bind(V4, &options);
    assert!(
        matches!(&error, BindError::Device { device, .. } if device == "no-such-if"),
        "{error}"
    );
}

#[test]
fn an_ipv4_socket_cannot_reach_ipv6() {
    let error = plain(V4).send(&Transmit::to("[::1]:9".parse().unwrap(), b"x")).unwrap_err();
    assert!(matches!(error, SendError::WrongFamily { .. }), "{error}");
}

#[test]
fn a_buffer_below_the_request_comes_with_advice() {
    let asked = SocketOptions::default();
    let short = Granted { recv_buffer: DataSize::from_bytes(212_992), ..plain(V4).granted() };
    let advice = short.recv_advice(&asked);
    assert_eq!(advice.as_deref(), Some("sysctl -w net.core.rmem_max=16777216"));

    let modest = SocketOptions { recv_buffer: DataSize::from_bytes(100_000), ..asked };
    let granted = socket(V4, &modest).granted();
    assert_eq!(granted.recv_buffer, modest.recv_buffer);
    assert_eq!(granted.recv_advice(&modest), None);
}

#[test]
fn packets_dropped_by_the_kernel_are_counted() {
    let small = SocketOptions { recv_buffer: DataSize::from_bytes(4096), ..without_gro() };
    let (sender, receiver) = (plain(V4), socket(V4, &small));
    for _ in 0..40 {
        sender.send(&Transmit::to(receiver.local_addr(), &[0; 1000])).unwrap();
    }
    let mut batch = RecvBatch::new(64);
    let arrived = receiver.recv(&mut batch).unwrap();
    sender.send(&Transmit::to(receiver.local_addr(), b"after")).unwrap();
    let (metas, _) = receive(&receiver, 1);
    assert_eq!(metas[0].overflows as usize, 40 - arrived);
}

#[test]
fn arrivals_are_stamped_by_the_kernel() {
    let since_1970 = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    for address in [V4, V6] {
        let (sender, receiver) = (plain(address), plain(address));
        let before = since_1970();
        sender.send(&Transmit::to(receiver.local_addr(), b"x")).unwrap();
        let (metas, _) = receive(&receiver, 1);
        let arrived = metas[0].arrived.unwrap();
        assert!(before <= arrived && arrived <= since_1970(), "{before} {arrived}");
    }
}

#[test]
fn a_received_buffer_may_be_taken() {
    let (sender, receiver) = (plain(V4), plain(V4));
    let mut batch = RecvBatch::new(1);
    for round in 0..3 {
        sender.send(&Transmit::to(receiver.local_addr(), &[round; 100])).unwrap();
        assert_eq!(receiver.recv(&mut batch).unwrap(), 1);
        let (meta, buffer) = batch.buffers().next().unwrap();
        let taken = std::mem::take(buffer);
        assert_eq!((meta.len, &taken[..100]), (100, &[round; 100][..]));
    }
}

#[test]
fn loopback_has_a_large_mtu() {
    for destination in ["127.0.0.1:9", "[::1]:9"] {
        assert!(route_mtu(destination.parse().unwrap(), Some("lo")).unwrap() >= 16_384);
    }
    assert_eq!(largest_payload(1500, "192.0.2.1".parse().unwrap()), 1472);
    assert_eq!(largest_payload(1500, "2001:db8::1".parse().unwrap()), 1452);
    assert_eq!(largest_payload(65_536, "::ffff:127.0.0.1".parse().unwrap()), MAX_BATCH_BYTES);
}

#[test]
fn batches_respect_the_kernels_limits() {
    for (size, segments) in [(0, 64), (1, 64), (1000, 64), (1472, 44), (8972, 7), (65_507, 1)] {
        assert_eq!(segments_in_batch(size), segments, "{size}");
    }
    assert_eq!(segments_in_batch(70_000), 1);
}

#[test]
fn a_wake_ends_one_wait() {
    let (poller, socket) = (Poller::new().unwrap(), plain(V4));
    let waker = poller.waker();
    let wait = |timeout| poller.wait(&socket, Interest::Readable, Some(timeout)).unwrap();
    waker.wake();
    waker.wake();
    assert!(wait(Duration::from_secs(5)).is_woken());
    assert!(!wait(Duration::ZERO).is_woken());

    let thread = std::thread::spawn(move || waker.wake());
    assert!(wait(Duration::from_secs(5)).is_woken());
    thread.join().unwrap();
}

#[test]
fn waits_end_at_the_timeout_or_when_the_socket_is_writable() {
    let (poller, socket) = (Poller::new().unwrap(), plain(V4));
    sharpen_timers().unwrap();
    let start = Instant::now();
    let ready = poller.wait(&socket, Interest::Readable, Some(Duration::from_micros(200))).unwrap();
    assert!(!ready.is_readable() && !ready.is_woken());
    assert!(start.elapsed() >= Duration::from_micros(200));
    assert!(poller.wait(&socket, Interest::Both, None).unwrap().is_writable());
}
