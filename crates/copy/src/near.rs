//! The near side: starts the far side through ssh and connects to it.

use crate::hello::{Hello, NoHello, PROTOCOL, Start};
use crate::location::Remote;
use crate::meet::{Door, Tuning};
use crate::relay::Relay;
use crate::session::{Order, Session};
use crate::ssh::SshOptions;
use crate::watch::{Fate, Gone, watch};
use anyhow::{Context, Error, Result};
use hikyaku_net::blocking::{Cut, Stop, block_on, wait};
use hikyaku_net::{Connection, Endpoint};
use std::ffi::OsString;
use std::io::{BufReader, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How the far side is reached.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) ssh: SshOptions,
    pub(crate) remote_path: Option<String>,
    pub(crate) ports: RangeInclusive<u16>,
    /// What is tried first.
    pub(crate) carrier: Carrier,
    pub(crate) tuning: Tuning,
}

/// The far side, started and connected. Dropping it ends ssh.
pub(crate) struct Far {
    pub(crate) session: Option<Session>,
    /// What would make it faster, for the user.
    pub(crate) advice: Option<String>,
    // Dropped in this order.
    _socket: Socket,
    _ssh: Option<Ssh>,
}

impl Far {
    /// A far side on this machine.
    pub(crate) const fn here(session: Session, endpoint: Endpoint) -> Self {
        let socket = Socket::Endpoint { _endpoint: endpoint };
        Self { session: Some(session), advice: None, _socket: socket, _ssh: None }
    }
}

/// What carries the connection, for as long as it is wanted.
enum Socket {
    Door { _door: Box<Door> },
    Endpoint { _endpoint: Endpoint },
}

/// The user's ssh, with the far side at its other end.
struct Ssh {
    child: Arc<Mutex<Child>>,
}

/// ssh ended before the far side was started; it has said why.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("ssh cannot start anything on {host}")]
pub struct SshFailed {
    /// Where.
    pub host: String,
}

/// What carries the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Carrier {
    /// Datagrams of their own.
    Udp,
    /// The channel of ssh.
    Ssh,
}

/// UDP is blocked, or slower than anything we know of, if nothing has come back for so long.
const UDP_PATIENCE: Duration = Duration::from_millis(2500);
const SSH_PATIENCE: Duration = Duration::from_secs(30);
/// What remains to be said when all is done leaves within this.
const LAST_WORD: Duration = Duration::from_millis(20);

impl Ssh {
    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says, once its channel has ended, what that means for the far side, which is `who`.
    fn why(&self, who: String) -> impl FnOnce() -> Gone + Send + 'static {
        let child = self.child.clone();
        move || {
            let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
            let code = child.try_wait().ok().flatten().and_then(|status| status.code());
            if code == Some(NO_CONNECTION) { Gone::Lost } else { Gone::Ended(who) }
        }
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        // The far side has said its last word, or there is nobody to say it to.
        let mut child = self.child();
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// ssh has no connection, or lost it, or the far side was killed (ssh(1)).
const NO_CONNECTION: i32 = 255;

impl Way {
    /// Starts the far side at `remote` and gives it `order`.
    pub(crate) fn open(&self, remote: &Remote, order: &Order) -> Result<Far> {
        let words = self.ssh.command(remote, self.remote_path.as_deref())?;
        // The far side has its last word, or finds out when ssh ends.
        let door = Door::open(&self.ports, &self.tuning, LAST_WORD)?;
        let (ssh, output, hello) = self.start(&words, remote, &door)?;
        let addresses = self.addresses(&hello, &words);
        let (fate, why) = (Fate::default(), ssh.why(format!("hikyaku on {}", remote.host)));
        let direct = match self.carrier {
            Carrier::Udp => {
                let met = door.meet(&remote.host, &hello.door, addresses.clone(), UDP_PATIENCE);
                match wait(met, &Stop::default(), Some(Instant::now() + UDP_PATIENCE)) {
                    Ok(connection) => Some(connection?),
                    Err(Cut::TooLate | Cut::Stopped) => None,
                }
            }
            Carrier::Ssh => None,
        };
        let (connection, advice) = match direct {
            Some(connection) => {
                let (watched, fate) = (connection.clone(), fate.clone());
                let watch = move || watch(output, &watched, &fate, why);
                thread::Builder::new().name("copy-ssh".to_owned()).spawn(watch)?;
                (connection, door.advice().map(str::to_owned))
            }
            None => {
                let input = ssh.child().stdin.take().context("no input of ssh")?;
                let watch = (fate.clone(), why);
                let connection = through_ssh(&door, (remote, &hello), (input, output), watch)?;
                let is_news = self.carrier == Carrier::Udp;
                (connection, is_news.then(|| self.no_udp(remote, &addresses)))
            }
        };
        let session = Session::order(connection, order, fate)?;
        let socket = Socket::Door { _door: Box::new(door) };
        Ok(Far { session: Some(session), advice, _socket: socket, _ssh: Some(ssh) })
    }

    /// What to say when the data must go through ssh.
    fn no_udp(&self, remote: &Remote, addresses: &[SocketAddr]) -> String {
        let tried: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let tried = if tried.is_empty() { "no address is known".into() } else { tried.join(", ") };
        format!(
            "no UDP gets through to {} ({tried}): the data go through ssh, which is slower\n\
             try: let UDP ports {} to {} through to it, or name others: --udp-ports",
            remote.host,
            self.ports.start(),
            self.ports.end(),
        )
    }

    fn start(
        &self,
        words: &[OsString],
        remote: &Remote,
        door: &Door,
    ) -> Result<(Ssh, BufReader<ChildStdout>, Hello)> {
        let (program, arguments) = words.split_first().context("no ssh")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.to_string_lossy()))?;
        let line = Start {
            protocol: PROTOCOL,
            ports: (*self.ports.start(), *self.ports.end()),
            tuning: self.tuning.clone(),
            key: door.invitation().key.clone(),
            door: (self.carrier == Carrier::Udp).then(|| door.invitation().clone()),
        };
        let output = child.stdout.take();
        if let Some(input) = &mut child.stdin {
            // If ssh is gone already, what it said is the better error.
            let _ = input.write_all(line.line().as_bytes()).and_then(|()| input.flush());
        }
        let ssh = Ssh { child: Arc::new(Mutex::new(child)) };
        let mut output = BufReader::new(output.context("no output of ssh")?);
        let hello = Hello::read(&mut output).map_err(|error| self.no_hello(error, &ssh, remote))?;
        Ok((ssh, output, hello))
    }

    /// What went wrong, told from how ssh ended.
    fn no_hello(&self, error: NoHello, ssh: &Ssh, remote: &Remote) -> Error {
        let host = &remote.host;
        let ended = matches!(error, NoHello::Nothing(_)).then(|| ssh.child().wait().ok()).flatten();
        let remedy = match (&error, ended.and_then(|status| status.code())) {
            // Its own message has been printed.
            (NoHello::Nothing(_), Some(NO_CONNECTION)) => {
                let failed = SshFailed { host: host.clone() };
                return Error::new(failed).context(format!("try: ssh {host}"));
            }
            (NoHello::Nothing(_), Some(126 | 127)) => format!(
                "try: install hikyaku on {host}, in PATH, ~/.local/bin or ~/.cargo/bin, or say \
                 where it is: --remote-path PATH"
            ),
            (NoHello::Version { .. }, _) => {
                format!("try: install version {} on both sides", env!("CARGO_PKG_VERSION"))
            }
            _ => format!("try: ssh {host} hikyaku --version"),
        };
        Error::from(error).context(remedy).context(format!("cannot start hikyaku on {host}"))
    }

    /// Where the far side may be reached, the likeliest first: where ssh reached it, as it sees that
    /// itself; what ssh calls it; its other addresses.
    fn addresses(&self, hello: &Hello, words: &[OsString]) -> Vec<SocketAddr> {
        let (first, others) = hello.addresses.split_at(hello.addresses.len().min(1));
        let named = hostname(words).into_iter().flatten();
        let mut all = Vec::new();
        for ip in first.iter().copied().chain(named).chain(others.iter().copied()) {
            let address = SocketAddr::new(ip, hello.door.port);
            if !all.contains(&address) {
                all.push(address);
            }
        }
        all
    }
}

/// Dials through the channel of ssh.
fn through_ssh(
    door: &Door,
    (remote, hello): (&Remote, &Hello),
    (input, output): (ChildStdin, BufReader<ChildStdout>),
    (fate, why): (Fate, impl FnOnce() -> Gone + Send + 'static),
) -> Result<Connection> {
    let relay = Relay::for_first()?;
    relay.carry_out(input)?;
    let address = relay.address()?;
    let (connected, connection) = sync_channel::<Connection>(1);
    let work = move || {
        relay.carry_in(output);
        if let Ok(connection) = connection.try_recv() {
            watch(std::io::empty(), &connection, &fate, why);
        }
    };
    thread::Builder::new().name("copy-ssh".to_owned()).spawn(work)?;
    let dialled = door.dial(&remote.host, &hello.door, vec![address], SSH_PATIENCE);
    let connection = block_on(dialled)?;
    let _ = connected.send(connection.clone());
    Ok(connection)
}

/// What ssh's configuration makes of the host's name. (It is read by ssh itself: it has aliases,
/// patterns and conditions.)
fn hostname(words: &[OsString]) -> Option<Vec<IpAddr>> {
    let (program, arguments) = words.split_first()?;
    // The last word is the command.
    let arguments = &arguments[..arguments.len().checked_sub(1)?];
    let output = Command::new(program)
        .arg("-G")
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let name = text.lines().find_map(|line| line.strip_prefix("hostname "))?;
    Some((name, 0).to_socket_addrs().ok()?.map(|address| address.ip()).collect())
}
