//! Transfers: bytes of all shapes arrive once, complete, and in bounded memory.

use super::*;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

#[test]
fn both_directions_flow_at_once() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let lab = Lab::with(address, |_| {});
        let (client, server) = lab.connect();
        let echo = thread::spawn(move || {
            block_on(async {
                let (mut send, mut receive) = server.accept_stream().await.unwrap().split();
                while let Some(run) = receive.read_chunk().await.unwrap() {
                    send.write_chunk(run.to_vec().into()).await.unwrap();
                }
                send.finish();
                send.delivered().await.unwrap();
            });
        });
        let (mut send, mut receive) = block_on(client.open_stream()).unwrap().split();
        let writer = thread::spawn(move || block_on(send_pattern(&mut send, 5_000_000)));
        assert_eq!(block_on(receive_pattern(&mut receive)).unwrap(), 5_000_000);
        writer.join().unwrap();
        echo.join().unwrap();
    }
}

#[test]
fn two_hundred_megabytes_arrive_as_they_were() {
    const LEN: u64 = 200_000_000;
    let lab = Lab::new();
    let (client, server) = lab.connect();
    let reader = thread::spawn(move || {
        let mut stream = block_on(server.accept_stream()).unwrap();
        block_on(receive_pattern(stream.halves().1)).unwrap()
    });
    let mut stream = block_on(client.open_stream()).unwrap();
    block_on(send_pattern(stream.halves().0, LEN));
    block_on(stream.delivered()).unwrap();
    assert_eq!(reader.join().unwrap(), LEN);
    let stats = block_on(client.stats()).unwrap();
    assert_eq!(stats.sent_payload.bytes(), LEN);
}

#[test]
fn an_empty_stream_and_a_late_end_are_delivered() {
    let lab = Lab::new();
    let (client, server) = lab.connect();
    for len in [0, 10] {
        let mut stream = block_on(client.open_stream()).unwrap();
        block_on(stream.write_chunk(patterned(0, len))).unwrap();
        let mut other = (len > 0).then(|| block_on(server.accept_stream()).unwrap());
        if let Some(other) = &mut other {
            assert_eq!(block_on(other.read_chunk()).unwrap().unwrap().len(), len);
        }
        // All bytes are acknowledged long before the stream is finished.
        thread::sleep(Duration::from_millis(50));
        stream.finish();
        let mut other = other.unwrap_or_else(|| block_on(server.accept_stream()).unwrap());
        assert!(block_on(other.read_chunk()).unwrap().is_none());
        block_on(stream.delivered()).unwrap();
    }
}

#[test]
fn many_streams_of_many_connections_do_not_mix() {
    const CONNECTIONS: usize = 20;
    const STREAMS: u64 = 30;
    let lab = Lab::new();
    let pairs: Vec<_> = (0..CONNECTIONS).map(|_| lab.connect()).collect();
    let mut threads = Vec::new();
    for (client, server) in pairs {
        threads.push(thread::spawn(move || {
            for len in 0..STREAMS {
                let mut stream = block_on(client.open_stream()).unwrap();
                block_on(send_pattern(stream.halves().0, len * 7000));
                block_on(stream.delivered()).unwrap();
            }
            block_on(client.closed());
        }));
        threads.push(thread::spawn(move || {
            let mut total = 0;
            for _ in 0..STREAMS {
                let mut stream = block_on(server.accept_stream()).unwrap();
                total += block_on(receive_pattern(stream.halves().1)).unwrap();
            }
            assert_eq!(total, (0..STREAMS).sum::<u64>() * 7000);
            server.close(AppCode::DONE, "");
        }));
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn more_streams_than_allowed_wait_for_their_turn() {
    let lab = Lab::with("127.0.0.1:0", |config| config.transport.max_streams = 4);
    let (client, server) = lab.connect();
    let writer = thread::spawn(move || {
        for _ in 0..40 {
            let mut stream = block_on(client.open_stream()).unwrap();
            block_on(send_pattern(stream.halves().0, 1000));
            drop(stream);
        }
        block_on(client.closed())
    });
    for _ in 0..40 {
        let mut stream = block_on(server.accept_stream()).unwrap();
        assert_eq!(block_on(receive_pattern(stream.halves().1)).unwrap(), 1000);
    }
    server.close(AppCode::DONE, "");
    writer.join().unwrap();
}

#[test]
fn an_object_arrives_once_in_whatever_order() {
    const LEN: usize = 3_000_000;
    let lab = Lab::new();
    let (client, server) = lab.connect();
    let writer = thread::spawn(move || {
        let mut object = block_on(client.open_object()).unwrap();
        for at in (0..LEN).step_by(50_000) {
            block_on(object.write_chunk(patterned(at as u64, 50_000))).unwrap();
        }
        object.finish();
        block_on(object.delivered()).unwrap();
    });
    let mut object = block_on(server.accept_object()).unwrap();
    let mut seen = vec![false; LEN];
    while let Some((offset, run)) = block_on(object.next()).unwrap() {
        assert_pattern(offset, &run);
        for seen in &mut seen[offset as usize..][..run.len()] {
            assert!(!std::mem::replace(seen, true), "a byte near {offset} came twice");
        }
    }
    assert!(seen.into_iter().all(|seen| seen));
    writer.join().unwrap();
}

#[test]
fn a_slow_reader_holds_the_writer_back() {
    const WINDOW: u64 = 4_000_000;
    let lab = Lab::with("127.0.0.1:0", |config| {
        config.transport.receive_window = hikyaku_units::DataSize::from_bytes(WINDOW);
        config.transport.initial_window = hikyaku_units::DataSize::from_bytes(WINDOW);
    });
    let (client, server) = lab.connect();
    let (mut send, _receive) = block_on(client.open_stream()).unwrap().split();
    let written = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let count = written.clone();
    let writer = thread::spawn(move || {
        for at in (0..60_000_000).step_by(100_000) {
            block_on(send.write_chunk(patterned(at, 100_000))).unwrap();
            count.store(at + 100_000, std::sync::atomic::Ordering::Relaxed);
        }
        send.finish();
        block_on(send.delivered()).unwrap();
    });
    let mut stream = block_on(server.accept_stream()).unwrap();
    thread::sleep(Duration::from_millis(500));
    let held = block_on(server.stats()).unwrap().received_payload.bytes();
    assert!(held <= WINDOW, "{held} received with nothing read");
    let accepted = written.load(std::sync::atomic::Ordering::Relaxed);
    assert!(accepted <= WINDOW + (34 << 20), "{accepted} written with nothing read");
    assert_eq!(block_on(receive_pattern(stream.halves().1)).unwrap(), 60_000_000);
    writer.join().unwrap();
}

#[test]
fn the_blocking_form_reads_and_writes() {
    let identity = Identity::generate().unwrap();
    let mut config = ListenerConfig::new(ServerCredentials::new(&identity));
    config.endpoint = quiet();
    let listener = blocking::NetListener::bind("127.0.0.1:0".parse().unwrap(), config).unwrap();
    let address = listener.local_addr();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&all).unwrap();
        stream.finish();
        stream.delivered().unwrap();
    });
    let config = ConnectConfig::new(Trust::Pinned(identity.fingerprint()));
    let mut stream = blocking::NetStream::connect_with(address, config, quiet()).unwrap();
    let sent = patterned(0, 300_001);
    stream.write_all(&sent).unwrap();
    stream.finish();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    assert_eq!(back, sent);
    server.join().unwrap();
}

#[test]
fn the_async_traits_read_and_write() {
    let lab = Lab::new();
    let (client, server) = lab.connect();
    block_on(async {
        let mut stream = client.open_stream().await.unwrap();
        let sent = patterned(0, 5000);
        let mut at = 0;
        while at < sent.len() {
            at += poll_fn(|cx| Pin::new(&mut stream).poll_write(cx, &sent[at..])).await.unwrap();
        }
        poll_fn(|cx| Pin::new(&mut stream).poll_flush(cx)).await.unwrap();
        poll_fn(|cx| Pin::new(&mut stream).poll_shutdown(cx)).await.unwrap();
        let mut other = server.accept_stream().await.unwrap();
        let mut got = Vec::new();
        loop {
            // Smaller than a packet, so that what is left of one is kept.
            let mut room = [0; 777];
            let mut out = ReadBuf::new(&mut room);
            poll_fn(|cx| Pin::new(&mut other).poll_read(cx, &mut out)).await.unwrap();
            if out.filled().is_empty() {
                break;
            }
            got.extend_from_slice(out.filled());
        }
        assert_eq!(got, sent);
    });
}

#[test]
fn what_was_finished_is_delivered_after_all_handles_are_gone() {
    const LEN: u64 = 30_000_000;
    let Lab { listener, endpoint, fingerprint } = Lab::new();
    let lab = Lab { listener, endpoint, fingerprint };
    let (client, server) = lab.connect();
    let Lab { listener: _listener, endpoint, .. } = lab;
    let reader = thread::spawn(move || {
        let mut stream = block_on(server.accept_stream()).unwrap();
        let len = block_on(receive_pattern(stream.halves().1)).unwrap();
        (len, block_on(server.closed()))
    });
    let mut stream = block_on(client.open_stream()).unwrap();
    block_on(send_pattern(stream.halves().0, LEN));
    drop((stream, client, endpoint));
    let (len, reason) = reader.join().unwrap();
    assert_eq!(len, LEN);
    assert!(matches!(reason, CloseReason::Peer { code: code::DONE, .. }), "{reason}");
}

#[test]
fn a_stream_opened_behind_a_grown_window_is_told_its_own() {
    // A window that is small at the begin and grows in the first stream.
    let small = |config: &mut Config| {
        config.initial_window = hikyaku_units::DataSize::from_bytes(16_000);
        config.receive_window = hikyaku_units::DataSize::from_bytes(64_000_000);
    };
    let lab = Lab::with("127.0.0.1:0", |config| small(&mut config.transport));
    let mut config = lab.trusting();
    small(&mut config.transport);
    let (client, server) = lab.connect_with(config);
    let reader = thread::spawn(move || {
        for len in [60_000_000, 3_000_000, 3_000_000] {
            let mut stream = block_on(server.accept_stream()).unwrap();
            let read = crate::blocking::wait(
                receive_pattern(stream.halves().1),
                &crate::blocking::Stop::default(),
                Some(std::time::Instant::now() + Duration::from_secs(30)),
            );
            assert_eq!(read.expect("it comes to an end").unwrap(), len);
        }
    });
    for len in [60_000_000, 3_000_000, 3_000_000] {
        let mut stream = block_on(client.open_stream()).unwrap();
        let (send, _) = stream.halves();
        let sent = async {
            send_pattern(send, len).await;
            send.delivered().await
        };
        let until = std::time::Instant::now() + Duration::from_secs(30);
        let stop = crate::blocking::Stop::default();
        crate::blocking::wait(sent, &stop, Some(until)).expect("it leaves").unwrap();
    }
    reader.join().unwrap();
}
