//! The far side: `hikyaku serve --stdio`, started by ssh.

mod by_tcp;

use crate::carrier::{Connection, Stream};
use crate::hello::{EATEN, Greeting, Hello, NoStart, SWITCH, Start};
use crate::meet::{Door, DoorConfig, DoorError, Invitation, MeetError};
use crate::service::Service;
use crate::speaks::{Agreed, Speaks};
use crate::tcp::TcpDoor;
use crate::tuning::Tuning;
use crate::watch::{Fate, Gone, watch};
use hikyaku_crypto::{Fingerprint, NotAFingerprint};
use hikyaku_fs::Shown;
use hikyaku_net::blocking::{Cut, Stop, wait};
use hikyaku_net::{Endpoint, EndpointConfig, OpenError, Side};
use hikyaku_pipes::Pipe;
use hikyaku_units::DataSize;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufReader, Read, Stdin, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

/// A near side that has come.
pub struct Arrival {
    /// What it wants.
    pub service: Service,
    /// What both ends can say.
    pub agreed: Agreed,
    /// What the near side's user has set of the transport.
    pub tuning: Tuning,
    /// The connection to it.
    pub connection: Connection,
    /// The stream on which it has begun to speak.
    pub stream: Stream,
    door: Door,
}

impl Arrival {
    /// The UDP socket of this end.
    pub const fn endpoint(&self) -> &Endpoint {
        self.door.endpoint()
    }

    /// Its connection and first stream, and what has to live as long as the connection.
    pub fn split(self) -> (Connection, Stream, impl Sized) {
        (self.connection, self.stream, self.door)
    }
}

/// Why no near side was served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Nothing can be said.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    /// What came is no start, or that of another version.
    #[error(transparent)]
    Start(#[from] NoStart),
    /// Nothing came.
    #[error("nothing came on standard input; {EATEN}")]
    NoStart,
    /// The near side wants what this program does not do.
    #[error("hikyaku {} has no service '{name}'; it has {known}", env!("CARGO_PKG_VERSION"))]
    NoService {
        /// What it wants, fit to be shown.
        name: String,
        /// What there is.
        known: String,
    },
    /// The key of the near side is none.
    #[error(transparent)]
    Key(#[from] NotAFingerprint),
    /// This end has no port.
    #[error(transparent)]
    Door(#[from] DoorError),
    /// The near side's connection did not come about.
    #[error(transparent)]
    Meet(#[from] MeetError),
    /// The connection has ended before anything was said on it.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The end of standard input is the end of the near side.
    #[error("the near side has gone")]
    Gone,
    /// The near side does not connect.
    #[error("the near side has not come")]
    NotCome,
    /// The near side has connected and says nothing.
    #[error("the near side says nothing")]
    Silent,
    /// No thread could be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}

impl ServeError {
    /// What the user can do, as a text that begins with `try: `.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Start(NoStart::Version { .. }) | Self::NoService { .. } => {
                Some(format!("try: install version {} on both sides", env!("CARGO_PKG_VERSION")))
            }
            _ => None,
        }
    }
}

/// Characters of an unknown service's name in an error.
const SERVICE_CHARS_MAX: usize = 64;
/// Nobody came: the near side has given up long before.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the near side's first line may take: a round trip of ssh, and a busy machine.
const START: Duration = Duration::from_secs(8);
/// Whose address is which field of SSH_CONNECTION (sshd(8)): the client's as the server sees it, and
/// the server's as the client reached it.
const SSH_CLIENT: usize = 0;
const SSH_SERVER: usize = 2;

/// Greets the near side on standard output, hears on standard input which of `services` it wants, and waits until it
/// has connected. `memory` is what this process may take.
pub fn serve(services: &[Service], memory: DataSize) -> Result<Arrival, ServeError> {
    let mut output = io::stdout();
    let mut say = |line: Vec<u8>| {
        output.write_all(&line).and_then(|()| output.flush()).map_err(ServeError::Output)
    };
    say(Greeting::ours().line())?;
    let heard = hear_start().and_then(|(start, agreed, input)| {
        let service = wanted(services, &start.service)?;
        Ok((start, service, agreed, input))
    });
    let (start, service, agreed, input) = match heard {
        Ok(heard) => heard,
        Err(error) => {
            say(Hello::refusal(&chain(&error), error.remedy().as_deref()))?;
            return Err(error);
        }
    };
    let ports = start.ports.0..=start.ports.1;
    // Both are open before the near side hears where, because it may dial at once.
    let (door, tcp) = by_tcp::open(&DoorConfig {
        ports: &ports,
        tuning: &start.tuning,
        service: &service,
        memory,
        closing: EndpointConfig::default().closing,
    })?;
    let hello = Hello { addresses: ssh_address(SSH_SERVER), door: door.invitation().clone() };
    let near: Fingerprint = start.key.parse()?;
    say(hello.line())?;
    // Another port than one of those is no near side's of ours.
    let dialled = start.door.filter(|near| ports.contains(&near.port));
    let (connection, stream) =
        accept((&door, tcp), near, dialled, (input, &start.tuning, &service))?;
    Ok(Arrival { service, agreed, tuning: start.tuning, connection, stream, door })
}

/// What the near side says when it has been greeted.
fn hear_start() -> Result<(Start, Agreed, BufReader<Stdin>), ServeError> {
    let (say, heard) = sync_channel(1);
    spawn("serve-start", move || {
        let mut input = BufReader::new(io::stdin());
        let start = Start::read_as(&Speaks::ours(), &mut input);
        let _ = say.send((start, input));
    })?;
    match heard.recv_timeout(START) {
        Ok((Ok((start, agreed)), input)) => Ok((start, agreed, input)),
        Ok((Err(error), _)) => Err(error.into()),
        Err(_) => Err(ServeError::NoStart),
    }
}

/// The service of this name.
fn wanted(services: &[Service], name: &str) -> Result<Service, ServeError> {
    let found = services.iter().find(|service| service.name == name).copied();
    found.ok_or_else(|| ServeError::NoService {
        name: Shown::new(name.chars().take(SERVICE_CHARS_MAX).collect::<String>().as_bytes())
            .to_string(),
        known: services.iter().map(|service| service.name).collect::<Vec<_>>().join(", "),
    })
}

/// Addresses of an end of ssh's own connection.
fn ssh_address(field: usize) -> Vec<IpAddr> {
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let found = connection.split_whitespace().nth(field).and_then(|text| text.parse().ok());
    found.into_iter().collect()
}

/// How the near side has come, where it has not come over UDP.
enum Came {
    /// Through this program's own input and output.
    Ssh(BufReader<Stdin>),
    /// Over TCP, and speaks on this stream.
    Tcp(Connection, Stream),
}

/// The near side's connection: over UDP or TCP, or through this program's own input and output if the near side sends
/// [`SWITCH`]. The end of the input is the end of the near side.
fn accept(
    (door, tcp): (&Door, Option<TcpDoor>),
    key: Fingerprint,
    near: Option<Invitation>,
    (mut input, tuning, service): (BufReader<Stdin>, &Tuning, &Service),
) -> Result<(Connection, Stream), ServeError> {
    let (hand_over, connected) = sync_channel::<Connection>(1);
    let (come, came) = sync_channel(1);
    let stop = Stop::default();
    let (ours, us) = (stop.clone(), thread::current());
    let (hear_tcp, stop_udp, main) = (come.clone(), ours.clone(), us.clone());
    let over_tcp = move |connection, stream| {
        let is_first = hear_tcp.try_send(Came::Tcp(connection, stream)).is_ok();
        stop_udp.set();
        main.unpark();
        is_first
    };
    if let Some(tcp) = tcp {
        by_tcp::listen(tcp, key, over_tcp).map_err(ServeError::Thread)?;
    }
    spawn("serve-stdin", move || {
        let mut word = [0; SWITCH.len()];
        if input.read_exact(&mut word).is_ok() && word == SWITCH {
            let _ = come.try_send(Came::Ssh(input));
        } else if let Ok(connection) = connected.try_recv() {
            return watch(io::empty(), &connection, &Fate::default(), || Gone::Lost);
        }
        ours.set();
        us.unpark();
    })?;
    let at = |port| ssh_address(SSH_CLIENT).into_iter().map(move |ip| SocketAddr::new(ip, port));
    let near = near.map(|near| (at(near.port).collect(), near));
    let met = door.be_met(key, near, PATIENCE);
    let (connection, stream) = match wait(met, &stop, Some(Instant::now() + PATIENCE)) {
        Ok(met) => {
            let (connection, stream) = met?;
            let connection = Connection::from(connection);
            let stream = connection.stream_of_udp(stream);
            (connection, stream)
        }
        Err(Cut::Stopped) => match came.try_recv() {
            Ok(Came::Ssh(input)) => return through_ssh(input, tuning, service),
            Ok(Came::Tcp(connection, stream)) => (connection, stream),
            Err(_) => return Err(ServeError::Gone),
        },
        Err(Cut::TooLate) => return Err(ServeError::NotCome),
    };
    connection.set_payload_rate(tuning.payload_rate());
    let _ = hand_over.send(connection.clone());
    Ok((connection, stream))
}

/// A connection through standard input and output, and the stream on which the near side begins to speak.
fn through_ssh(
    input: BufReader<Stdin>,
    tuning: &Tuning,
    service: &Service,
) -> Result<(Connection, Stream), ServeError> {
    // Not buffered by lines.
    let output = io::stdout().as_fd().try_clone_to_owned().map_err(ServeError::Output)?;
    let pipe = Pipe::new(input, File::from(output));
    let config = tuning.of_pipes(service);
    let pipes = hikyaku_pipes::Connection::new(vec![pipe], Side::Server, config);
    let connection = Connection::from(pipes.map_err(ServeError::Thread)?);
    connection.set_payload_rate(tuning.payload_rate());
    let stop = Stop::default();
    match wait(connection.accept_stream(), &stop, Some(Instant::now() + PATIENCE)) {
        Ok(stream) => Ok((connection.clone(), stream?)),
        Err(_) => Err(ServeError::Silent),
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), ServeError> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map(drop).map_err(ServeError::Thread)
}

/// An error and its causes in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{PathMemory, Readers};

    #[test]
    fn an_unknown_service_is_refused_by_name() {
        let (readers, path_memory) = (Readers::One, PathMemory::Off);
        let of =
            |name| Service { name, streams_max: 1, readers, path_memory, loss: crate::Loss::Ends };
        let services = [of("copy"), of("perf")];
        assert_eq!(wanted(&services, "perf").unwrap(), services[1]);
        for name in ["", "cop", "copy ", "\u{7}mount"] {
            let error = wanted(&services, name).unwrap_err();
            let text = error.to_string();
            assert!(text.contains("it has copy, perf") && !text.contains('\u{7}'), "{text}");
            assert!(error.remedy().unwrap().starts_with("try: install version"));
        }
        let error = wanted(&services, &"x".repeat(10_000)).unwrap_err();
        assert!(error.to_string().len() < 2000);
    }
}
