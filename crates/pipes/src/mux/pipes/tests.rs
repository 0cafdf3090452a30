//! Two muxes over several pipes, whose frames the test delivers or loses.

use super::super::{Mux, Task};
use super::*;
use crate::connection::Config;
use hikyaku_proto::{CloseReason, Side};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

struct NoWaker;

impl Wake for NoWaker {
    fn wake(self: Arc<Self>) {}
}

const MILLISECOND: Duration = Duration::from_millis(1);

struct Pair {
    client: Mux,
    server: Mux,
    now: Instant,
    /// Pipes from the client that swallow what they take.
    silent: Vec<PipeId>,
}

impl Pair {
    fn new(pipes: u32) -> Self {
        let now = Instant::now();
        let mux = |side| {
            let mut mux = Mux::new(side, Config { on_loss: OnLoss::Repair, ..Config::default() });
            (0..pipes).for_each(|id| assert!(mux.add_pipe(id, None, now)));
            mux
        };
        let (client, server) = (mux(Side::Client), mux(Side::Server));
        Self { client, server, now, silent: Vec::new() }
    }

    /// Lets each pipe of the client take `frames` frames at most, and those of the server all.
    fn carry(&mut self, pipe: PipeId, frames: usize) -> usize {
        let mut carried = 0;
        for _ in 0..frames {
            let Task::Write(header, bytes) = self.client.next_task(pipe, self.now, 1 << 20) else {
                break;
            };
            carried += usize::from(header.kind == Kind::Data);
            if !self.silent.contains(&pipe) {
                self.server.on_frame(pipe, (header, bytes.to_vec()), self.now).unwrap();
            }
        }
        carried
    }

    fn answer(&mut self, pipe: PipeId) {
        while let Task::Write(header, bytes) = self.server.next_task(pipe, self.now, 1 << 20) {
            self.client.on_frame(pipe, (header, bytes.to_vec()), self.now).unwrap();
        }
    }

    /// Lets `time` pass, in which all pipes carry as much as they can.
    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.now += 10 * MILLISECOND;
            let ids: Vec<PipeId> = self.client.pipes.all.iter().map(|pipe| pipe.id).collect();
            for id in ids {
                self.carry(id, 100);
            }
            // The answer of the server arrives on the first pipe.
            self.answer(0);
        }
    }
}

fn ready<T>(poll: Poll<T>) -> T {
    match poll {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it would wait"),
    }
}

fn open(mux: &mut Mux, kind: StreamKind, bytes: &[u8]) -> StreamId {
    let waker = Waker::from(Arc::new(NoWaker));
    let mut context = Context::from_waker(&waker);
    let id = ready(mux.poll_open(kind, &mut context)).unwrap();
    let mut bytes = Some(Bytes::copy_from_slice(bytes));
    ready(mux.poll_write(id, &mut bytes, &mut context)).unwrap();
    mux.finish(id, None);
    id
}

/// The bytes of a stream that can be read, in any order; and whether its end was reached.
fn read(mux: &mut Mux, id: StreamId) -> (usize, bool) {
    let waker = Waker::from(Arc::new(NoWaker));
    let mut length = 0;
    loop {
        match mux.poll_read(id, &mut Context::from_waker(&waker)) {
            Poll::Ready(Ok(Some(piece))) => length += piece.bytes.len(),
            Poll::Ready(Ok(None)) => return (length, true),
            Poll::Ready(Err(error)) => panic!("{error}"),
            Poll::Pending => return (length, false),
        }
    }
}

#[test]
fn the_frames_of_a_lost_pipe_go_over_another_and_count_once() {
    let mut pair = Pair::new(2);
    let id = open(&mut pair.client, StreamKind::Object, &[7; 500_000]);
    // The server has the first, but the client does not know.
    assert_eq!(pair.carry(1, 1), 1);
    pair.silent = vec![1];
    assert_eq!(pair.carry(1, 1), 1);
    pair.client.lose_pipe(1, CloseReason::TimedOut);
    pair.run(200 * MILLISECOND);
    assert_eq!(read(&mut pair.server, id), (500_000, true));
    assert_eq!(pair.client.pipes.kept_frames, 0, "{:?}", pair.client.pipes);
    assert_eq!((pair.client.end(), pair.client.pipes()), (None, 1));
    pair.client.lose_pipe(0, CloseReason::TimedOut);
    assert_eq!(pair.client.end(), Some(&CloseReason::TimedOut));
}

#[test]
fn an_idle_pipe_sends_again_what_a_slow_one_has() {
    let mut pair = Pair::new(2);
    let first = open(&mut pair.client, StreamKind::Object, &[1; 1000]);
    pair.carry(0, 10);
    pair.run(100 * MILLISECOND);
    assert_eq!(read(&mut pair.server, first), (1000, true));
    let id = open(&mut pair.client, StreamKind::Object, &[7; 500_000]);
    pair.silent = vec![1];
    assert_eq!(pair.carry(1, 1), 1);
    pair.run(100 * MILLISECOND);
    assert!(!read(&mut pair.server, id).1);
    pair.run(400 * MILLISECOND);
    assert!(read(&mut pair.server, id).1);
    assert_eq!(pair.client.pipes(), 2);
}

#[test]
fn messages_that_wait_in_a_slow_pipe_do_not_wait_for_the_end_of_the_bulk() {
    let mut pair = Pair::new(2);
    open(&mut pair.client, StreamKind::Object, &[1; 1000]);
    pair.carry(0, 10);
    pair.run(100 * MILLISECOND);
    let message = open(&mut pair.client, StreamKind::Ordered, b"urgent");
    pair.silent = vec![1];
    assert_eq!(pair.carry(1, 2), 1);
    for n in 0..100 {
        // There is always something to send.
        open(&mut pair.client, StreamKind::Object, &[n; 1000]);
        pair.now += 10 * MILLISECOND;
        pair.carry(0, 2);
        pair.answer(0);
    }
    assert_eq!(read(&mut pair.server, message), (6, true));
}

#[test]
fn a_pipe_on_which_nothing_is_confirmed_is_given_up_if_another_goes_on() {
    let mut pair = Pair::new(2);
    pair.silent = vec![1];
    for n in 0..35 {
        open(&mut pair.client, StreamKind::Object, &[n; 1000]);
        pair.carry(1, 1);
        pair.run(100 * MILLISECOND);
    }
    assert_eq!(pair.client.pipes(), 1, "{:?}", pair.client.pipes);
    // Nothing goes on anywhere: it is the path.
    let mut pair = Pair::new(2);
    pair.silent = vec![0, 1];
    open(&mut pair.client, StreamKind::Object, &[1; 300_000]);
    pair.run(Duration::from_secs(12));
    assert_eq!((pair.client.pipes(), pair.client.end()), (2, None));
}

#[test]
fn pipes_beyond_the_width_carry_no_data() {
    let mut pair = Pair::new(3);
    pair.client.set_width(2);
    pair.carry(2, 10);
    // Pings and their answers.
    pair.answer(0);
    pair.carry(0, 10);
    open(&mut pair.server, StreamKind::Object, &[1; 1000]);
    open(&mut pair.client, StreamKind::Object, &[1; 1000]);
    assert!(!pair.client.has_task(2, pair.now) && !pair.server.has_task(2, pair.now));
    assert!(pair.client.has_task(1, pair.now) && pair.server.has_task(1, pair.now));
    // A pipe less, and the third one is among the first two.
    pair.client.lose_pipe(0, CloseReason::TimedOut);
    assert!(pair.client.has_task(2, pair.now));
}

#[test]
fn a_peer_that_confirms_nothing_gets_no_more_than_the_limit() {
    let mut pair = Pair::new(1);
    let mut all = 0;
    for _ in 0..2 * FRAMES_UNCONFIRMED_MAX {
        let id = open(&mut pair.client, StreamKind::Object, b"x");
        all += pair.carry(0, 2);
        // It has the object, and confirms no frame.
        let received = Header::bare(Kind::Received, id, 0);
        if pair.client.on_frame(0, (received, Vec::new()), pair.now).is_err() {
            break;
        }
        pair.client.drop_handle(id);
    }
    assert!(all <= FRAMES_UNCONFIRMED_MAX, "{all}");
    assert!(pair.client.pipes.kept_frames <= FRAMES_UNCONFIRMED_MAX + 2);
}

#[test]
fn false_confirmations_and_scattered_bytes_are_refused() {
    let mut pair = Pair::new(1);
    let confirmed = |payload: Vec<u8>| {
        let (id, length) = (StreamId(0), payload.len());
        (Header { kind: Kind::Confirmed, id, value: 0, length }, payload)
    };
    let now = pair.now;
    let mut too_many = 0_u32.to_le_bytes().to_vec();
    too_many.extend(9_u64.to_le_bytes());
    let error = pair.client.on_frame(0, confirmed(too_many), now).unwrap_err();
    assert!(error.contains("was not sent"), "{error}");
    assert!(pair.client.on_frame(0, confirmed(vec![0; 13]), now).is_err());
    let id = StreamId::new(0, StreamKind::Object, false);
    let each_other = (0..).map(|n| Header { kind: Kind::Data, id, value: 2 * n, length: 1 });
    let mut refused = each_other.map(|header| {
        let told = pair.server.on_frame(0, (header, vec![0]), now);
        read(&mut pair.server, id);
        told
    });
    let at = refused.position(|told| told.is_err()).unwrap();
    assert_eq!(at, 2 * FRAMES_UNCONFIRMED_MAX);
}

#[test]
fn each_pipe_says_that_the_connection_ends() {
    let mut pair = Pair::new(2);
    pair.client.close(7, "full");
    for pipe in [1, 0] {
        let task = pair.client.next_task(pipe, pair.now, 100);
        assert!(matches!(task, Task::WriteLast(header, _) if header.kind == Kind::Close));
        assert_eq!(pair.client.next_task(pipe, pair.now, 100), Task::End);
    }
}
