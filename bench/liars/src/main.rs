//! `liar ROLE NAME`: a far side of a copy that lies. It is run in the place of ssh, and speaks through standard
//! input and output as `hikyaku serve --stdio` does; its role is `greeting`, `sender` or `receiver`.
#![forbid(unsafe_code)]

use hikyaku_bench_liars::{Far, find, greeting, receiver, sender};
use std::io::{self, BufReader};
use std::process::ExitCode;
use std::time::Duration;

/// The near side has ended long before, or hangs.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [role, name] = words.as_slice() else { return ExitCode::FAILURE };
    match lie(role, name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn lie(role: &str, name: &str) -> io::Result<()> {
    let unknown = || io::Error::other(format!("no lie is called {role} {name}"));
    let (input, output) = (BufReader::new(io::stdin()), io::stdout());
    let mut far = Far { input: Box::new(input) as Box<_>, output: Box::new(output) as Box<_> };
    let held = match role {
        "greeting" => find(greeting::all(), name).ok_or_else(unknown)?(&mut far)?,
        _ => {
            let all = if role == "sender" { sender::all() } else { receiver::all() };
            let tell = find(all, name).ok_or_else(unknown)?;
            let (mut peer, door) = far.met()?;
            tell(&mut peer);
            Some((peer, door))
        }
    };
    if let Some((peer, _door)) = &held {
        peer.wait(PATIENCE);
    }
    Ok(())
}
