//! `lab run`: a lab for the length of one command.

use crate::args::RunArgs;
use crate::lab::{Lab, Side};
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take before it listens.
const SERVER_PATIENCE: Duration = Duration::from_secs(5);
/// How long a command may take to end when told to.
const END_PATIENCE: Duration = Duration::from_secs(3);

pub(super) fn run(args: &RunArgs) -> Result<ExitCode> {
    // From here on signals are noted and end the run in order, so that nothing stays behind.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let lab = Lab::up(args.lab.spec(None)?)?;
    let mut server = args.server_cmd.as_ref().map(|line| start_server(&lab, line)).transpose()?;
    lab.restart()?;
    let [program, arguments @ ..] = &args.command[..] else { bail!("no command") };
    let mut child = lab
        .command(Side::Client, program)
        .args(arguments)
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let status = wait(&mut child, &mut signals);
    let report = lab.report()?;
    if let Some(server) = &mut server {
        end(server);
    }
    drop(lab);
    if let Some(path) = &args.report {
        let mut text = serde_json::to_string_pretty(&report)?;
        text.push('\n');
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    eprint!("{report}");
    status.map(exit_code)
}

/// Runs `line` by the shell at the first server, and waits until it listens.
fn start_server(lab: &Lab, line: &str) -> Result<Child> {
    let mut command: Command = lab.command(Side::Server(1), "sh");
    // Its output would mix with that of the command, which is the one that users look at.
    let mut server = command
        .args(["-c", line])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .context("cannot run the server command")?;
    let listens = lab.wait_for_listener(Side::Server(1), SERVER_PATIENCE)?;
    if let Some(status) = server.try_wait()? {
        bail!("the server command '{line}' ended at once: {status}");
    }
    if !listens {
        eprintln!("lab: '{line}' does not listen yet; going on");
    }
    Ok(server)
}

/// Waits for the command, and passes signals on to it.
fn wait(child: &mut Child, signals: &mut Signals) -> Result<ExitStatus> {
    let handle = signals.handle();
    let pid = Pid::from_child(child);
    thread::scope(|scope| {
        scope.spawn(|| {
            for signal in signals.forever() {
                // The terminal has sent its Ctrl-C to the command as well; a second does no harm.
                let signal = if signal == SIGINT { Signal::INT } else { Signal::TERM };
                let _ = kill_process(pid, signal);
            }
        });
        let status = child.wait();
        handle.close();
        Ok(status?)
    })
}

fn end(child: &mut Child) {
    let _ = kill_process(Pid::from_child(child), Signal::TERM);
    let deadline = Instant::now() + END_PATIENCE;
    while Instant::now() < deadline {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// The code that a shell gives: 128 and the signal's number, if one ended the command.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
