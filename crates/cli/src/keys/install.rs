//! `hikyaku keys install`: as ssh-copy-id(1), in both directions. One login to each host adds this user's key to the list of
//! its daemon, and records the key of the daemon here.

use super::comment;
use super::exchange::{Answer, Request, Was};
use super::fetch::record;
use super::hosts::{self, Host};
use super::login::{Login, Prompts};
use anyhow::{Context, Error, Result};
use clap::Args;
use hikyaku_console::{ExitCode, Folder, Noise, causes, misuse, print, with_remedy};
use hikyaku_crypto::{Identity, KnownPeers, PeerName, Peers, PublicKey, Recorded};
use hikyaku_reach::daemon::{NoService, STORE};
use hikyaku_reach::dial::{DialError, PORT};
use hikyaku_reach::quoted;
use hikyaku_serve::check_line;
use hikyaku_session::{ClientConfig, Connector, SetupError};
use hikyaku_units::{ParseUnitError, parse_limit};
use std::ffi::OsStr;
use std::num::NonZeroU16;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Install {
    /// Clusters of the settings, or hosts of daemons: HOST, HOST:PORT or USER@HOST:PORT
    #[arg(required = true, value_name = "HOST|CLUSTER")]
    names: Vec<String>,
    /// Only the files below this directory, which is below that of the daemon
    #[arg(long, value_name = "DIR")]
    root: Option<String>,
    /// Only to read
    #[arg(long)]
    ro: bool,
    /// Limit of the rate of this user's sessions, with its unit
    #[arg(long, value_name = "RATE", value_parser = rate)]
    max_rate: Option<String>,
    /// Port of the daemons. Default: that of the settings, or 5209
    #[arg(long, value_name = "N")]
    port: Option<NonZeroU16>,
    /// The list of the daemons, where it is not authorized_keys in the state folder of the user who logs in
    #[arg(long, value_name = "FILE")]
    list: Option<String>,
    /// Print what would be done, and contact no host
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    login: Login,
}

const EXAMPLES: &str = "\
Examples:
  hikyaku keys install node1 node2
      this user's key to two daemons, and their keys to this host
  hikyaku keys install --root /runs --ro lab
      all servers of [cluster.lab]: only /runs, only to read";

/// The program of a host that is asked. It answers on standard output; an older one that does not know these words would
/// print its usage.
const VERB: &str = "keys receive 2>/dev/null";
/// A daemon on a slow path answers within this.
const DIAL_TIMEOUT: Duration = Duration::from_secs(5);

impl Install {
    /// The messages on standard error.
    pub(super) const fn says(&self) -> Noise {
        self.login.noise.noise()
    }

    pub(super) fn run(&self) -> Result<()> {
        let hosts = hosts::named(&self.names, self.port, &hikyaku_reach::settings::of_user()?)?;
        let file = Folder::State.of_user()?.join("identity");
        if self.dry_run && !file.exists() {
            // A rehearsal makes no key.
            let line = self.line(&Identity::generate()?.public_key())?;
            return print(self.rehearsal(&hosts, &line));
        }
        let config = ClientConfig::of_user().map_err(SetupError::explained)?;
        let line = self.line(&config.identity.public_key())?;
        if self.dry_run {
            return print(self.rehearsal(&hosts, &line));
        }
        let known = config.known.clone();
        let connector = Connector::new(config, hosts.len(), STORE);
        let connector = connector.map_err(SetupError::explained)?;
        hosts::each(&hosts, |host, prompts| self.one(host, &line, prompts, (&connector, &known)))
    }

    /// This user's line for the lists.
    fn line(&self, key: &PublicKey) -> Result<String> {
        let value = |name: &str, value: &str| match value.contains([' ', ',', '\t']) {
            true => format!("{name}=\"{value}\""),
            false => format!("{name}={value}"),
        };
        let root = self.root.as_ref().map(|root| value("root", root));
        let rate = self.max_rate.as_ref().map(|rate| value("max-rate", rate));
        let options: Vec<String> =
            root.into_iter().chain(self.ro.then(|| "ro".to_owned())).chain(rate).collect();
        let line = [options.join(","), key.to_string(), comment()];
        let line = line.iter().map(String::as_str).filter(|word| !word.is_empty());
        let line = line.collect::<Vec<_>>().join(" ");
        match check_line(&line) {
            Ok(()) => Ok(line),
            Err(text) => Err(misuse(text, "hikyaku help keys: the options of a key")),
        }
    }

    fn rehearsal(&self, hosts: &[Host], line: &str) -> String {
        let list = self.list.as_deref().unwrap_or("its list of keys");
        let one = |Host { login, daemon }: &Host| {
            format!(
                "{login}: would add to {list}: {line}\n{login}: would record its key for {daemon}\n"
            )
        };
        hosts.iter().map(one).collect()
    }

    /// Exchanges keys with one host. Returns what is to be printed.
    fn one(
        &self,
        host: &Host,
        line: &str,
        prompts: Prompts,
        (connector, known): (&Connector, &KnownPeers),
    ) -> Result<String> {
        let login = &host.login;
        let request = Request { line: line.to_owned(), list: self.list.clone() };
        let request = format!("{}\n", serde_json::to_string(&request)?);
        let answer = self.login.ask((login, VERB), request.as_bytes(), prompts)?;
        let (list, was, key) = match Answer::find(&String::from_utf8_lossy(&answer.text)) {
            Some(Answer::Done { list, was, key }) => (list, was, key),
            Some(Answer::Refused { why }) => {
                return Err(ExitCode::WillFail.error(format!("{login}: {why}")));
            }
            Some(Answer::Denied) => return Err(self.denied(host, line)),
            None => return Err(no_answer(host, &answer)),
        };
        let mut text = match was {
            Was::Absent => format!("{login}: this user's key added to {list}\n"),
            Was::Present => format!("{login}: this user's key is already in {list}\n"),
        };
        let peer = PeerName::new(&host.daemon.host, host.daemon.port)?;
        let Some(key) = key else {
            text += &format!(
                "{login}: its key is not known to this login: the first connection records it\n"
            );
            return Ok(text);
        };
        let key = key.parse::<PublicKey>()?.fingerprint();
        let recorded = record(known, &peer, key).with_context(|| login.to_string())?;
        text += &match recorded {
            Recorded::Added => format!("{login}: its key {key} recorded for {peer}\n"),
            Recorded::Present(_) => {
                format!("{login}: its key {key} is already recorded for {peer}\n")
            }
        };
        let dialled = connector.connect(&host.daemon, &[key], DIAL_TIMEOUT);
        match dialled.map(drop) {
            Ok(()) => text += &format!("{login}: a daemon serves this user at {peer}\n"),
            Err(DialError::Service(NoService::NotAuthorised(_))) => {
                text += &format!("{login}: the daemon at {peer} reads another list\n");
                text += &format!("try: hikyaku keys install --list FILE {login}\n");
            }
            Err(error) if error.refusal().is_some() => {
                if recorded == Recorded::Added {
                    known.forget(&Peers::One(peer.clone()))?;
                }
                let error = ExitCode::WillFail.error(format!(
                    "{login}: the daemon at {peer} has another key: it is not a daemon of this login"
                ));
                let remedy = format!("hikyaku keys install --list FILE {login}");
                return Err(with_remedy(error, Some(remedy)));
            }
            Err(error) => {
                let cause = causes(&error.into());
                text += &format!("{login}: no daemon serves at {peer}: {cause}\n");
                text += &format!("try: {}\n", serve(host));
            }
        }
        Ok(text)
    }

    /// The list belongs to root, or to the user of a service.
    fn denied(&self, Host { login, .. }: &Host, line: &str) -> Error {
        let list = self.list.clone().unwrap_or_default();
        let error = ExitCode::WillFail.error(format!("{login}: permission denied: {list}"));
        let (line, list) = (quoted(OsStr::new(line)), quoted(OsStr::new(&list)));
        let remedy = format!("echo {line} | ssh {login} sudo tee -a {list}");
        with_remedy(error, Some(remedy))
    }
}

/// A rate as it was typed, since the line of the key holds it so.
// fuzz: none, the user's own words
fn rate(text: &str) -> Result<String, ParseUnitError> {
    parse_limit(text).map(|_| text.to_owned())
}

/// The program of the host is missing, or does not know the request.
fn no_answer(Host { login, .. }: &Host, answer: &hikyaku_reach::Answer) -> Error {
    Login::missing(login, answer).unwrap_or_else(|| {
        let text = format!("{login}: its hikyaku is too old for this command");
        with_remedy(ExitCode::WillFail.error(text), Some(format!("hikyaku far install {login}")))
    })
}

/// The command that starts a daemon on a host.
fn serve(Host { login, daemon }: &Host) -> String {
    let listen = match daemon.port {
        PORT => String::new(),
        port => format!(" --listen {port}"),
    };
    format!("ssh {login} hikyaku serve --root DIR{listen}")
}
