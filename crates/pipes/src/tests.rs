//! Connections as applications use them, over pairs of Unix sockets.

use super::*;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

struct Parked(thread::Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Parked(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Both ends of a connection over `pipes` pipes.
fn pair(pipes: usize, config: &Config) -> (Connection, Connection) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..pipes {
        let (a, b) = UnixStream::pair().unwrap();
        ours.push(Pipe::new(a.try_clone().unwrap(), HalfPipe(a)));
        theirs.push(Pipe::new(b.try_clone().unwrap(), HalfPipe(b)));
    }
    let client = Connection::new(ours, Side::Client, config.clone()).unwrap();
    (client, Connection::new(theirs, Side::Server, config.clone()).unwrap())
}

/// A socket whose peer reads the end of the stream when this half is dropped, as with a pipe.
struct HalfPipe(UnixStream);

impl std::io::Write for HalfPipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn write_vectored(&mut self, slices: &[std::io::IoSlice<'_>]) -> std::io::Result<usize> {
        self.0.write_vectored(slices)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for HalfPipe {
    fn drop(&mut self) {
        let _ = self.0.shutdown(std::net::Shutdown::Write);
    }
}

fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| rng.u8(..)).take(length).collect()
}

/// Reads an object to its end, in any order of delivery.
fn gather(mut object: ObjectReceiver) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some((offset, run)) = block_on(object.next()).unwrap() {
        let end = offset as usize + run.len();
        all.resize(all.len().max(end), 0);
        let mut at = offset as usize;
        for piece in run.pieces() {
            all[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        }
    }
    all
}

fn send(connection: &Connection, bytes: &[u8]) {
    let mut object = block_on(connection.open_object()).unwrap();
    for chunk in bytes.chunks(70_001) {
        block_on(object.write_chunk(Bytes::copy_from_slice(chunk))).unwrap();
    }
    object.finish();
    block_on(object.delivered()).unwrap();
}

#[test]
fn objects_arrive_whole_over_one_pipe_and_over_several() {
    for pipes in [1, 3] {
        let (client, server) = pair(pipes, &Config::default());
        thread::scope(|scope| {
            for seed in 0..6 {
                let client = &client;
                scope.spawn(move || send(client, &random(seed, 2_000_000 + seed as usize)));
            }
            let mut lengths = Vec::new();
            for _ in 0..6 {
                let object = block_on(server.accept_object()).unwrap();
                let bytes = gather(object);
                let seed = (bytes.len() - 2_000_000) as u64;
                assert!(bytes == random(seed, bytes.len()), "{pipes} pipes, {seed}");
                lengths.push(seed);
            }
            lengths.sort_unstable();
            assert_eq!(lengths, [0, 1, 2, 3, 4, 5]);
        });
    }
}

#[test]
fn a_stream_echoes_while_objects_fill_the_pipe() {
    let (client, server) = pair(1, &Config::default());
    let far = thread::spawn(move || {
        let (mut send, mut receive) = block_on(server.accept_stream()).unwrap().split();
        let sink = server.clone();
        let objects = thread::spawn(move || {
            let mut count = 0;
            while let Ok(object) = block_on(sink.accept_object()) {
                gather(object);
                count += 1;
            }
            count
        });
        while let Some(run) = block_on(receive.read_chunk()).unwrap() {
            for piece in run.pieces() {
                block_on(send.write_chunk(Bytes::copy_from_slice(piece))).unwrap();
            }
        }
        send.finish();
        block_on(send.delivered()).unwrap();
        objects
    });
    let stream = block_on(client.open_stream()).unwrap();
    let (mut out, mut back) = stream.split();
    let bulk = client.clone();
    let bulk = thread::spawn(move || (0..4).for_each(|seed| send(&bulk, &random(seed, 5_000_000))));
    for n in 0..50u8 {
        block_on(out.write_chunk(Bytes::copy_from_slice(&[n; 100]))).unwrap();
        let mut got = Vec::new();
        while got.len() < 100 {
            let run = block_on(back.read_chunk()).unwrap().expect("it goes on");
            run.pieces().for_each(|piece| got.extend_from_slice(piece));
        }
        assert_eq!(got, [n; 100]);
    }
    out.finish();
    assert!(block_on(back.read_chunk()).unwrap().is_none());
    bulk.join().unwrap();
    let objects = far.join().unwrap();
    client.close(code::DONE, "");
    assert_eq!(objects.join().unwrap(), 4);
}

#[test]
fn flush_writes_the_close_frame_before_the_process_exits() {
    let (client, server) = pair(1, &Config::default());
    server.close(0x107, "the disk is full");
    server.flush(Duration::from_secs(10));
    let reason = block_on(client.closed());
    let wanted = CloseReason::Peer { code: 0x107, reason: "the disk is full".to_owned() };
    assert_eq!(reason, wanted);
    assert_eq!(block_on(client.open_stream()).unwrap_err(), OpenError::Closed(wanted));
}

#[test]
fn a_broken_pipe_ends_the_connection() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let pipe = Pipe::new(ours.try_clone().unwrap(), ours);
    let client = Connection::new(vec![pipe], Side::Client, Config::default()).unwrap();
    let stream = block_on(client.open_stream()).unwrap();
    drop(theirs);
    assert_eq!(block_on(client.closed()), CloseReason::TimedOut);
    let (mut send, mut receive) = stream.split();
    let lost = block_on(send.write_chunk(Bytes::from_static(b"x")));
    assert_eq!(lost, Err(WriteError::Closed(CloseReason::TimedOut)));
    let lost = block_on(receive.read_chunk()).map(drop);
    assert_eq!(lost, Err(ReadError::Closed(CloseReason::TimedOut)));
}

#[test]
fn malformed_frames_end_the_connection() {
    use std::io::Write;
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let pipe = Pipe::new(ours.try_clone().unwrap(), ours);
    let client = Connection::new(vec![pipe], Side::Client, Config::default()).unwrap();
    theirs.write_all(b"Welcome to this machine. Please behave.\n").unwrap();
    let reason = block_on(client.closed());
    assert!(matches!(reason, CloseReason::Violation(_)), "{reason:?}");
}

#[test]
fn dropping_the_last_handle_closes_the_connection() {
    let (client, server) = pair(1, &Config::default());
    let object = block_on(client.open_object()).unwrap();
    drop(client);
    assert_eq!(server.close_reason(), None);
    drop(object);
    let done = CloseReason::Peer { code: code::DONE, reason: String::new() };
    assert_eq!(block_on(server.closed()), done);
}

/// A pipe that takes nothing.
struct Closed;

impl std::io::Write for Closed {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }
}

#[test]
fn a_peer_that_takes_nothing_more_is_still_heard() {
    let (a, b) = UnixStream::pair().unwrap();
    let client =
        Connection::new(vec![Pipe::new(a, Closed)], Side::Client, Config::default()).unwrap();
    // The client's writer fails at its first ping, most likely before the server's close arrives.
    thread::sleep(Duration::from_millis(100));
    let server = Pipe::new(b.try_clone().unwrap(), HalfPipe(b));
    let server = Connection::new(vec![server], Side::Server, Config::default()).unwrap();
    server.close(7, "full");
    let reason = block_on(client.closed());
    assert_eq!(reason, CloseReason::Peer { code: 7, reason: "full".to_owned() });
}

fn repaired() -> Config {
    Config { on_loss: OnLoss::Repair, ..Config::default() }
}

#[test]
fn pipes_that_break_and_pipes_that_are_added_lose_no_byte() {
    let (client, server) = pair(1, &repaired());
    let mut ends = Vec::new();
    for id in 1..4 {
        let (a, b) = UnixStream::pair().unwrap();
        ends.push((a.try_clone().unwrap(), b.try_clone().unwrap()));
        let pipe = |socket: UnixStream| {
            let breaker = socket.try_clone().unwrap();
            Pipe::new(socket.try_clone().unwrap(), HalfPipe(socket))
                .with_breaker(move || drop(breaker.shutdown(std::net::Shutdown::Both)))
        };
        server.extender().add(id, pipe(b)).unwrap();
        client.extender().add(id, pipe(a)).unwrap();
    }
    let bytes = random(9, 12_000_000);
    thread::scope(|scope| {
        scope.spawn(|| send(&client, &bytes));
        let mut object = block_on(server.accept_object()).unwrap();
        let mut got = vec![0; bytes.len()];
        let mut length = 0;
        while let Some((offset, run)) = block_on(object.next()).unwrap() {
            let mut at = offset as usize;
            for piece in run.pieces() {
                got[at..at + piece.len()].copy_from_slice(piece);
                at += piece.len();
                length += piece.len();
            }
            if length > 3_000_000 && ends.len() > 1 {
                let (a, _) = ends.pop().unwrap();
                a.shutdown(std::net::Shutdown::Both).unwrap();
            }
        }
        assert_eq!(length, bytes.len());
        assert!(got == bytes);
    });
    assert_eq!(client.close_reason(), None);
    let end = Instant::now() + Duration::from_secs(30);
    while client.figures().pipes > 2 {
        assert!(Instant::now() < end, "the lost pipes are not noticed");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_further_pipe_says_to_which_connection_it_belongs() {
    let (client, server) = pair(1, &repaired());
    server.extender().offer(Token([7; 16]));
    let mut stream = block_on(client.open_stream()).unwrap().split();
    block_on(stream.0.write_chunk(Bytes::from_static(b"x"))).unwrap();
    let (mut send, mut receive) = block_on(server.accept_stream()).unwrap().split();
    assert!(block_on(receive.read_chunk()).unwrap().is_some());
    block_on(send.write_chunk(Bytes::from_static(b"y"))).unwrap();
    // The token was sent before.
    assert!(block_on(stream.1.read_chunk()).unwrap().is_some());
    let token = client.extender().token().unwrap();
    let mut said = Vec::new();
    token.join(3, &mut said).unwrap();
    let first = First::read(&mut said.as_slice()).unwrap();
    assert!(matches!(first, First::Further { id: 3, token: Token(token) } if token == [7; 16]));
    let (a, b) = UnixStream::pair().unwrap();
    let ping = Pipe::new(a.try_clone().unwrap(), HalfPipe(a));
    let _other = Connection::new(vec![ping], Side::Client, repaired()).unwrap();
    assert!(matches!(First::read(&mut &b).unwrap(), First::New(_)));
}
