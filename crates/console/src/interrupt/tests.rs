//! Scopes and registrations, without a signal of the system.

use super::*;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Registers an action that reports `name`.
fn report(scope: &Scope, name: &'static str, to: &Sender<&'static str>) -> Registration {
    let to = to.clone();
    scope.on_stop(move || to.send(name).unwrap())
}

fn all(from: &Receiver<&'static str>) -> Vec<&'static str> {
    from.try_iter().collect()
}

#[test]
fn a_dropped_registration_removes_itself_and_no_other() {
    for dropped in [[0, 1], [1, 0], [0, 2], [2, 0], [1, 2], [2, 1]] {
        let (interrupt, (to, from)) = (Interrupt::default(), channel());
        let scope = interrupt.scope();
        let names = ["a", "b", "c"];
        let mut all_three: Vec<_> =
            names.iter().map(|name| Some(report(&scope, name, &to))).collect();
        for index in dropped {
            all_three[index] = None;
        }
        assert_eq!(interrupt.handle(SIGTERM), Response::Stops);
        assert_eq!(all(&from), [names[3 - dropped[0] - dropped[1]]], "{dropped:?}");
    }
}

#[test]
fn the_first_signal_stops_all_scopes_and_the_second_ends_the_process() {
    let (interrupt, (to, from)) = (Interrupt::default(), channel());
    let (one, other) = (interrupt.scope(), interrupt.scope());
    let _registrations = [report(&one, "one", &to), report(&other, "other", &to)];
    assert_eq!((one.stop_cause(), other.stop_cause()), (None, None));
    assert_eq!(interrupt.handle(SIGINT), Response::Stops);
    assert_eq!(all(&from), ["one", "other"]);
    assert_eq!(one.stop_cause(), Some(StopCause::Signal(SIGINT)));
    assert_eq!(interrupt.scope().stop_cause(), Some(StopCause::Signal(SIGINT)));
    assert_eq!(interrupt.handle(SIGTERM), Response::Ends);
    assert_eq!(all(&from), [""; 0]);
}

#[test]
fn a_signal_that_nothing_reacts_to_ends_the_process() {
    let interrupt = Interrupt::default();
    let scope = interrupt.scope();
    drop(scope.on_stop(|| {}));
    let (mut child, _registration) = sleeper(&scope);
    assert_eq!(interrupt.handle(SIGTERM), Response::Ends);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn stopping_a_scope_leaves_the_others_alone() {
    let (interrupt, (to, from)) = (Interrupt::default(), channel());
    let (one, other) = (interrupt.scope(), interrupt.scope());
    let _registrations = [report(&one, "one", &to), report(&other, "other", &to)];
    interrupt.stop(one.id());
    one.clone().stop();
    assert_eq!(all(&from), ["one"], "once");
    assert_eq!((one.stop_cause(), other.stop_cause()), (Some(StopCause::Request), None));
    assert_eq!(interrupt.handle(SIGTERM), Response::Stops, "no signal came before");
}

#[test]
fn an_action_of_a_stopped_scope_is_called_at_once() {
    let (interrupt, (to, from)) = (Interrupt::default(), channel());
    let scope = interrupt.scope();
    scope.stop();
    let _late = report(&scope, "late", &to);
    assert_eq!(all(&from), ["late"]);
    let _other = report(&interrupt.scope(), "other", &to);
    assert_eq!(all(&from), [""; 0]);
}

#[test]
fn an_action_may_register_and_drop() {
    let (interrupt, (to, from)) = (Interrupt::default(), channel());
    let scope = interrupt.scope();
    let held = Arc::new(Mutex::new(Some(scope.on_stop(|| {}))));
    let (inner, dropped) = (scope.clone(), held.clone());
    let _registration = scope.on_stop(move || {
        dropped.lock().unwrap().take();
        drop(report(&inner, "inner", &to));
    });
    interrupt.handle(SIGTERM);
    assert_eq!(all(&from), ["inner"]);
    assert!(held.lock().unwrap().is_none());
}

#[test]
fn a_stopped_scope_ends_its_child_processes_only() {
    let interrupt = Interrupt::default();
    let (one, other) = (interrupt.scope(), interrupt.scope());
    let (mut first, _first) = sleeper(&one);
    let (mut second, registration) = sleeper(&one);
    drop(registration);
    let (mut third, _third) = sleeper(&other);
    one.stop();
    let (mut fourth, _fourth) = sleeper(&one);
    for (child, signal) in [(&mut first, Some(SIGTERM)), (&mut fourth, Some(SIGTERM))] {
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap()), signal);
    }
    for child in [&mut second, &mut third] {
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_stopped_scope_ends_its_waits_only() {
    let interrupt = Interrupt::default();
    let (one, other) = (interrupt.scope(), interrupt.scope());
    let id = one.id();
    let waiting = thread::spawn(move || one.sleep(Duration::MAX));
    // If the scope is stopped before the thread waits, the wait ends at once.
    interrupt.stop(id);
    assert_eq!(waiting.join().unwrap(), Some(StopCause::Request));
    assert_eq!(other.sleep(Duration::ZERO), None);
}

fn sleeper(scope: &Scope) -> (Child, Registration) {
    scope.spawn(Command::new("sleep").arg("600")).unwrap()
}

#[test]
fn ignored_signals_are_those_of_this_process() {
    // SIGPIPE (13) is ignored in every program of Rust's standard library.
    assert_ne!(ignored_signals() & (1 << 12), 0);
    assert_eq!(ignored_signals() & (1 << 8), 0, "SIGKILL cannot be ignored");
}
