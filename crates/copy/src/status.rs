//! `hikyaku status`: which daemons can be reached, what they have, and what they are doing.

mod table;

use crate::outcome::exit_code;
use anyhow::{Context, Result, bail};
use clap::Args;
use hikyaku_console::{
    Document, ExitCode, Form, FormArgs, Noise, NoiseArgs, misuse, print, printed,
};
use hikyaku_crypto::Fingerprint;
use hikyaku_net::blocking::block_on;
use hikyaku_reach::daemon::{REPORTS, STORE, UPLOADS, WRITES};
use hikyaku_reach::dial::{Address, Servers};
use hikyaku_reach::settings;
use hikyaku_remote::{Client, RemoteError, Report};
use hikyaku_session::{
    ANSWER_TIME, ClientConfig, ConnectArgs, Connector, SetupError, SilenceArgs, at_once,
};
use hikyaku_store::Space;
use hikyaku_units::parse_duration;
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write, stdout};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Options of `hikyaku status`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct StatusArgs {
    /// A cluster of the settings, or daemons: hikyaku://HOST:PORT,HOST:PORT
    #[arg(required = true, value_name = "CLUSTER|DAEMONS")]
    of: Vec<String>,
    #[command(flatten)]
    form: FormArgs,
    /// Ask again and again: every 2 seconds, or as often as is said
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "2s")]
    #[arg(value_parser = pause)]
    watch: Option<Duration>,
    #[command(flatten)]
    connect: ConnectArgs,
    #[command(flatten)]
    silence: SilenceArgs,
    /// The messages on standard error.
    #[command(flatten)]
    pub noise: NoiseArgs,
}

const EXAMPLES: &str = "\
LOAD is the mean number of processes that ran or waited in the last minute, of
so many processors; CPU is the use of all processors, MEMORY that of the
memory, DISK the time in which the disk was busy, FREE the space that is left.
'-' stands for what a server does not tell, such as an older one.

Exit codes: 0 if all servers answer; if some do not, 5 if that may pass, 6 if
it lasts, such as a key that is not authorised, 2 if there is both.

Examples:
  hikyaku status lab          all servers of [cluster.lab]
  hikyaku status lab --watch  the same every two seconds, until Ctrl-C
  hikyaku status --watch 10s --json-lines lab
      a line for each server every ten seconds
  hikyaku status hikyaku://node1,node2:5300";

/// A new server is asked for its loads a second time after this: they are those since the first time.
const LOADS_OVER: Duration = Duration::from_millis(300);

/// What is known of one server.
#[derive(Debug, Serialize)]
struct Line {
    server: String,
    /// When it was asked, in seconds since 1970.
    time: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Answer>,
    /// Why it does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// What that means for the command.
    #[serde(skip)]
    code: ExitCode,
}

/// The content of the document.
#[derive(Serialize)]
struct All<'a> {
    servers: &'a [Line],
}

/// What a server that answers has said.
#[derive(Debug, Serialize)]
struct Answer {
    carrier: &'static str,
    access: &'static str,
    round_trip_ms: f64,
    /// The mean number of processes that ran or waited in the last minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processors: Option<u32>,
    /// Of all processors, since the question before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_used_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_total_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_busy_percent: Option<f64>,
    /// Bytes that may still be written, and in all; `None` if the server cannot tell.
    free_bytes: Option<u64>,
    total_bytes: Option<u64>,
}

/// Storage without daemons, and what tells its state.
const OTHERS: [(&str, &str); 2] = [
    (
        "gfarm://",
        "gfhost -lv and gfdf of Gfarm, or hikyaku serve --gfarm on the nodes, and hikyaku status with their addresses",
    ),
    ("s3://", "the console or the programs of the service"),
];

/// The daemons that are named by an address.
fn daemons(name: &str) -> Result<Servers> {
    if let Some((_, remedy)) = OTHERS.iter().find(|(scheme, _)| name.starts_with(scheme)) {
        return Err(misuse(format!("'{name}': only daemons tell their state"), remedy));
    }
    match Servers::parse(name.as_bytes()).transpose() {
        Ok(Some(servers)) => Ok(servers),
        Ok(None) => {
            let text = format!("'{name}' is no cluster of the settings and no address of daemons");
            let settings = format!("a [cluster.{name}] in the settings (hikyaku config show)");
            Err(misuse(text, format!("hikyaku://{name}, or {settings}")))
        }
        Err(error) => Err(ExitCode::Usage.error(error.to_string())),
    }
}

/// Asks all servers at once, and prints a line for each in the order of the arguments.
///
/// # Errors
///
/// The names mean nothing, or this machine cannot ask anybody.
pub fn status(args: &StatusArgs) -> Result<ExitCode> {
    let (form, says) = (args.form.form(), args.noise.noise());
    if args.watch.is_some() && form == Form::Document {
        let text = "--json prints one document, and --watch has no end";
        return Err(misuse(text, "--json-lines"));
    }
    let settings = settings::of_user()?;
    let mut all = Vec::new();
    for name in &args.of {
        let servers = match settings.cluster(name.strip_suffix(':').unwrap_or(name)) {
            Some(cluster) => Servers::of_cluster(cluster, b""),
            None => daemons(name)?,
        };
        let keys = servers.keys;
        all.extend(servers.servers.into_iter().map(|address| (address, keys.clone())));
    }
    let config = args.connect.client(all.iter().map(|(address, _)| address))?;
    let config = ClientConfig { silence: args.silence.timeout, ..config };
    let connector = Connector::new(config, all.len(), STORE).map_err(SetupError::explained)?;
    let servers = all.into_iter().map(|(address, keys)| Server { address, keys, reached: None });
    let mut servers: Vec<Server> = servers.collect();
    let mut drawn = 0;
    loop {
        let lines = ask_all(&connector, &mut servers);
        let is_shown = |line: &&Line| says != Noise::Quiet || line.answer.is_none();
        let text = match form {
            Form::Words => table::table(&lines.iter().filter(is_shown).collect::<Vec<_>>()),
            Form::Document => Document::new(All { servers: &lines }).line(),
            Form::Lines => table::json(&lines)?,
        };
        match args.watch {
            Some(pause) => {
                let is_drawn = form == Form::Words && stdout().is_terminal();
                let told = if is_drawn { table::over(drawn, &text) } else { text.clone() };
                let mut out = stdout().lock();
                match out.write_all(told.as_bytes()).and_then(|()| out.flush()) {
                    // Its reader wants no more.
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                        return Ok(ExitCode::Success);
                    }
                    written => printed(written)?,
                }
                drop(out);
                drawn = text.lines().count();
                thread::sleep(pause);
            }
            None => {
                print(text)?;
                let missing = lines.iter().filter(|line| line.answer.is_none());
                let mut codes = missing.map(|line| line.code).peekable();
                return Ok(match codes.peek() {
                    Some(_) => ExitCode::of_pieces(codes),
                    None => ExitCode::Success,
                });
            }
        }
    }
}

/// A server, and the connection to it while there is one.
struct Server {
    address: Address,
    keys: Vec<Fingerprint>,
    reached: Option<Reached>,
}

struct Reached {
    client: Client,
    carrier: &'static str,
    access: &'static str,
    /// Whether it tells its loads.
    tells: bool,
}

/// Asks all at once. A server whose connection was lost is connected to again.
fn ask_all(connector: &Connector, servers: &mut [Server]) -> Vec<Line> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let time = (since.as_secs_f64() * 1e3).round() / 1e3;
    at_once(servers, |server| {
        let (answer, error, code) = match server.ask(connector) {
            Ok(answer) => (Some(answer), None, ExitCode::Success),
            Err(error) => {
                let code = ExitCode::of(&error, &[exit_code]);
                (None, Some(error.root_cause().to_string()), code)
            }
        };
        Line { server: server.address.to_string(), time, answer, error, code }
    })
}

impl Server {
    fn ask(&mut self, connector: &Connector) -> Result<Answer> {
        let reached = match self.reached.take() {
            Some(reached) if reached.client.connection().close_reason().is_none() => reached,
            _ => self.reach(connector)?,
        };
        let answer = reached.ask()?;
        self.reached = Some(reached);
        Ok(answer)
    }

    fn reach(&self, connector: &Connector) -> Result<Reached> {
        let dialled = connector.connect(&self.address, &self.keys, ANSWER_TIME);
        let dialled = dialled.map_err(|error| connector.explained(&self.address, error))?;
        let has = |feature| dialled.features.contains(feature);
        let access = match (has(WRITES), has(UPLOADS)) {
            (true, _) => "read, write",
            (false, true) => "read, store",
            (false, false) => "read",
        };
        let tells = has(REPORTS);
        let carrier = dialled.carrier.name();
        let reached = Reached { client: Client::new(dialled.connection)?, carrier, access, tells };
        if tells {
            reached.report()?;
            thread::sleep(LOADS_OVER);
        }
        Ok(reached)
    }
}

impl Reached {
    fn ask(&self) -> Result<Answer> {
        let space: Option<Space> = self.answer(|client, say| client.space_then(say))?;
        let report = if self.tells { self.report()? } else { None };
        let machine = report.map(|report| report.machine).unwrap_or_default().load();
        let seen = block_on(self.client.connection().seen());
        let seen = seen.context("the connection has ended")?;
        Ok(Answer {
            carrier: self.carrier,
            access: self.access,
            round_trip_ms: (seen.round_trip.as_secs_f64() * 1e5).round() / 1e2,
            load: machine.load,
            processors: machine.processors,
            cpu_percent: machine.cpu_percent,
            memory_used_bytes: machine.memory_used_bytes,
            memory_total_bytes: machine.memory_total_bytes,
            disk_busy_percent: machine.disk_busy_percent,
            free_bytes: space.map(|space| space.free),
            total_bytes: space.map(|space| space.total),
        })
    }

    fn report(&self) -> Result<Option<Report>> {
        self.answer(|client, say| client.report_then(say))
    }

    /// The answer to a question; `None` if the server refuses it.
    fn answer<T: Send + 'static>(&self, ask: impl FnOnce(&Client, Say<T>)) -> Result<Option<T>> {
        let (say, answers) = mpsc::channel();
        // Nobody listens any more if it comes too late.
        ask(&self.client, Box::new(move |answer| drop(say.send(answer))));
        match answers.recv_timeout(ANSWER_TIME) {
            Ok(Ok(answer)) => Ok(Some(answer)),
            Ok(Err(RemoteError::Refused { .. })) => Ok(None),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => bail!("the server does not answer"),
        }
    }
}

/// Hears an answer.
type Say<T> = Box<dyn FnOnce(Result<T, RemoteError>) + Send>;

impl Answer {
    /// The memory in use, in percent.
    fn memory_percent(&self) -> Option<f64> {
        let (used, total) = (self.memory_used_bytes?, self.memory_total_bytes?);
        (total > 0).then(|| 100.0 * used as f64 / total as f64)
    }
}

/// A pause between two questions, of at least half a second.
fn pause(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(time) if time >= Duration::from_millis(500) => Ok(time),
        Ok(_) => Err("must be 0.5 s or more".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
