//! No thread sleeps while work for it is queued.

use crate::budget::Budget;
use crate::command::{Command, Key, Order, Stray};
use crate::error::WriteError;
use crate::inbox::{Inbox, Item};
use crate::link::{Handle, Link, StreamLink};
use crate::lobby::{Guest, Lobby};
use crate::mailbox::Mailbox;
use crate::notify::{Notify, Place};
use crate::outbox::{Intent, Outbox, Verdict};
use crate::park::{self, Cut, Stop};
use crate::reply::ask;
use crate::sync::{Bell, block_on, thread};
use bytes::Bytes;
use hikyaku_proto::{CloseReason, Config, StreamId};
use hikyaku_units::DataSize;
use loom::sync::atomic::AtomicBool;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Context;

/// All orders with at most three preemptions.
fn explore(model: impl Fn() + Sync + Send + 'static) {
    explore_with(3, model);
}

/// All orders with at most `preemptions` preemptions: three threads have too many others.
fn explore_with(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// A driver that sleeps when there is nothing to do, until `attend` has seen enough.
fn drive(mailbox: &Mailbox, bell: &Bell, mut attend: impl FnMut(Command) -> bool) {
    loop {
        while let Some(command) = mailbox.receive() {
            if attend(command) {
                return;
            }
        }
        if mailbox.lie_down() {
            bell.wait();
            mailbox.get_up();
        }
    }
}

fn touch(key: u32) -> Command {
    Command::For(Key(key), Order::Touch)
}

#[test]
fn a_driver_wakes_for_every_command() {
    explore_with(2, || {
        let bell = Bell::new();
        let mailbox = Arc::new(Mailbox::new(bell.clone()));
        let senders: Vec<_> = [1, 2]
            .map(|key| {
                let mailbox = mailbox.clone();
                loom::thread::spawn(move || mailbox.send(touch(key)))
            })
            .into();
        let mut got = 0;
        drive(&mailbox, &bell, |_| {
            got += 1;
            got == 2
        });
        senders.into_iter().for_each(|sender| sender.join().expect("it sends"));
    });
}

#[test]
fn a_driver_wakes_for_every_message_that_others_have_received() {
    explore_with(2, || {
        let bell = Bell::new();
        let mailbox = Arc::new(Mailbox::new(bell.clone()));
        let givers: Vec<_> = [1, 2]
            .map(|number| {
                let mailbox = mailbox.clone();
                loom::thread::spawn(move || mailbox.pass(Stray(number)))
            })
            .into();
        let mut got = Vec::new();
        while got.len() < 2 {
            while let Some(Stray(number)) = mailbox.stray() {
                got.push(number);
            }
            if got.len() < 2 && mailbox.lie_down() {
                bell.wait();
                mailbox.get_up();
            }
        }
        got.sort_unstable();
        assert_eq!(got, [1, 2]);
        givers.into_iter().for_each(|giver| giver.join().expect("it gives"));
    });
}

#[test]
fn drivers_that_give_each_other_messages_hold_up_neither() {
    explore_with(2, || {
        let boxes = Arc::new([(); 2].map(|()| {
            let bell = Bell::new();
            (Mailbox::new(bell.clone()), bell)
        }));
        let driver = |own: usize, boxes: &[(Mailbox, Bell); 2]| {
            boxes[1 - own].0.pass(Stray(7));
            let (mailbox, bell) = &boxes[own];
            while mailbox.stray().is_none() {
                if mailbox.lie_down() {
                    bell.wait();
                    mailbox.get_up();
                }
            }
        };
        let other = {
            let boxes = boxes.clone();
            loom::thread::spawn(move || driver(1, &boxes))
        };
        driver(0, &boxes);
        other.join().expect("it ends");
    });
}

#[test]
fn nothing_stays_in_the_mailbox_of_a_driver_that_is_gone() {
    explore(|| {
        let mailbox = Arc::new(Mailbox::new(Bell::new()));
        let sender = {
            let mailbox = mailbox.clone();
            loom::thread::spawn(move || {
                mailbox.send(touch(1));
                mailbox.pass(Stray(2));
            })
        };
        mailbox.close();
        sender.join().expect("it sends");
        assert_eq!((mailbox.receive(), mailbox.stray()), (None, None));
    });
}

#[test]
fn all_that_wait_are_woken() {
    explore_with(1, || {
        let shared = Arc::new((Notify::default(), AtomicBool::new(false)));
        let waiters: Vec<_> = [(); 2]
            .map(|()| {
                let shared = shared.clone();
                loom::thread::spawn(move || {
                    let place = Arc::new(Place::default());
                    block_on(poll_fn(|context| {
                        let (notify, is_set) = &*shared;
                        notify
                            .poll(&place, context, || is_set.load(Ordering::Acquire).then_some(()))
                    }));
                })
            })
            .into();
        shared.1.store(true, Ordering::Release);
        shared.0.wake_all();
        waiters.into_iter().for_each(|waiter| waiter.join().expect("it wakes"));
    });
}

#[test]
fn one_that_waits_is_woken_again_and_again() {
    explore(|| {
        let shared = Arc::new((Notify::default(), AtomicBool::new(false), AtomicBool::new(false)));
        let waiter = {
            let shared = shared.clone();
            loom::thread::spawn(move || {
                let place = Arc::new(Place::default());
                block_on(poll_fn(|context| {
                    let (notify, one, two) = &*shared;
                    let are_set = || one.load(Ordering::Acquire) && two.load(Ordering::Acquire);
                    notify.poll(&place, context, || are_set().then_some(()))
                }));
            })
        };
        for flag in [&shared.1, &shared.2] {
            flag.store(true, Ordering::Release);
            shared.0.wake_all();
        }
        waiter.join().expect("it wakes");
    });
}

#[test]
fn an_answer_is_heard_or_that_there_is_none() {
    for answers in [true, false] {
        explore(move || {
            let (reply, question) = ask();
            let driver = loom::thread::spawn(move || {
                if answers {
                    reply.send(7);
                }
            });
            assert_eq!(block_on(question), answers.then_some(7));
            driver.join().expect("it answers");
        });
    }
}

#[test]
fn a_reader_gets_every_item_and_the_end() {
    explore(|| {
        let inbox = Arc::new(Inbox::default());
        let driver = {
            let inbox = inbox.clone();
            loom::thread::spawn(move || {
                inbox.push(Item::Reset(1));
                inbox.wake();
                inbox.push(Item::Lost(CloseReason::Local));
                inbox.wake();
            })
        };
        let next = || block_on(poll_fn(|context| inbox.poll(context)));
        assert!(matches!(next(), Item::Reset(1)));
        assert!(matches!(next(), Item::Lost(_)));
        driver.join().expect("it pushes");
    });
}

static MEGABYTE: [u8; 1 << 20] = [0; 1 << 20];

#[test]
fn a_writer_waits_for_room_and_gets_it() {
    explore(|| {
        let outbox = Arc::new(Outbox::new());
        let budget = plenty();
        let driver = {
            let (outbox, budget) = (outbox.clone(), budget.clone());
            loom::thread::spawn(move || {
                let mut got = 0;
                while got < 2 {
                    match outbox.pop(&budget) {
                        Some(_) => {
                            got += 1;
                            outbox.on_popped();
                        }
                        None => loom::thread::yield_now(),
                    }
                }
                outbox.settle(Verdict::Delivered);
            })
        };
        for _ in 0..2 {
            let room = |context: &mut Context<'_>| outbox.poll_room(context, &budget, || ());
            block_on(poll_fn(room)).expect("room");
            outbox.push(Bytes::from_static(&MEGABYTE), &budget);
        }
        assert_eq!(block_on(poll_fn(|context| outbox.poll_delivered(context))), Ok(()));
        driver.join().expect("it pops");
    });
}

#[test]
fn a_writer_hears_of_a_failure_while_it_waits() {
    explore(|| {
        let outbox = Arc::new(Outbox::new());
        let budget = plenty();
        outbox.push(Bytes::from_static(&MEGABYTE), &budget);
        let driver = {
            let (outbox, budget) = (outbox.clone(), budget.clone());
            loom::thread::spawn(move || {
                let _ = outbox.pop(&budget);
                outbox.settle(Verdict::Failed(WriteError::Finished));
            })
        };
        let room = block_on(poll_fn(|context| outbox.poll_room(context, &budget, || ())));
        // It may come between the two.
        if room.is_ok() {
            let end = block_on(poll_fn(|context| outbox.poll_delivered(context)));
            assert_eq!(end, Err(WriteError::Finished));
        }
        driver.join().expect("it ends");
    });
}

/// More than any test writes.
fn plenty() -> Arc<Budget> {
    Arc::new(Budget::new(Config::default().send_buffer))
}

#[test]
fn a_writer_waits_for_its_turn_of_the_budget() {
    explore(|| {
        let budget = Arc::new(Budget::new(DataSize::from_bytes(1000)));
        let [first, second] = [0, 4].map(|id| StreamLink::new(StreamId(id)));
        first.outbox.push(Bytes::from_static(&[0; 1000]), &budget);
        let driver = {
            let (first, budget) = (first.clone(), budget.clone());
            loom::thread::spawn(move || {
                assert!(first.outbox.pop(&budget).is_some());
                budget.wake();
            })
        };
        let wait = || budget.wait(&second);
        block_on(poll_fn(|context| second.outbox.poll_room(context, &budget, wait))).expect("room");
        driver.join().expect("it pops");
    });
}

fn link(bell: &Bell) -> Arc<Link> {
    let mailbox = Arc::new(Mailbox::new(bell.clone()));
    let nowhere = "192.0.2.1:1".parse().expect("an address");
    Link::new(Key(1), mailbox, nowhere, &Config::default())
}

#[test]
fn what_is_written_before_the_end_is_taken_before_it() {
    explore(|| {
        let bell = Bell::new();
        let link = link(&bell);
        let writer = {
            let link = link.clone();
            loom::thread::spawn(move || {
                let stream = StreamLink::new(StreamId(0));
                for _ in 0..2 {
                    stream.outbox.push(Bytes::from_static(b"part"), &link.budget);
                    link.touch(&stream);
                }
                stream.outbox.set_intent(Intent::Finish);
                link.touch(&stream);
            })
        };
        let mut got = 0;
        drive(&link.mailbox, &bell, |_| {
            let mut is_over = false;
            link.attend();
            while let Some(stream) = link.next_ready() {
                let intent = stream.outbox.intent();
                while stream.outbox.pop(&link.budget).is_some() {
                    got += 1;
                }
                is_over |= intent == Intent::Finish;
            }
            is_over
        });
        assert_eq!(got, 2);
        writer.join().expect("it writes");
    });
}

#[test]
fn what_applications_take_is_told_to_the_driver() {
    explore(|| {
        let bell = Bell::new();
        let link = link(&bell);
        let stream = StreamLink::new(StreamId(0));
        // One step of the connection is a megabyte with these settings, and one of the stream more.
        stream.inbox.set_told(0, 4_000_000);
        let takes = [700_000, 500_000];
        let reader = {
            let (link, stream) = (link.clone(), stream.clone());
            loom::thread::spawn(move || {
                for bytes in takes {
                    link.on_taken(&stream, bytes);
                }
            })
        };
        let mut told = 0;
        drive(&link.mailbox, &bell, |_| {
            link.attend();
            while let Some(stream) = link.next_ready() {
                told = stream.inbox.taken();
            }
            told > 0
        });
        assert_eq!(told, 1_200_000);
        reader.join().expect("it takes");
    });
}

#[test]
fn a_thread_that_parks_is_woken_by_what_it_waits_for() {
    explore(|| {
        let inbox = Arc::new(Inbox::default());
        let driver = {
            let inbox = inbox.clone();
            loom::thread::spawn(move || {
                inbox.push(Item::End);
                inbox.wake();
            })
        };
        assert!(matches!(park::block_on(poll_fn(|context| inbox.poll(context))), Item::End));
        driver.join().expect("it pushes");
    });
}

#[test]
fn a_thread_that_parks_is_stopped() {
    explore(|| {
        let stop = Stop::default();
        let other = {
            let (stop, waiter) = (stop.clone(), thread::current());
            loom::thread::spawn(move || {
                stop.set();
                waiter.unpark();
            })
        };
        assert_eq!(park::wait(pending::<()>(), &stop, None), Err(Cut::Stopped));
        other.join().expect("it stops");
    });
}

#[test]
fn who_accepts_meets_every_guest_and_then_the_end() {
    explore_with(2, || {
        let bell = Bell::new();
        let lobby = Arc::new(Lobby::default());
        let driver = {
            let (lobby, link) = (lobby.clone(), link(&bell));
            loom::thread::spawn(move || {
                assert!(lobby.enter(Guest { handle: Handle { link }, shown: None }).is_ok());
                lobby.close();
            })
        };
        let place = Arc::new(Place::default());
        let next = || block_on(poll_fn(|context| lobby.poll(&place, context)));
        assert!(next().is_ok(), "who came before the end");
        assert!(next().is_err());
        driver.join().expect("it closes");
    });
}
