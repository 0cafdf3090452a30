//! `hikyaku serve --stdio`: the far side of a copy, started by ssh.

use crate::engine::{Claimant, Descriptors, Meter, Options, Roots, close_code};
use crate::hello::{Greeting, Hello, SWITCH, Start};
use crate::home::expanded;
use crate::meet::{Door, Invitation, Tuning};
use crate::patterns::{Allowed, expand, is_home, is_users_home};
use crate::session::{Order, Session};
use crate::watch::{Fate, Gone, watch};
use anyhow::{Context, Error, Result, bail, ensure};
use hikyaku_crypto::Fingerprint;
use hikyaku_net::blocking::{Cut, Stop, wait};
use hikyaku_net::{EndpointConfig, Side};
use hikyaku_pipes::Pipe;
use hikyaku_reach::{Connection, Stream};
use std::fs::File;
use std::io::{BufReader, Read, Stdin, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

/// Nobody came: the near side has given up long before.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a program that ends waits until ssh has taken its last word.
const LAST_WORD: Duration = Duration::from_secs(5);
/// Names that may come of a list and of the sources that it is relative to: a list that is a message is shorter.
const MOST_LISTED: usize = 1 << 20;
/// How long the near side's first line may take: a round trip of ssh, and a busy machine.
const START: Duration = Duration::from_secs(8);
/// Whose address is which field of SSH_CONNECTION (sshd(8)): the client's as the server sees it, and
/// the server's as the client reached it.
const SSH_CLIENT: usize = 0;
const SSH_SERVER: usize = 2;

/// Serves one copy.
pub fn serve() -> Result<()> {
    hikyaku_console::survive_file_size_limit().context("cannot handle a signal")?;
    let mut output = std::io::stdout();
    let mut say = |line: Vec<u8>| output.write_all(&line).and_then(|()| output.flush());
    say(Greeting::ours().line())?;
    let (start, input) = match hear_start() {
        Ok(heard) => heard,
        Err(error) => {
            say(Hello::refusal(&format!("{error:#}")))?;
            return Err(error);
        }
    };
    let ports = start.ports.0..=start.ports.1;
    let door = Door::open(&ports, &start.tuning, EndpointConfig::default().closing)?;
    let hello = Hello { addresses: ssh_address(SSH_SERVER), door: door.invitation().clone() };
    let near: Fingerprint = start.key.parse()?;
    say(hello.line())?;
    // Another port than one of those is no near side's of ours.
    let dialled = start.door.filter(|near| ports.contains(&near.port));
    let (connection, stream) = accept(&door, near, dialled, (input, &start.tuning))?;
    attend(connection, stream, Descriptors::Carrier)
}

/// What the near side says when it has been greeted.
fn hear_start() -> Result<(Start, BufReader<Stdin>)> {
    let (say, heard) = sync_channel(1);
    thread::Builder::new().name("serve-start".to_owned()).spawn(move || {
        let mut input = BufReader::new(std::io::stdin());
        let start = Start::read(&mut input);
        let _ = say.send((start, input));
    })?;
    let eaten = "a file that the login shell reads (~/.bashrc, ~/.ssh/rc) may read from it";
    match heard.recv_timeout(START) {
        Ok((Ok(start), input)) => Ok((start, input)),
        Ok((Err(error), _)) => Err(Error::new(error))
            .with_context(|| format!("standard input does not begin as it should; {eaten}")),
        Err(_) => bail!("nothing came on standard input; {eaten}"),
    }
}

/// Does what the other end of `connection` wants, which has begun to speak on `stream`.
pub(crate) fn attend(
    connection: Connection,
    stream: Stream,
    descriptors: Descriptors,
) -> Result<()> {
    let (session, order) = Session::obey(connection.clone(), stream)?;
    let refuse = |error: &Error| connection.close(close_code(error), &format!("{error:#}"));
    match Work::of(&order, descriptors) {
        Ok(work) => {
            // A failure closes the connection; this is for what fails before or behind the copy itself.
            let _ = work.run(session).inspect_err(refuse);
        }
        Err(error) => {
            // Before the session goes, whose last act is to end its stream: the other end would hear of that alone.
            refuse(&error);
            drop(session);
        }
    }
    if connection.close_reason().is_some() {
        connection.flush(LAST_WORD);
    }
    // The other end has a user, and tells.
    Ok(())
}

/// An order, when it is known which files it means here.
enum Work<'a> {
    Receive { target: PathBuf, options: &'a Options, descriptors: Descriptors },
    Send { roots: Roots, options: &'a Options },
}

impl<'a> Work<'a> {
    fn of(order: &'a Order, descriptors: Descriptors) -> Result<Self> {
        Ok(match order {
            Order::Put { target, options } => {
                Self::Receive { target: expanded(target)?, options, descriptors }
            }
            Order::Get { sources, options } => {
                let mut paths = Vec::new();
                for source in sources {
                    let path = expanded(source)?;
                    paths.extend(
                        match is_home(source) || (is_users_home(source) && path.is_dir()) {
                            // As with scp that is what is in it: the near side does not know its name.
                            true => vec![path.join(".")],
                            false => expand(&path),
                        },
                    );
                }
                let names = paths.len().saturating_mul(options.files.len());
                ensure!(names <= MOST_LISTED, "a list of {names} names is too long");
                Self::Send { roots: Roots::new(&paths, &options.files, descriptors), options }
            }
        })
    }

    fn run(self, session: Session) -> Result<()> {
        let meter = Meter::default();
        match self {
            Self::Receive { target, options, descriptors } => {
                let writes = (&meter, descriptors);
                // What another part of the copy has made is the near side's to know.
                let asked = (&Allowed::anything(), Claimant::only());
                session.receive(&target, asked, options, writes)
            }
            Self::Send { roots, options } => {
                session.send(&roots, options, Claimant::only(), &meter)
            }
        }
    }
}

/// Addresses of an end of ssh's own connection.
fn ssh_address(field: usize) -> Vec<IpAddr> {
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let found = connection.split_whitespace().nth(field).and_then(|text| text.parse().ok());
    found.into_iter().collect()
}

/// The near side's connection: over UDP, or through this program's own input and output if the near side sends
/// [`SWITCH`]. The end of the input is the end of the near side.
fn accept(
    door: &Door,
    key: Fingerprint,
    near: Option<Invitation>,
    (mut input, tuning): (BufReader<Stdin>, &Tuning),
) -> Result<(Connection, Stream)> {
    let (hand_over, connected) = sync_channel::<Connection>(1);
    let (switch, switched) = sync_channel(1);
    let stop = Stop::default();
    let (ours, us) = (stop.clone(), thread::current());
    thread::Builder::new().name("serve-stdin".to_owned()).spawn(move || {
        let mut word = [0; SWITCH.len()];
        if input.read_exact(&mut word).is_ok() && word == SWITCH {
            let _ = switch.send(input);
        } else if let Ok(connection) = connected.try_recv() {
            return watch(std::io::empty(), &connection, &Fate::default(), || Gone::Lost);
        }
        ours.set();
        us.unpark();
    })?;
    let at = |port| ssh_address(SSH_CLIENT).into_iter().map(move |ip| SocketAddr::new(ip, port));
    let near = near.map(|near| (at(near.port).collect(), near));
    let met = door.be_met(key, near, PATIENCE);
    match wait(met, &stop, Some(Instant::now() + PATIENCE)) {
        Ok(met) => {
            let (connection, stream) = met?;
            let connection = Connection::from(connection);
            let _ = hand_over.send(connection.clone());
            Ok((connection, Stream::Udp(stream)))
        }
        Err(Cut::Stopped) => match switched.try_recv() {
            Ok(input) => through_ssh(input, tuning),
            Err(_) => bail!("the near side has gone"),
        },
        Err(Cut::TooLate) => bail!("the near side has not come"),
    }
}

/// A connection through standard input and output, and the stream on which the near side begins to speak.
fn through_ssh(input: BufReader<Stdin>, tuning: &Tuning) -> Result<(Connection, Stream)> {
    // Not buffered by lines.
    let output = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let pipe = Pipe::new(input, output);
    let pipes = hikyaku_pipes::Connection::new(vec![pipe], Side::Server, tuning.of_pipes())?;
    let connection = Connection::from(pipes);
    let stop = Stop::default();
    match wait(connection.accept_stream(), &stop, Some(Instant::now() + PATIENCE)) {
        Ok(stream) => Ok((connection.clone(), stream?)),
        Err(_) => bail!("the near side says nothing"),
    }
}
