//! `lab run`: a lab that exists while one command runs.

use super::{TERMINATION_SIGNALS, end_by, program};
use crate::args::RunArgs;
use crate::namespace::Namespace;
use crate::running::Running;
use crate::{namespace, trouble};
use anyhow::{Result, bail};
use hikyaku_console::{At, Exit, ExitCode, print_error};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait for the server command to listen.
const SERVER_START_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval at which it is checked.
const SERVER_CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// How long a server command may take to end after SIGTERM.
const END_TIMEOUT: Duration = Duration::from_secs(3);

pub(super) fn run(args: &RunArgs) -> Result<Exit> {
    let [program, arguments @ ..] = &args.command[..] else { bail!("no command") };
    // Errors are reported before anything is created.
    program::check(program)?;
    let spec = args.lab.spec(None)?;
    let report_file = args.report.as_ref().map(|path| {
        let file = File::create(path).at(path.display());
        file.map(|file| (path, file))
    });
    let report_file = report_file.transpose()?;
    // From here on signals are queued, and the run ends in order and removes the lab.
    let mut signals = Signals::new(TERMINATION_SIGNALS)?;
    let lab = spec.up()?;
    let mut servers = match &args.server_cmd {
        Some(line) => match start_servers(&*lab, line, &mut signals)? {
            Started::Servers(servers) => servers,
            Started::Interrupted { signal } => {
                drop(lab);
                return end_by(signal);
            }
        },
        None => Vec::new(),
    };
    lab.restart()?;
    let mut command = lab.first().command(program);
    command.args(arguments).envs(lab.environment());
    let mut child = command.spawn().map_err(namespace::explain_ip)?;
    let status = wait(&mut child, &mut signals);
    let report = lab.status()?;
    end(&mut servers);
    drop(lab);
    if let Some((path, mut file)) = report_file {
        let text = serde_json::to_string_pretty(&report)?;
        writeln!(file, "{text}").at(path.display())?;
    }
    print_error(report);
    finish(status?)
}

/// The result of starting the server commands.
enum Started {
    Servers(Vec<Child>),
    /// A signal arrived first.
    Interrupted {
        signal: i32,
    },
}

/// A server command that does not listen yet.
struct Starting<'a> {
    place: &'a Namespace,
    /// Index among the child processes.
    index: usize,
}

/// The state of a starting server command.
enum ServerState {
    Listening,
    NotListening,
}

/// Runs `line` in a shell at each server and waits until all of them listen. A command that fails
/// is reported as soon as it has ended.
fn start_servers(lab: &dyn Running, line: &str, signals: &mut Signals) -> Result<Started> {
    let mut children = Vec::new();
    let mut starting = Vec::new();
    for place in lab.servers() {
        starting.push(Starting { place, index: children.len() });
        let mut command = place.command("sh");
        command.args(["-c", line]).envs(lab.environment());
        // The server's output would mix with that of the command, which the user wants to see.
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        children.push(child.map_err(namespace::explain_ip)?);
    }
    let deadline = Instant::now() + SERVER_START_TIMEOUT;
    loop {
        if let Some(signal) = signals.pending().next() {
            end(&mut children);
            return Ok(Started::Interrupted { signal });
        }
        let mut waiting = Vec::new();
        for server in starting {
            match server_state(&server, &mut children[server.index], line)? {
                ServerState::Listening => {}
                ServerState::NotListening => waiting.push(server),
            }
        }
        if waiting.is_empty() {
            return Ok(Started::Servers(children));
        }
        if Instant::now() >= deadline {
            let seconds = SERVER_START_TIMEOUT.as_secs();
            print_error(format!(
                "lab: '{line}' is not listening after {seconds} s; starting the command anyway\n"
            ));
            return Ok(Started::Servers(children));
        }
        starting = waiting;
        thread::sleep(SERVER_CHECK_INTERVAL);
    }
}

fn server_state(server: &Starting<'_>, child: &mut Child, line: &str) -> Result<ServerState> {
    // The process is checked before its sockets: a listener found afterwards may belong to a daemon
    // that it started.
    let ended = child.try_wait()?;
    if let Some(status) = ended.filter(|status| !status.success()) {
        return Err(failed(line, status));
    }
    if server.place.has_listener()? {
        return Ok(ServerState::Listening);
    }
    if ended.is_some() && server.place.is_idle() {
        bail!("the server command '{line}' ended without leaving a listener");
    }
    Ok(ServerState::NotListening)
}

fn failed(line: &str, status: ExitStatus) -> anyhow::Error {
    let text = format!("the server command '{line}' failed: {status}");
    // The shell's exit codes for a command that is not executable or does not exist.
    let no_command = [ExitCode::CannotExecute, ExitCode::NoCommand].map(Exit::from);
    match no_command.contains(&Exit::of_command(status)) {
        true => trouble::of(ErrorKind::InvalidInput, text),
        false => anyhow::Error::msg(text),
    }
}

/// Waits for the command and forwards signals to it.
fn wait(child: &mut Child, signals: &mut Signals) -> Result<ExitStatus> {
    let handle = signals.handle();
    let pid = Pid::from_child(child);
    thread::scope(|scope| {
        scope.spawn(|| {
            for signal in signals.forever() {
                // The terminal sends Ctrl-C to the command too; receiving SIGINT twice does no
                // harm.
                let signal = if signal == SIGINT { Signal::INT } else { Signal::TERM };
                let _ = kill_process(pid, signal);
            }
        });
        let status = child.wait();
        handle.close();
        Ok(status?)
    })
}

fn end(children: &mut [Child]) {
    for child in &*children {
        let _ = kill_process(Pid::from_child(child), Signal::TERM);
    }
    let deadline = Instant::now() + END_TIMEOUT;
    for child in children {
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// The command's exit code. If a signal ended it, this process ends by the same signal, or with the
/// code that a shell reports.
fn finish(status: ExitStatus) -> Result<Exit> {
    match status.signal() {
        Some(signal) if TERMINATION_SIGNALS.contains(&signal) => end_by(signal),
        _ => Ok(Exit::of_command(status)),
    }
}
