//! Lies of every sort are told to `hikyaku cp` and to `hikyaku serve`, over the channel of ssh and real datagrams:
//! the honest end comes to its end with a documented code, touches nothing outside its target, holds little, and
//! what it says to its user is short and plain.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

mod judge;
mod scene;

use hikyaku_bench_liars::{
    Asked, Ends, Lie, Options, Order, greeting, near, receiver, sender, with_order,
};
use judge::{Judged, MORE, judge, run};
use scene::Scene;
use std::sync::Mutex;
use std::thread;

/// Two at a time: there may be no more processors.
const TOGETHER: usize = 2;

/// Tells all these lies; says of each that went wrong what it was.
fn all<T: Send>(lies: Vec<Lie<T>>, tell: impl Fn(&Lie<T>) -> Result<(), String> + Sync) {
    let only = std::env::var("HK_LIE").ok();
    let wanted = |lie: &Lie<T>| only.as_ref().is_none_or(|name| name == lie.name);
    let left = Mutex::new(lies.into_iter().filter(wanted));
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..TOGETHER {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().next();
                    let Some(lie) = next else { return };
                    if let Err(why) = tell(&lie) {
                        wrong.lock().unwrap().push(format!("{}: {why}", lie.name));
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} lies:\n{}", wrong.len(), wrong.join("\n"));
}

/// What a user types to get what this lie is about.
fn get(scene: &Scene, asked: Asked) -> Vec<String> {
    let words: &[&str] = match asked {
        Asked::File => &["far:src/a"],
        Asked::Pattern => &["far:src/*.txt"],
        Asked::List => &["--files-from", "LIST", "far:src"],
        Asked::Tree => &["-r", "far:run7"],
        Asked::Archive | Asked::Anything => &["-a", "far:run7"],
        Asked::Rehearsal => &["-n", "-a", "far:run7"],
        Asked::Manifest => &["-a", "--manifest", "MANIFEST", "far:run7"],
    };
    words.iter().map(|word| scene.word(word)).chain([scene.path("target")]).collect()
}

/// The same for what is offered.
fn put(scene: &Scene, asked: Asked) -> Vec<String> {
    let words: &[&str] = match asked {
        Asked::Rehearsal => &["-n", "-a"],
        Asked::Manifest => &["-a", "--manifest", "MANIFEST"],
        _ => &["-a"],
    };
    let words = words.iter().map(|word| scene.word(word));
    words.chain([scene.path("offered/run7"), "far:".to_owned()]).collect()
}

/// Lets `hikyaku cp` meet a liar.
fn cp<T>(
    role: &str,
    lie: &Lie<T>,
    more: u64,
    words: fn(&Scene, Asked) -> Vec<String>,
) -> Result<(), String> {
    let scene = Scene::new(&format!("{role}-{}", lie.name));
    let judged = run(&mut scene.cp(role, lie.name, &words(&scene, lie.asked)), lie.ends);
    judge(&scene, &judged, (lie.asked, lie.ends), more)
}

#[test]
fn a_far_side_that_lies_when_it_greets() {
    all(greeting::all(), |lie| cp("greeting", lie, 0, get));
}

#[test]
fn a_far_side_that_sends_lies() {
    all(sender::all(), |lie| cp("sender", lie, 0, get));
}

#[test]
fn a_far_side_that_receives_and_lies() {
    all(receiver::all(), |lie| cp("receiver", lie, MORE, put));
}

#[test]
#[ignore = "with the others it takes more than a minute: cargo test -p hikyaku-bench-liars -- --ignored"]
fn a_sender_that_lies_to_who_is_in_between() {
    all(sender::all(), |lie| {
        // Nobody hears of what an object carries before it is opened: then it is only missing.
        let is_silence = ["ranges", "ranges-backwards", "crumbs"].contains(&lie.name);
        let ends = if is_silence { Ends::Stopped } else { lie.ends };
        let lie = Lie { ends, ..*lie };
        match lie.asked {
            Asked::Archive => cp("sender", &lie, MORE, |scene, _| {
                vec!["-a".into(), "far:run7".into(), format!("honest:{}", scene.path("target"))]
            }),
            _ => Ok(()),
        }
    });
}

#[test]
#[ignore = "with the others it takes more than a minute: cargo test -p hikyaku-bench-liars -- --ignored"]
fn a_receiver_that_lies_to_who_is_in_between() {
    all(receiver::all(), |lie| match lie.asked {
        Asked::Archive => cp("receiver", lie, MORE, |scene, _| {
            vec!["-a".into(), format!("honest:{}", scene.path("offered/run7")), "far:".into()]
        }),
        _ => Ok(()),
    });
}

/// Whose far side is `hikyaku serve`: its user is at the other end, and it says nothing to anybody.
fn serve(scene: &Scene, tell: impl FnOnce(near::Channel<'_>) -> near::Held) -> Judged {
    judge::serve(scene, tell)
}

#[test]
fn a_near_side_that_lies_when_it_begins() {
    all(near::all(), |lie| {
        let scene = Scene::new(&format!("near-{}", lie.name));
        let judged = serve(&scene, lie.tell);
        judge(&scene, &judged, (lie.asked, lie.ends), 0)
    });
}

#[test]
fn a_near_side_that_sends_lies() {
    all(sender::all(), |lie| {
        if lie.asked != Asked::Archive {
            return Ok(());
        }
        let scene = Scene::new(&format!("near-sender-{}", lie.name));
        let order = Order::Put { target: scene.path("target").into(), options: Options::archive() };
        let judged = serve(&scene, |channel| with_order(channel, &order, lie.tell));
        let is_true = lie.name != "truth" || scene.at("target/run7/true").exists();
        assert!(is_true, "the far side does not understand the order: {:?}", judged.stderr());
        judge(&scene, &judged, (Asked::Anything, Ends::Somehow), 0)
    });
}

#[test]
#[ignore = "with the others it takes more than a minute: cargo test -p hikyaku-bench-liars -- --ignored"]
fn a_near_side_that_receives_and_lies() {
    all(receiver::all(), |lie| {
        if lie.asked != Asked::Archive {
            return Ok(());
        }
        let scene = Scene::new(&format!("near-receiver-{}", lie.name));
        let sources = vec![scene.path("offered/run7").into()];
        let order = Order::Get { sources, options: Options::archive() };
        let judged = serve(&scene, |channel| with_order(channel, &order, lie.tell));
        judge(&scene, &judged, (lie.asked, Ends::Somehow), MORE)
    });
}
