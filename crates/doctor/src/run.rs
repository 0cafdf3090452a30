//! `hikyaku doctor`: from arguments to a report.

use crate::args::DoctorArgs;
use crate::far::{self, Path};
use crate::local::{self, Load};
use crate::report::Report;
use crate::verdict::verdicts;
use anyhow::{Context, Result};
use hikyaku_console::{ExitCode, Form, Interrupt, Noise, Stream, Tone, print, say};
use std::io::{IsTerminal, stderr};

/// Checks this machine, and the path to a host if one is named.
///
/// # Errors
///
/// Standard output cannot be written, or no signal can be listened for. A check that fails is no error: it
/// determines the exit code.
pub fn run(args: &DoctorArgs, interrupt: &Interrupt) -> Result<ExitCode> {
    interrupt.listen().context("cannot listen for Ctrl-C")?;
    let scope = interrupt.scope();
    let before = Load::read();
    tell("checking this machine");
    let (mut checks, facts) = local::check(args.dir.as_deref());
    let mut path = Path::default();
    if let Some(host) = args.host.as_ref().filter(|_| scope.stop_cause().is_none()) {
        tell(&format!("checking the path to {}, about 10 s", host.host));
        let (more, measured) = far::check(args, host, &scope);
        checks.extend(more);
        path = measured;
    }
    interrupt.end_by_signal();
    checks.extend(before.until(Load::read()));
    let name = args.host.as_ref().map(|host| host.host.as_str());
    let report = Report::new(name.map(str::to_owned), verdicts(&facts, &path, name), checks);
    print(match args.form.form() {
        Form::Words if args.noise.noise() == Noise::Quiet => report.complaints(Stream::Output),
        Form::Words => report.text(Stream::Output),
        Form::Document | Form::Lines => report.json()?,
    })?;
    Ok(report.exit_code())
}

/// Shows the present step, on a terminal or to those who want details.
fn tell(what: &str) {
    say(if stderr().is_terminal() { Tone::Note } else { Tone::Detail }, what);
}
