//! Checks that need a host: ssh, the program there, UDP, and the path.

use crate::args::DoctorArgs;
use crate::check::{Check, Id, State};
use anyhow::Error;
use hikyaku_console::{ExitCode, Form, Scope, causes, headline};
use hikyaku_fs::Shown;
use hikyaku_perf::{Direction, Measured, TestedPath};
use hikyaku_reach::bootstrap::{Asking, Delivery};
use hikyaku_reach::{
    Destination, Errors, NO_CONNECTION, NOT_THERE, NoAnswer, Question, ReachError, SftpServer,
    SshOptions, settings,
};
use hikyaku_udp::SocketOptions;
use std::io;
use std::time::Instant;

/// Measurements of the path.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Path {
    pub(crate) up: Option<Measured>,
    pub(crate) down: Option<Measured>,
}

/// Part of the answer of an ssh server that admits SFTP only.
const ONLY_SFTP: &str = "sftp connections only";
/// From this share of dropped datagrams on the drops count as harm.
const HARM: f64 = 0.001;
/// Bytes of a full datagram, for a share of datagrams.
const DATAGRAM_BYTES: f64 = 1_400.0;

/// How the program of the other host is started.
struct Way {
    /// How ssh gets there.
    ssh: SshOptions,
    /// Where the program is, if ssh is not to look for it.
    remote_path: Option<String>,
}

/// The hikyaku of the other host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Program {
    /// It runs.
    Runs,
    /// The host runs commands, and has none.
    Missing,
    /// The host was not reached, or runs no commands.
    Unknown,
}

/// Runs all checks.
pub(crate) fn check(args: &DoctorArgs, host: &Destination, scope: &Scope) -> (Vec<Check>, Path) {
    let mut way = Way { ssh: args.ssh(), remote_path: args.remote_path.clone() };
    let (mut checks, mut found) = login(&way, host, scope);
    let mut path = Path::default();
    // The tests share the login of the server by which a program was sent, if there is one.
    let _server = match found == Program::Missing {
        true => match sent(args, (&way.ssh, host), scope) {
            Ok(Some((place, server))) => {
                way = Way { ssh: server.ssh(&way.ssh), remote_path: Some(place) };
                (checks, found) = login(&way, host, scope);
                Some(server)
            }
            Ok(None) => None,
            Err(check) => {
                checks.retain(|check| check.id != Id::FarProgram);
                checks.push(check);
                None
            }
        },
        false => None,
    };
    if found != Program::Runs {
        return (checks, path);
    }
    let (remote_path, udp_ports) = (way.remote_path.as_deref(), args.udp_ports.clone());
    let tested = TestedPath { host, ssh: &way.ssh, remote_path, udp_ports };
    match tested.measure(Direction::Upload, scope) {
        Ok(measured) => path.up = Some(measured),
        Err(error) => {
            checks.push(not_measured(&error, host));
            return (checks, path);
        }
    }
    match tested.measure(Direction::Download, scope) {
        Ok(measured) => path.down = Some(measured),
        Err(error) => checks.push(not_measured(&error, host)),
    }
    checks.push(Check::ok(Id::Udp, "gets through, encrypted, in both directions"));
    checks.extend(path.checks(&host.host));
    (checks, path)
}

/// Sends hikyaku to a host that has none, if the user wants that. Returns its path on that host.
fn sent(
    args: &DoctorArgs,
    (ssh, host): (&SshOptions, &Destination),
    scope: &Scope,
) -> Result<Option<(String, SftpServer)>, Check> {
    let fail = |found: String| Check::new(Id::FarProgram, State::Fail, found);
    let offer = settings::of_user().map_err(anyhow::Error::from);
    let offer = offer.and_then(|settings| args.bootstrap.offer(&settings, &host.host));
    let mut offer = offer.map_err(|error| fail(headline(&error)))?;
    if args.form.form() != Form::Words {
        offer.asking = Asking::Never;
    }
    match offer.deliver((ssh, host), scope) {
        Delivery::Done { path, server } => Ok(Some((path, server))),
        Delivery::NotAllowed => Ok(None),
        Delivery::Failed(why) => {
            let (check, remedy) = (fail(why.to_string()), why.remedy());
            let remedy = remedy.as_deref().and_then(|remedy| remedy.strip_prefix("try: "));
            Err(match remedy {
                Some(remedy) => check.with_remedy(remedy),
                None => check,
            })
        }
    }
}

/// Logs in and asks the program there for its version.
fn login(
    Way { ssh, remote_path }: &Way,
    host: &Destination,
    scope: &Scope,
) -> (Vec<Check>, Program) {
    let fail = |found: String| (vec![Check::new(Id::Ssh, State::Fail, found)], Program::Unknown);
    let path = remote_path.as_deref();
    let question = match Question::to_hikyaku(ssh, (host, path), "--version") {
        Ok(question) => question.with_errors(Errors::Kept),
        Err(error) => return fail(error.to_string()),
    };
    let begin = Instant::now();
    let answer = match question.ask(scope) {
        Ok(answer) => answer,
        Err(error @ NoAnswer::Spawn { .. }) => return fail(causes(&error.into())),
        Err(error) => return fail(format!("{host}: {error}")),
    };
    let seconds = begin.elapsed().as_secs_f64();
    let (said, code) = (on_one_line(&answer.errors), answer.code);
    if code == Some(NO_CONNECTION) {
        let found = format!("no login to {host}: {said}");
        let check = Check::new(Id::Ssh, State::Fail, found).with_remedy(ssh.by_hand(host));
        return (vec![check.passing()], Program::Unknown);
    }
    let found = format!("a login to {host} and the start of a program take {seconds:.1} s");
    let login = Check::ok(Id::Ssh, found).measured(seconds, "s");
    let printed = String::from_utf8_lossy(&answer.text);
    let (program, found) = program(&printed, &said, code, host);
    (vec![login, program], found)
}

/// The standard error of a program; ssh ends its lines by a carriage return as well.
fn on_one_line(printed: &[u8]) -> String {
    let lines = printed.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let lines = lines.filter(|line| !line.is_empty());
    lines.map(|line| Shown::new(line).to_string()).collect::<Vec<_>>().join("; ")
}

/// The check of the other host's answer to `hikyaku --version`.
fn program(printed: &str, said: &str, code: Option<i32>, host: &Destination) -> (Check, Program) {
    let version = printed.lines().rev().find_map(|line| line.strip_prefix("hikyaku "));
    let fail = |found: String, remedy: &str| {
        let check = Check::new(Id::FarProgram, State::Fail, found).with_remedy(remedy);
        (check, Program::Unknown)
    };
    let name = &host.host;
    match (version, code) {
        (Some(version), Some(0)) if version == env!("CARGO_PKG_VERSION") => (
            Check::ok(Id::FarProgram, format!("hikyaku {version}, as on this host")),
            Program::Runs,
        ),
        (Some(version), Some(0)) => {
            let version = Shown::new(version.as_bytes());
            let found = format!("hikyaku {version}; this host has {}", env!("CARGO_PKG_VERSION"));
            (Check::new(Id::FarProgram, State::Note, found), Program::Runs)
        }
        _ if printed.contains(ONLY_SFTP) || said.contains(ONLY_SFTP) || code == Some(11) => fail(
            format!("{name} admits SFTP only"),
            "copy by SFTP: hikyaku cp does so by itself; or ask for hikyaku and a shell on that host",
        ),
        (_, Some(NOT_THERE | 126 | 127)) => {
            let remedy = format!(
                "--bootstrap, which installs it; or hikyaku far install {host}, or where it is: --remote-path PATH"
            );
            let check =
                Check::new(Id::FarProgram, State::Fail, format!("hikyaku is not on {name}"));
            (check.with_remedy(remedy), Program::Missing)
        }
        _ => fail(
            format!("{name} did not answer 'hikyaku --version' (exit code {code:?})"),
            "a start-up file of the remote shell may print something or end it",
        ),
    }
}

/// The error of a host that was not reached. An I/O error that timed out holds it, so that it has the exit code of one.
fn of_reach<'a>(link: &'a (dyn std::error::Error + 'static)) -> Option<&'a ReachError> {
    match link.downcast_ref::<io::Error>() {
        Some(error) => error.get_ref()?.downcast_ref(),
        None => link.downcast_ref(),
    }
}

fn not_measured(error: &Error, host: &Destination) -> Check {
    let text = causes(error);
    if let Some(ReachError::NoUdp { ports, .. }) = error.chain().find_map(of_reach) {
        let remedy = format!(
            "let UDP ports {} to {} through between this host and {}, or one port by --udp-ports; without it, \
             copies go over TCP or through ssh",
            ports.start(),
            ports.end(),
            host.host
        );
        return Check::new(Id::Udp, State::Fail, text).with_remedy(remedy);
    }
    let check = Check::new(Id::PathUp, State::Fail, text);
    if ExitCode::of(error, &[]) == ExitCode::MayPass { check.passing() } else { check }
}

impl Path {
    /// The checks of the path.
    fn checks(&self, host: &str) -> Vec<Check> {
        let mut checks = Vec::new();
        let Some(measured) = self.up.as_ref().or(self.down.as_ref()) else { return checks };
        let (rtt, queue) = (measured.base_rtt_ms, measured.queue_ms);
        let found = format!("{rtt:.1} ms, and {queue:.1} ms more under load");
        checks.push(Check::ok(Id::Rtt, found).measured(rtt, "ms"));
        checks.push(self.loss());
        let rate = |id, measured: &Measured, way: &str| {
            let bits = measured.bits_per_second;
            let shown = hikyaku_units::Rate::from_bits_per_sec(bits as u64);
            Check::ok(id, format!("{shown} {way} {host}")).measured(bits, "bit/s")
        };
        checks.extend(self.up.as_ref().map(|measured| rate(Id::PathUp, measured, "to")));
        checks.extend(self.down.as_ref().map(|measured| rate(Id::PathDown, measured, "from")));
        checks.push(self.drops(host));
        checks
    }

    fn loss(&self) -> Check {
        let both = || [&self.up, &self.down].into_iter().flatten();
        let most = |of: fn(&Measured) -> f64| both().map(of).fold(0.0, f64::max);
        let (lost, ambient) = (most(|one| one.lost_percent), most(|one| one.ambient_loss_percent));
        let found = format!("{lost:.2} % of the packets, {ambient:.2} % not by congestion");
        let state = if ambient >= 0.01 { State::Note } else { State::Ok };
        Check::new(Id::Loss, state, found).measured(lost, "%")
    }

    /// Datagrams that arrived at a host and were dropped there, because its socket buffer was full.
    fn drops(&self, host: &str) -> Check {
        let asked = SocketOptions::default().recv_buffer.bytes();
        let near = self.down.as_ref().map(|measured| {
            let near = measured.near;
            (share(near.drops, measured), near.granted_recv_buffer, "this machine")
        });
        let far = self.up.as_ref().map(|measured| {
            let far = measured.far;
            (share(far.drops, measured), far.granted_recv_buffer, host)
        });
        let worst = near.into_iter().chain(far).max_by(|(a, ..), (b, ..)| a.total_cmp(b));
        let Some((share, granted, place)) = worst.filter(|(share, ..)| *share > 0.0) else {
            return Check::ok(Id::SocketDrops, "no host dropped a datagram").measured(0.0, "%");
        };
        let percent = share * 100.0;
        let found =
            format!("{place} dropped {percent:.2} % of the datagrams: its socket buffer was full");
        let state = if share >= HARM { State::Warn } else { State::Note };
        let check = Check::new(Id::SocketDrops, state, found).measured(percent, "%");
        match (state, granted < asked) {
            (State::Warn, true) => check
                .with_remedy(format!("on {place}, as root: sysctl -w net.core.rmem_max={asked}")),
            _ => check,
        }
    }
}

/// The share of dropped datagrams in a test.
pub(crate) fn share(drops: u64, measured: &Measured) -> f64 {
    let datagrams = (measured.bytes as f64 / DATAGRAM_BYTES).max(1.0);
    drops as f64 / (datagrams + drops as f64)
}

#[cfg(test)]
mod tests;
