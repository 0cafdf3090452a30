//! Two muxes whose frames the test delivers, and a malicious peer.

use super::*;
use std::sync::Arc;
use std::task::Wake;

struct NoWaker;

impl Wake for NoWaker {
    fn wake(self: Arc<Self>) {}
}

fn waker() -> Waker {
    Waker::from(Arc::new(NoWaker))
}

fn small() -> Config {
    Config {
        window: 8000,
        stream_window: 1000,
        stream_window_max: 4000,
        streams_max: 4,
        on_loss: OnLoss::End,
    }
}

struct Pair {
    client: Mux,
    server: Mux,
    now: Instant,
}

impl Pair {
    fn new() -> Self {
        let mux = |side| mux(side, &small());
        Self { client: mux(Side::Client), server: mux(Side::Server), now: Instant::now() }
    }

    /// Delivers frames until neither mux has any, except for pings.
    fn settle(&mut self) {
        loop {
            let there = Self::carry(&mut self.client, &mut self.server, self.now);
            let back = Self::carry(&mut self.server, &mut self.client, self.now);
            if !there && !back {
                return;
            }
        }
    }

    fn carry(from: &mut Mux, to: &mut Mux, now: Instant) -> bool {
        match from.next_task(PIPE, now, 300) {
            Task::Write(header, bytes) | Task::WriteLast(header, bytes) => {
                to.on_frame(PIPE, (header, bytes.to_vec()), now).unwrap();
                true
            }
            Task::Wait(_) | Task::End => false,
        }
    }
}

/// A mux with one pipe.
fn mux(side: Side, config: &Config) -> Mux {
    let mut mux = Mux::new(side, config.clone());
    assert!(mux.add_pipe(PIPE, None, Instant::now()));
    mux
}

const PIPE: PipeId = 0;

fn ready<T>(poll: Poll<T>) -> T {
    match poll {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it would wait"),
    }
}

fn open(mux: &mut Mux, kind: StreamKind) -> StreamId {
    ready(mux.poll_open(kind, &mut Context::from_waker(&waker()))).unwrap()
}

fn write(mux: &mut Mux, id: StreamId, bytes: &[u8]) {
    let mut bytes = Some(Bytes::copy_from_slice(bytes));
    ready(mux.poll_write(id, &mut bytes, &mut Context::from_waker(&waker()))).unwrap();
}

fn read(mux: &mut Mux, id: StreamId) -> Poll<Result<Option<Piece>, ReadError>> {
    mux.poll_read(id, &mut Context::from_waker(&waker()))
}

/// All bytes that can be read now, and whether the end of the stream was reached.
fn read_all(mux: &mut Mux, id: StreamId) -> (Vec<u8>, bool) {
    let mut all = Vec::new();
    loop {
        match read(mux, id) {
            Poll::Ready(Ok(Some(piece))) => all.extend_from_slice(&piece.bytes),
            Poll::Ready(Ok(None)) => return (all, true),
            Poll::Ready(Err(error)) => panic!("{error}"),
            Poll::Pending => return (all, false),
        }
    }
}

fn accept(mux: &mut Mux, kind: StreamKind) -> StreamId {
    ready(mux.poll_accept(kind, &mut Context::from_waker(&waker()))).unwrap()
}

#[test]
fn bytes_and_ends_are_delivered_in_both_directions() {
    let mut pair = Pair::new();
    let id = open(&mut pair.client, StreamKind::Ordered);
    write(&mut pair.client, id, b"question");
    pair.settle();
    assert_eq!(accept(&mut pair.server, StreamKind::Ordered), id);
    assert_eq!(read_all(&mut pair.server, id), (b"question".to_vec(), false));
    write(&mut pair.server, id, b"answer");
    pair.server.finish(id, None);
    pair.client.finish(id, None);
    pair.settle();
    assert_eq!(read_all(&mut pair.client, id), (b"answer".to_vec(), true));
    assert_eq!(read_all(&mut pair.server, id), (Vec::new(), true));
    let delivered = pair.client.poll_delivered(id, &mut Context::from_waker(&waker()));
    ready(delivered).unwrap();
    for mux in [&mut pair.client, &mut pair.server] {
        mux.drop_handle(id);
        mux.drop_handle(id);
        assert!(mux.streams.is_empty() && mux.granted == 0, "{mux:?}");
    }
}

#[test]
fn a_stream_that_is_broken_off_delivers_its_bytes_first() {
    let mut pair = Pair::new();
    let id = open(&mut pair.client, StreamKind::Ordered);
    write(&mut pair.client, id, &[7; 1500]);
    pair.client.finish(id, Some(1 << 40));
    pair.settle();
    assert_eq!(accept(&mut pair.server, StreamKind::Ordered), id);
    // More than one window: the code comes behind the bytes that still wait for credit.
    let mut all = Vec::new();
    let code = loop {
        match read(&mut pair.server, id) {
            Poll::Ready(Ok(Some(piece))) => all.extend_from_slice(&piece.bytes),
            Poll::Ready(Err(ReadError::Reset(code))) => break code,
            Poll::Ready(other) => panic!("{other:?}"),
            Poll::Pending => pair.settle(),
        }
    };
    assert_eq!((all, code), (vec![7; 1500], 1 << 40));
    pair.server.reset(id, 0);
    pair.settle();
    for mux in [&mut pair.client, &mut pair.server] {
        mux.drop_handle(id);
        mux.drop_handle(id);
        assert!(mux.streams.is_empty() && mux.granted == 0, "{mux:?}");
    }
}

#[test]
fn a_stalled_reader_blocks_only_its_own_stream() {
    let mut pair = Pair::new();
    let (slow, quick) =
        (open(&mut pair.client, StreamKind::Object), open(&mut pair.client, StreamKind::Object));
    write(&mut pair.client, slow, &[1; 5000]);
    for n in 0..20 {
        write(&mut pair.client, quick, &[n; 500]);
        pair.settle();
        assert_eq!(read_all(&mut pair.server, quick).0, [n; 500]);
    }
    // The window of the slow stream is full. Reading it grants credit for more.
    assert_eq!(read_all(&mut pair.server, slow).0.len(), 1000);
    pair.settle();
    let more = read_all(&mut pair.server, slow).0.len();
    assert!((500..=1000).contains(&more), "{more}");
}

#[test]
fn a_window_grows_up_to_its_maximum_while_its_reader_is_quick() {
    let mut pair = Pair::new();
    let id = open(&mut pair.client, StreamKind::Object);
    // The first answer to a ping sets the round-trip time.
    pair.settle();
    pair.server.round_trip = Some(Duration::from_secs(1000));
    for _ in 0..20 {
        write(&mut pair.client, id, &[1; 6000]);
        pair.settle();
        while !read_all(&mut pair.server, id).0.is_empty() {
            pair.settle();
        }
    }
    let window = pair.server.streams[&id].receiving.as_ref().unwrap().window();
    assert_eq!(window, small().stream_window_max);
    assert_eq!(pair.server.granted, window);
}

#[test]
fn opening_a_stream_waits_at_the_stream_limit() {
    let mut pair = Pair::new();
    let ids: Vec<_> = (0..4).map(|_| open(&mut pair.client, StreamKind::Object)).collect();
    let waker = waker();
    let mut context = Context::from_waker(&waker);
    assert!(pair.client.poll_open(StreamKind::Object, &mut context).is_pending());
    pair.client.finish(ids[2], None);
    pair.settle();
    open(&mut pair.client, StreamKind::Object);
    assert!(pair.client.poll_open(StreamKind::Object, &mut context).is_pending());
    pair.client.reset(ids[0], 7);
    open(&mut pair.client, StreamKind::Object);
}

#[test]
fn resets_and_stops_reach_the_peer() {
    let mut pair = Pair::new();
    let (a, b) =
        (open(&mut pair.client, StreamKind::Object), open(&mut pair.client, StreamKind::Object));
    write(&mut pair.client, a, b"some");
    write(&mut pair.client, b, &[0; 3000]);
    pair.settle();
    pair.client.reset(a, 7);
    pair.server.stop(b, 9);
    pair.settle();
    assert_eq!(ready(read(&mut pair.server, a)), Err(ReadError::Reset(7)));
    let mut more = Some(Bytes::from_static(b"x"));
    let waker = waker();
    let written = pair.client.poll_write(b, &mut more, &mut Context::from_waker(&waker));
    assert_eq!(ready(written), Err(WriteError::Stopped(9)));
}

#[test]
fn the_end_of_the_connection_wakes_all_waiting_tasks() {
    let mut pair = Pair::new();
    let id = open(&mut pair.client, StreamKind::Ordered);
    write(&mut pair.client, id, b"x");
    pair.settle();
    pair.client.close(0x105, "no room\u{1b}[2J");
    pair.settle();
    assert_eq!(pair.client.end(), Some(&CloseReason::Local));
    let reason = CloseReason::Peer { code: 0x105, reason: "no room\u{fffd}[2J".to_owned() };
    assert_eq!(pair.server.end(), Some(&reason));
    assert_eq!(ready(read(&mut pair.server, id)).unwrap().unwrap().bytes, b"x");
    assert_eq!(ready(read(&mut pair.server, id)), Err(ReadError::Closed(reason)));
    assert_eq!(pair.client.next_task(PIPE, pair.now, 100), Task::End);
}

/// Frames that no honest peer sends.
#[test]
fn invalid_frames_of_a_peer_are_refused() {
    let object = |n| StreamId::new(n, StreamKind::Object, false);
    let data = |n, offset, length| {
        (Header { kind: Kind::Data, id: object(n), value: offset, length }, vec![0; length])
    };
    let bare = |kind, id, value| (Header::bare(kind, id, value), Vec::new());
    type Frames = Vec<(Header, Vec<u8>)>;
    let cases: Vec<(Frames, &str)> = vec![
        (vec![data(0, 0, 1001)], "credit"),
        (vec![data(0, 990, 11)], "credit"),
        (vec![data(0, u64::MAX - 3, 10)], "no stream has"),
        (vec![data(0, 0, 10), data(0, 5, 10)], "came before"),
        (vec![data(0, 5, 10), data(0, 0, 6)], "came before"),
        (vec![data(0, 0, 0)], "without data"),
        (vec![bare(Kind::Finish, object(0), 5), data(0, 0, 6)], "behind the end"),
        (vec![data(0, 0, 6), bare(Kind::Finish, object(0), 5)], "before its bytes"),
        (
            vec![bare(Kind::Finish, object(0), 5), bare(Kind::Finish, object(0), 6)],
            "before its bytes",
        ),
        (vec![data(8, 0, 1)], "may be open"),
        (vec![data(u32::MAX >> 2, 0, 1)], "may be open"),
        (vec![bare(Kind::Finish, StreamId::new(0, StreamKind::Object, true), 0)], "unknown"),
        (vec![bare(Kind::Ping, StreamId(0), 0); 30], "too many answers"),
    ];
    for (frames, words) in cases {
        let mut server = mux(Side::Server, &small());
        let told =
            frames.into_iter().try_for_each(|frame| server.on_frame(PIPE, frame, Instant::now()));
        let error = told.expect_err(words);
        assert!(error.contains(words), "{words}: {error}");
    }
    // The peer acknowledges bytes that were not sent.
    let mut client = mux(Side::Client, &small());
    let id = open(&mut client, StreamKind::Object);
    let (header, _) = bare(Kind::Received, id, 0);
    assert!(client.on_frame(PIPE, (header, Vec::new()), Instant::now()).is_err());
}

/// Random frames. A mux may refuse them, and holds no more bytes than its windows allow.
#[test]
fn random_frames_cause_no_panic_and_exceed_no_window() {
    for seed in 0..300 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut server = mux(Side::Server, &small());
        let ours = open(&mut server, StreamKind::Ordered);
        for _ in 0..200 {
            let kinds = [
                Kind::Data,
                Kind::Data,
                Kind::Data,
                Kind::Finish,
                Kind::Reset,
                Kind::Stop,
                Kind::Credit,
                Kind::Received,
                Kind::Pong,
            ];
            let kind = kinds[rng.usize(..kinds.len())];
            let id = if rng.u8(..4) == 0 { ours } else { StreamId(rng.u32(..24)) };
            let value = if rng.u8(..10) == 0 { rng.u64(..) } else { rng.u64(..1200) };
            let length = if kind == Kind::Data { rng.usize(..300) } else { 0 };
            let header = Header { kind, id, value, length };
            if server.on_frame(PIPE, (header, vec![0; length]), Instant::now()).is_err() {
                break;
            }
            if rng.bool() {
                let _ = read(&mut server, id);
            }
            let held = |stream: &StreamState| stream.receiving.as_ref().map_or(0, Receiving::held);
            let held: u64 = server.streams.values().map(held).sum();
            let most = 2 * small().streams_max as u64 * small().stream_window + small().window;
            assert!(held <= most, "seed {seed}: {held} bytes");
        }
    }
}
