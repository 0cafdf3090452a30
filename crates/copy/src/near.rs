//! The near side: starts the far side through ssh and connects to it.

mod addresses;

use crate::hello::{Hello, SWITCH};
use crate::local::Neighbour;
use crate::location::Remote;
use crate::meet::{Door, Tuning};
use crate::session::{Order, Session};
use crate::ssh::{Configuration, Output, Ssh, SshOptions};
use crate::start::Started;
use crate::watch::{Fate, Gone, watch, watch_pipe};
use anyhow::{Context, Result, ensure};
use hikyaku_console::Scope;
use hikyaku_net::Side;
use hikyaku_net::blocking::{Cut, Stop, wait};
use hikyaku_pipes::Pipe;
use hikyaku_reach::Connection;
use std::io::{BufReader, Write};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
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
    pub(crate) detail: Detail,
    /// Ends ssh when it is stopped while ssh logs in.
    pub(crate) scope: Scope,
}

/// Whether the user wants to see how the far side is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Detail {
    Told,
    Untold,
}

/// The far side, started and connected. Dropping it ends ssh, or waits for the thread that is the far side.
pub(crate) struct Far {
    pub(crate) session: Option<Session>,
    /// What would make it faster, for the user.
    pub(crate) advice: Option<String>,
    // Dropped in this order.
    _door: Option<Box<Door>>,
    _end: FarEnd,
}

/// What runs the far side.
enum FarEnd {
    There { _ssh: Ssh },
    Here { _thread: Neighbour },
}

impl Far {
    /// A far side on this machine.
    pub(crate) const fn here(session: Session, thread: Neighbour) -> Self {
        let end = FarEnd::Here { _thread: thread };
        Self { session: Some(session), advice: None, _door: None, _end: end }
    }
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
/// What remains to be said when all is done leaves within this.
const LAST_WORD: Duration = Duration::from_millis(20);
/// Says something of how the far side is reached, if that is wanted.
macro_rules! tell {
    ($way:expr, $($text:tt)*) => {
        if $way.detail == Detail::Told {
            eprintln!("hikyaku: {}", format_args!($($text)*));
        }
    };
}

pub(crate) use tell;

impl Way {
    /// Starts the far side at `remote` and gives it `order`.
    pub(crate) fn open(&self, remote: &Remote, order: &Order) -> Result<Far> {
        let begin = Instant::now();
        // The far side has its last word, or finds out when ssh ends.
        let door = Door::open(&self.ports, &self.tuning, LAST_WORD)?;
        let Started { mut ssh, output, hello, configuration } = self.start(remote, &door)?;
        let addresses = self.addresses(&hello, &configuration)?;
        let shown = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let port = door.invitation().port;
        tell!(self, "dialling {shown} by UDP, and waiting at port {port}");
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
                let took = begin.elapsed().as_millis();
                tell!(self, "connected to {} after {took} ms", connection.remote_addr());
                let connection = Connection::from(connection);
                let (watched, fate) = (connection.clone(), fate.clone());
                let watch = move || watch(output, &watched, &fate, why);
                thread::Builder::new().name("copy-ssh".to_owned()).spawn(watch)?;
                (connection, door.advice().map(str::to_owned))
            }
            None => {
                let watch = (fate.clone(), why);
                let connection = through_ssh((&mut ssh, output), &self.tuning, watch)?;
                tell!(self, "the data go through ssh");
                let is_news = self.carrier == Carrier::Udp;
                let advice = is_news.then(|| self.no_udp(remote, &addresses));
                (connection, advice)
            }
        };
        let session = Session::order(connection, order, fate)?;
        let end = FarEnd::There { _ssh: ssh };
        Ok(Far { session: Some(session), advice, _door: Some(Box::new(door)), _end: end })
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

    /// Where the far side may be reached.
    fn addresses(&self, hello: &Hello, configuration: &Configuration) -> Result<Vec<SocketAddr>> {
        let port = hello.door.port;
        ensure!(
            self.ports.contains(&port),
            "the far side listens at port {port}, and was told to take one from {} to {}",
            self.ports.start(),
            self.ports.end()
        );
        let all = addresses::candidates(&configuration.addresses(), &hello.addresses);
        Ok(all.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
    }
}

/// Uses the channel of ssh itself: the far side hears of it by [`SWITCH`].
fn through_ssh(
    (ssh, output): (&mut Ssh, BufReader<Output>),
    tuning: &Tuning,
    (fate, why): (Fate, impl FnOnce() -> Gone + Send + 'static),
) -> Result<Connection> {
    let mut input = ssh.take_input().context("no input of ssh")?;
    input.write_all(SWITCH).and_then(|()| input.flush()).context("cannot write to ssh")?;
    let pipe = Pipe::new(output, input);
    let pipes = hikyaku_pipes::Connection::new(vec![pipe], Side::Client, tuning.of_pipes())?;
    let (connection, watched) = (Connection::from(pipes.clone()), Connection::from(pipes));
    let silence = tuning.silence();
    let watch = move || watch_pipe(&watched, silence, &fate, why);
    thread::Builder::new().name("copy-ssh".to_owned()).spawn(watch)?;
    Ok(connection)
}
