//! Many streams of one connection, and the ends that a stream may have.

use super::*;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::io::AsyncWrite;

// spec: stream-3
#[test]
fn a_stream_that_is_broken_off_is_read_to_its_last_byte_and_then_tells_why() {
    let lab = Lab::new();
    let (client, server) = lab.connect();
    let mut stream = block_on(client.open_stream()).unwrap();
    block_on(stream.write_chunk(patterned(0, 3_000_000))).unwrap();
    stream.halves().0.reset_after(StreamCode::new(7));
    block_on(stream.delivered()).unwrap();
    let mut other = block_on(server.accept_stream()).unwrap();
    let mut at = 0;
    let error = loop {
        match block_on(other.read_chunk()) {
            Ok(run) => {
                let run = run.expect("it does not look like an end");
                assert_pattern(at, &run);
                at += run.len() as u64;
            }
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ReadError::Reset(code) if code.number() == 7), "{error}");
    assert_eq!(at, 3_000_000);
}

#[test]
fn a_stream_that_is_cut_ends_with_what_was_sent() {
    let lab = with_windows(1_000_000, 200_000);
    let (client, server) = lab.connect();
    let mut stream = block_on(client.open_stream()).unwrap();
    block_on(stream.write_chunk(patterned(0, 500_000))).unwrap();
    block_on(stream.write_chunk(patterned(500_000, 500_000))).unwrap();
    let mut other = block_on(server.accept_stream()).unwrap();
    let size = block_on(stream.halves().0.cut()).unwrap().expect("its end was not sent");
    assert!(size <= 200_000, "the reader has not read: {size}");
    assert_eq!(block_on(receive_pattern(other.halves().1)).unwrap(), size);
    block_on(stream.delivered()).unwrap();
    assert!(block_on(stream.write_chunk(patterned(0, 1))).is_err());
    assert_eq!(block_on(stream.halves().0.cut()).unwrap(), Some(size), "once is enough");
}

#[test]
fn urgent_bytes_arrive_though_nobody_reads_the_others() {
    let lab = with_windows(1_000_000, 200_000);
    let (client, server) = lab.connect();
    let mut bulk = block_on(client.open_stream()).unwrap();
    for part in 0..4 {
        block_on(bulk.write_chunk(patterned(part * 500_000, 500_000))).unwrap();
    }
    let mut urgent = block_on(client.open_stream()).unwrap();
    urgent.halves().0.set_priority(Priority::Urgent);
    block_on(urgent.write_chunk(patterned(0, 100_000))).unwrap();
    urgent.finish();
    let _unread = block_on(server.accept_stream()).unwrap();
    let mut other = block_on(server.accept_stream()).unwrap();
    assert_eq!(block_on(receive_pattern(other.halves().1)).unwrap(), 100_000);
}

/// A listener with windows of `all` bytes for all streams and of `each` bytes for each.
fn with_windows(all: u64, each: u64) -> Lab {
    Lab::with("127.0.0.1:0", |config| {
        config.transport.receive_window = DataSize::from_bytes(all);
        config.transport.initial_window = DataSize::from_bytes(all);
        config.transport.stream_window = DataSize::from_bytes(each);
        config.transport.max_streams = STREAMS;
    })
}

const STREAMS: u32 = 10_000;
/// Bytes that writers may queue. The transport holds the same amount ready.
const BUFFER: u64 = 4_000_000;
/// A piece of a stream where little is left.
const PIECE: u64 = 4 << 10;

#[test]
fn ten_thousand_streams_that_cannot_go_on_hold_little() {
    // One piece at the largest, which the transport takes of each stream at once, and many.
    for each in [60_000, 256 << 10] {
        hold_little(each);
    }
}

/// Each of the writers has `each` bytes.
fn hold_little(each: usize) {
    let lab = with_windows(1_000_000, 100_000);
    let mut config = lab.trusting();
    config.transport.send_buffer = DataSize::from_bytes(BUFFER);
    let (client, server) = lab.connect_with(config);
    let readers = thread::spawn(move || {
        let accept = |_| block_on(server.accept_stream()).unwrap();
        let streams: Vec<_> = (0..STREAMS).map(accept).collect();
        (server, streams)
    });
    let mut streams = Vec::new();
    let mut taken = 0;
    for _ in 0..STREAMS {
        let mut stream = block_on(client.open_stream()).unwrap();
        let written = write(&mut stream, each);
        taken += written;
        streams.push((stream, written));
    }
    // Bytes that the transport takes make room for more, until it is full.
    let mut quiet = 0;
    while quiet < 5 {
        let before = taken;
        for (stream, written) in &mut streams {
            let more = write(stream, each - *written);
            *written += more;
            taken += more;
        }
        quiet = if taken == before { quiet + 1 } else { 0 };
        thread::sleep(Duration::from_millis(20));
    }
    let sent = block_on(client.stats()).unwrap().sent_payload.bytes();
    let held = taken as u64 - sent;
    let most = 3 * BUFFER + u64::from(STREAMS) * PIECE;
    assert!(held <= most, "{each}: {held} of {most}");
    assert!(held >= BUFFER, "the writers were held back before there was need: {held}");
    client.close(AppCode::DONE, "");
    drop(readers.join());
}

/// Writes at most `bytes`, as long as they are taken; gives how many were.
fn write(stream: &mut Stream, bytes: usize) -> usize {
    let all = vec![7; bytes];
    let mut written = 0;
    let mut context = Context::from_waker(Waker::noop());
    while written < bytes
        && let Poll::Ready(result) =
            Pin::new(&mut *stream).poll_write(&mut context, &all[written..])
    {
        written += result.unwrap();
    }
    written
}
