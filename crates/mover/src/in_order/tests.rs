//! Parts that come in any order leave in order.

use super::*;
use hikyaku_store::{ErrorKind, Finish, Found, Naming, StorePath, Token};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// A stream that tells what it takes, and waits each time until it may.
struct Slow {
    takes: Mutex<Sender<(u64, Vec<u8>)>>,
    may: Mutex<Receiver<Result<()>>>,
}

impl Draft for Slow {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.takes.lock().unwrap().send((at, bytes.to_vec())).unwrap();
        self.may.lock().unwrap().recv().unwrap()
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> Result<usize> {
        unreachable!("nothing is read back")
    }

    fn set_len(&self, _: u64) -> Result<()> {
        Ok(())
    }

    fn token(&self) -> Token {
        Token(Vec::new())
    }

    fn keep(&self) {}

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn name(self: Box<Self>, _: Naming, _: &Finish) -> Result<Found> {
        unreachable!("a stream has its name")
    }

    fn discard(self: Box<Self>) {}
}

/// What a slow stream takes.
type Taken = Receiver<(u64, Vec<u8>)>;

fn slow() -> (Slow, Taken, Sender<Result<()>>) {
    let ((takes, taken), (let_go, may)) = (channel(), channel());
    (Slow { takes: Mutex::new(takes), may: Mutex::new(may) }, taken, let_go)
}

#[test]
fn parts_that_come_early_wait_for_those_before_them() {
    let (stream, taken, let_go) = slow();
    let order = InOrder::default();
    (0..4).for_each(|_| let_go.send(Ok(())).unwrap());
    order.write(&stream, (2, b"cd"), &|_, _| ()).unwrap();
    order.write(&stream, (6, b"g"), &|_, _| ()).unwrap();
    assert_eq!((taken.try_iter().count(), order.progress()), (0, (0, false)));
    let lengths = Mutex::new(Vec::new());
    let on_taken = |piece, taken| lengths.lock().unwrap().push((piece, taken));
    order.write(&stream, (0, b"ab"), &on_taken).unwrap();
    assert_eq!(*lengths.lock().unwrap(), [(2, 2), (2, 4)], "each piece is reported");
    assert_eq!(order.progress(), (4, false));
    order.write(&stream, (4, b"ef"), &|_, _| ()).unwrap();
    let all: Vec<_> = taken.try_iter().collect();
    let parts = [(0, b"ab".to_vec()), (2, b"cd".to_vec()), (4, b"ef".to_vec()), (6, b"g".to_vec())];
    assert_eq!(all, parts);
    assert_eq!(order.progress(), (7, false));
    order.wait().unwrap();
}

#[test]
fn who_brings_more_while_the_reader_is_slow_does_not_wait() {
    let (stream, taken, let_go) = slow();
    let order = InOrder::default();
    thread::scope(|scope| {
        let pours = scope.spawn(|| order.write(&stream, (0, b"ab"), &|_, _| ()));
        assert_eq!(taken.recv().unwrap(), (0, b"ab".to_vec()));
        order.write(&stream, (2, b"cd"), &|_, _| ()).unwrap();
        assert_eq!(order.progress(), (0, true));
        let waits = scope.spawn(|| order.wait());
        (0..2).for_each(|_| let_go.send(Ok(())).unwrap());
        assert_eq!((pours.join().unwrap(), waits.join().unwrap()), (Ok(()), Ok(())));
    });
    assert_eq!(order.progress(), (4, false));
}

#[test]
fn a_reader_that_goes_away_is_told_to_everybody() {
    let (stream, _taken, let_go) = slow();
    let order = InOrder::default();
    let gone = StoreError::new("write", &StorePath::ROOT, ErrorKind::Gone);
    order.write(&stream, (2, b"cd"), &|_, _| ()).unwrap();
    let_go.send(Err(gone.clone())).unwrap();
    assert_eq!(order.write(&stream, (0, b"ab"), &|_, _| ()), Err(gone.clone()));
    assert_eq!(order.write(&stream, (4, b"ef"), &|_, _| ()), Err(gone.clone()));
    assert_eq!(order.wait(), Err(gone));
}

#[test]
fn no_more_is_fetched_ahead_than_a_limit_of_the_rate_brings_in_a_second() {
    let rate = |mbit: u64| Some(Rate::from_bits_per_sec(mbit * 1_000_000));
    for (rate, bytes) in
        [(None, 128 << 20), (rate(10_000), 128 << 20), (rate(320), 40_000_000), (rate(1), 16 << 20)]
    {
        assert_eq!(window(rate).bytes(), bytes, "{rate:?}");
    }
}
