//! One test of a mesh: a server at one host, a client at another one.

use super::hosts::Host;
use super::{Measured, MeshArgs};
use anyhow::{Context, Error, Result, bail, ensure};
use hikyaku_console::{ExitCode, Scope};
use hikyaku_crypto::Fingerprint;
use hikyaku_fs::Shown;
use hikyaku_reach::NOT_THERE;
use serde_json::Value;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A login and the start of a program take at most this.
const START: Duration = Duration::from_secs(60);
/// A client takes at most this beside its test.
const BESIDE: Duration = Duration::from_secs(90);
/// Bytes that are read of a program there.
const OUTPUT_BYTES_MAX: u64 = 8 << 20;
/// A program that is told to end has this long.
const PAUSE: Duration = Duration::from_secs(2);
/// It is looked this often whether the user has stopped it.
const LOOK: Duration = Duration::from_millis(100);

/// The server at a host. Dropping it ends the server.
struct Server {
    child: Child,
    port: u16,
    key: Fingerprint,
}

/// Tests from one host to another one.
pub(super) fn test(args: &MeshArgs, (from, to): (usize, usize), scope: &Scope) -> Result<Measured> {
    let (from, to) = (&args.hosts.0[from], &args.hosts.0[to]);
    let server = Server::start(args, to, scope).with_context(|| format!("at {}", to.name))?;
    let verb = format!(
        "perf -c {} -p {} -t {} --peer-key {} -J",
        to.address, server.port, args.seconds, server.key
    );
    let (status, text) =
        client(args, from, &verb, scope).with_context(|| format!("at {}", from.name))?;
    let report: Value = serde_json::from_slice(&text)
        .with_context(|| format!("what {} says is no report", from.name))?;
    if let Some(error) = report["error"].as_str() {
        return Err(meaning(status).error(hikyaku_fs::brief(error)));
    }
    let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_f64);
    let figures = (number("/end/sum_received/bits_per_second"), number("/end/rtt_ms"));
    let (Some(received_bits_per_second), Some(rtt_ms)) = figures else {
        bail!("the report of {} has no figures", from.name)
    };
    let lost_percent = number("/end/lost_percent").unwrap_or_default();
    Ok(Measured { received_bits_per_second, rtt_ms, lost_percent })
}

/// What starts `hikyaku VERB` at a host.
fn command(args: &MeshArgs, host: &Host, verb: &str) -> Result<Command> {
    let words: Vec<OsString> = match &host.login {
        Some(login) => {
            let path = host.sent.as_deref().or(args.remote_path.as_deref());
            args.ssh.start(login, path, verb)?
        }
        None => {
            let program = std::env::current_exe().context("cannot find this program")?;
            let verb = verb.split_whitespace().map(OsString::from);
            [program.into_os_string()].into_iter().chain(verb).collect()
        }
    };
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    Ok(command)
}

impl Server {
    fn start(args: &MeshArgs, host: &Host, scope: &Scope) -> Result<Self> {
        let mut command = command(args, host, "perf -s -1 -p 0 --while-stdin")?;
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start a program")?;
        let mut starting = Starting(Some(child));
        let child = starting.0.as_mut().context("the program has ended")?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let output = output.context("the program has no output")?;
        let (say, said) = channel();
        thread::Builder::new()
            .name("perf-mesh".to_owned())
            .spawn(move || say.send(all(errors)))
            .context("cannot start a thread")?;
        let Some((port, key)) = starting.announced(output, scope)? else {
            let status = starting.0.as_mut().and_then(end).context("the program has ended")?;
            return Err(ended(status, &said.recv_timeout(PAUSE).unwrap_or_default()));
        };
        let child = starting.0.take().context("the program has ended")?;
        Ok(Self { child, port, key })
    }
}

/// A server that has not said yet where it listens.
struct Starting(Option<Child>);

impl Starting {
    /// The port and the key that the server prints; `None` if it ends before that.
    fn announced(&self, output: ChildStdout, scope: &Scope) -> Result<Option<(u16, Fingerprint)>> {
        let (say, hear) = channel();
        let read = move || {
            let mut lines = BufReader::new(output.take(OUTPUT_BYTES_MAX)).lines();
            let mut port = None;
            while let Some(Ok(line)) = lines.next() {
                if let Some(rest) = line.strip_prefix("listening on ") {
                    let address = rest.split_whitespace().next().unwrap_or_default();
                    port = address.rsplit(':').next().and_then(|port| port.parse().ok());
                } else if let Some(key) = line.strip_prefix("key ") {
                    let key = key.trim().parse::<Fingerprint>().ok();
                    let _ = say.send(port.zip(key));
                    break;
                }
            }
            // The server must not find its output closed.
            lines.for_each(drop);
        };
        thread::Builder::new()
            .name("perf-mesh".to_owned())
            .spawn(read)
            .context("cannot start a thread")?;
        let until = Instant::now() + START;
        loop {
            match hear.recv_timeout(LOOK) {
                Ok(announced) => return announced.context("what starts is no server").map(Some),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {
                    ensure!(scope.stop_cause().is_none(), "stopped by the user");
                    ensure!(Instant::now() < until, "no server within {} s", START.as_secs());
                }
            }
        }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.as_mut().and_then(end);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Ends a program: its standard input ends first, so that what it has started elsewhere ends as well.
fn end(child: &mut Child) -> Option<ExitStatus> {
    drop(child.stdin.take());
    let until = Instant::now() + PAUSE;
    while Instant::now() < until {
        if let Some(ended) = child.try_wait().transpose() {
            return ended.ok();
        }
        thread::sleep(Duration::from_millis(20));
    }
    let _ = child.kill();
    child.wait().ok()
}

/// Runs the client. Returns how it ended and what it has printed.
fn client(
    args: &MeshArgs,
    host: &Host,
    verb: &str,
    scope: &Scope,
) -> Result<(ExitStatus, Vec<u8>)> {
    let mut command = command(args, host, verb)?;
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start a program")?;
    let mut running = Starting(Some(child));
    let child = running.0.as_mut().context("the program has ended")?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let until = Instant::now() + BESIDE + Duration::from_secs_f64(args.seconds);
    thread::scope(|threads| {
        let output = threads.spawn(|| all(output));
        let errors = threads.spawn(|| all(errors));
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break Ok(status);
            }
            if scope.stop_cause().is_some() || Instant::now() >= until {
                let _ = child.kill();
                break Err(anyhow::anyhow!("the client did not end"));
            }
            thread::sleep(LOOK);
        };
        let (output, errors) = (output.join(), errors.join());
        let (output, errors) = (output.unwrap_or_default(), errors.unwrap_or_default());
        let status = status?;
        match output.is_empty() {
            true => Err(ended(status, &errors)),
            false => Ok((status, output)),
        }
    })
}

/// The error of a program that ended without what it was started for, and has said this.
fn ended(status: ExitStatus, said: &[u8]) -> Error {
    if status.code() == Some(NOT_THERE) {
        let text = "no hikyaku that can be started; try: --bootstrap, or hikyaku far install HOST";
        return ExitCode::WillFail.error(text);
    }
    let first = said.trim_ascii().split(|&byte| byte == b'\n').next().unwrap_or_default();
    meaning(status).error(format!("{status}: {}", Shown::new(first.trim_ascii())))
}

/// What the end of a program at a host means: the code is that of hikyaku, of a shell that does not find it, or of ssh, which
/// has 255 where it could not connect.
fn meaning(status: ExitStatus) -> ExitCode {
    match status.code() {
        Some(5 | 255) => ExitCode::MayPass,
        Some(1 | 6 | NOT_THERE | 126 | 127) => ExitCode::WillFail,
        _ => ExitCode::Failed,
    }
}

fn all(from: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What has come is told.
    let _ = from.map(|from| from.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes));
    bytes
}
