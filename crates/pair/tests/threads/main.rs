//! The waits of a copy's threads, in every order of events that a processor may produce: the files of the crate, compiled once
//! more over models. No time passes in a model, so that the periodic checks for a fault cannot hide a lost wake-up.
#![allow(dead_code, unreachable_pub, reason = "files of the crate, of which not all is used here")]

#[path = "../../src/board.rs"]
mod board;
#[path = "../../src/pending.rs"]
mod pending;
#[path = "../../src/room.rs"]
mod room;

use board::Board;
use fault::Fault;
use pending::Pending;
use room::Room;
use std::sync::Arc;

/// A copy in which nothing fails.
mod fault {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct Stopped;

    pub(crate) struct Fault;

    impl Fault {
        pub(crate) fn is_there(&self) -> bool {
            false
        }
    }
}

mod sync {
    use loom::sync::atomic::AtomicBool;
    pub(crate) use loom::sync::{Condvar, Mutex};
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    /// A thread has a token that is kept until it parks. (That of `loom` wakes a thread from a lock as well.)
    pub(crate) mod thread {
        use super::{Arc, Condvar, Mutex};
        use std::sync::PoisonError;

        loom::thread_local! {
            static OWN: Thread = Thread(Arc::new((Mutex::new(false), Condvar::new())));
        }

        #[derive(Clone)]
        pub(crate) struct Thread(Arc<(Mutex<bool>, Condvar)>);

        impl Thread {
            pub(crate) fn unpark(&self) {
                *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
                self.0.1.notify_one();
            }
        }

        pub(crate) fn current() -> Thread {
            OWN.with(Clone::clone)
        }

        pub(crate) fn park() {
            let Thread(own) = current();
            let mut token = own.0.lock().unwrap_or_else(PoisonError::into_inner);
            while !std::mem::take(&mut *token) {
                token = own.1.wait(token).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// As in `hikyaku-net`, where it has models of its own.
    #[derive(Clone, Default)]
    pub(crate) struct Stop(Arc<AtomicBool>);

    impl Stop {
        pub(crate) fn set(&self) {
            self.0.store(true, Ordering::Release);
        }

        pub(crate) fn is_set(&self) -> bool {
            self.0.load(Ordering::Acquire)
        }
    }
}

/// All orders with at most three preemptions.
fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn what_is_pinned_is_taken() {
    explore(|| {
        let board = Arc::new(Board::default());
        let pins = {
            let board = board.clone();
            loom::thread::spawn(move || {
                board.pin(1, "one");
                board.pin(2, "two");
            })
        };
        assert_eq!(board.take(2, &Fault, &sync::Stop::default()), Ok("two"));
        assert_eq!(board.take(1, &Fault, &sync::Stop::default()), Ok("one"));
        pins.join().expect("it pins");
    });
}

#[test]
fn nobody_waits_for_what_will_not_be_pinned() {
    explore(|| {
        let (board, stop) = (Board::<&str>::default(), sync::Stop::default());
        board.pin(1, "one");
        stop.set();
        assert_eq!(board.take(1, &Fault, &stop), Ok("one"));
        assert_eq!(board.take(1, &Fault, &stop), Err(fault::Stopped));
    });
}

#[test]
fn who_waits_for_room_gets_it_when_it_is_given_back() {
    explore(|| {
        let room = Arc::new(Room::new(2));
        room.take(2);
        let others = [1, 9].map(|bytes| {
            let room = room.clone();
            loom::thread::spawn(move || {
                room.take(bytes);
                room.give(bytes);
            })
        });
        room.give(2);
        others.into_iter().for_each(|other| other.join().expect("it gets room"));
        room.take(2);
    });
}

/// Two threads that bring one thing each to its end.
fn two_under_way() -> (Arc<Pending>, [loom::thread::JoinHandle<()>; 2]) {
    let pending = Arc::new(Pending::default());
    let work = [(); 2].map(|()| {
        pending.add();
        let pending = pending.clone();
        loom::thread::spawn(move || pending.done())
    });
    (pending, work)
}

#[test]
fn who_waits_goes_on_when_nothing_is_under_way() {
    explore(|| {
        let (pending, work) = two_under_way();
        assert_eq!(pending.wait(&Fault), Ok(()));
        work.into_iter().for_each(|work| work.join().expect("it works"));
    });
}

#[test]
fn who_watches_is_told_when_nothing_is_under_way() {
    explore(|| {
        let (pending, work) = two_under_way();
        let stop = sync::Stop::default();
        pending.watch(&stop);
        while !stop.is_set() {
            sync::thread::park();
        }
        work.into_iter().for_each(|work| work.join().expect("it works"));
    });
}
