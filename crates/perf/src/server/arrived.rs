//! The server of one test, started through ssh for a client that has come already.

use super::budget::{Budget, Host, Needs, Places};
use super::gather::{Gathered, refusal};
use super::{REFUSAL_TIMEOUT, Server};
use crate::args::{Common, Competitors, Rules, Stalls, Tests};
use crate::control::control;
use crate::message::{Hello, Message, RefusalKind};
use crate::output::Sink;
use crate::plan::Plan;
use crate::socket::Socket;
use crate::wait::Stop;
use anyhow::{Result, bail};
use hikyaku_console::Scope;
use hikyaku_reach::{Arrival, Loss, PathMemory, Readers, Service};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::time::{Duration, Instant};

/// The service that measures.
pub const SERVICE: Service = Service {
    name: "perf",
    streams_max: 16,
    readers: Readers::One,
    path_memory: PathMemory::Off,
    loss: Loss::Ends,
};

/// How long the client may take for its first message.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a pipe may take for the last word to a client that is refused.
const LAST_WORD: Duration = Duration::from_secs(5);
/// A client that has come through ssh has the rights of the user that it has logged in as. So it may do whatever one
/// connection allows.
const RULES: Rules = Rules {
    competitors: Competitors::Refused,
    stalls: Stalls::Allowed,
    tests: 1,
    time: None,
    rate: None,
    memory: None,
};

/// Runs the test of a near side that has come through ssh. It prints nothing: standard output belongs to ssh.
pub fn attend(arrival: Arrival) -> Result<()> {
    let socket = Socket::of(arrival.endpoint());
    let policy = arrival.tuning.policy.clone();
    let (connection, stream, _door) = arrival.split();
    let (Some(connection), Some(stream)) = (connection.clone().into_udp(), stream.into_udp())
    else {
        connection.close(
            hikyaku_net::code::APPLICATION,
            "a test needs UDP, and this is the channel of ssh",
        );
        connection.flush(LAST_WORD);
        return Ok(());
    };
    let (mut sender, mut reader) = control(stream);
    let until = Some(Instant::now() + HELLO_TIMEOUT);
    let Message::Hello(hello) = reader.receive(&Stop::default(), until)? else {
        bail!("the first message was not hello")
    };
    let places = Arc::new(Places::new(Budget::new(&RULES)));
    let host = Host::of(connection.remote_addr().ip());
    let place = match objection(&hello) {
        Some(reason) => Err((reason, RefusalKind::Always)),
        None => places.take(host, Needs::of(&hello.plan), Instant::now()),
    };
    let place = match place {
        Ok(place) => place,
        Err((reason, lasts)) => {
            sender.send(&Message::Refused { reason, lasts })?;
            return Ok(sender.finish(REFUSAL_TIMEOUT)?);
        }
    };
    place.add(&connection);
    let server = Server {
        args: Common::of_far_side(policy.as_deref())?,
        tests: Tests::One,
        rules: RULES,
        places,
        is_competing: AtomicBool::new(false),
        listener: None,
        socket,
        sink: Sink::silent(),
        scope: Scope::default(),
        count: AtomicU32::new(0),
        log: None,
        has_pair: AtomicBool::new(false),
    };
    server.test(Gathered {
        hello: *hello,
        connections: vec![connection],
        rivals: Vec::new(),
        control_channel: (sender, reader),
        place,
    });
    Ok(())
}

/// Why this test cannot be run, or `None`.
fn objection(hello: &Hello) -> Option<String> {
    refusal(hello, &RULES).or_else(|| has_more(&hello.plan, hello.pair.is_some()))
}

fn has_more(plan: &Plan, is_of_pair: bool) -> Option<String> {
    let has_more = is_of_pair || plan.connections() != 1;
    has_more.then(|| "a server that ssh has started takes one connection".to_owned())
}
