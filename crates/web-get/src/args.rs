//! The command line.

use crate::download::Conduct;
use crate::guests::Guests;
use crate::outcome::logins;
use crate::target::Existing;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use hikyaku_console::{Audience, FormArgs, Given, Noise, OtherArgs};
use hikyaku_forward::Scheme;
use hikyaku_http::{Digest, Function, Login, Netrc, Proxies, Settings, Url};
use hikyaku_store_http::Memory;
use hikyaku_stores::CookiesArgs;
use hikyaku_tcp::{Grants, Options};
use hikyaku_tuner::{ClimbOptions, Controller, Paper, PaperOptions};
use hikyaku_units::{
    ParseUnitError, Rate, RateRule, RetryPolicy, parse_duration, parse_limit, parse_timeout,
};
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Fetch files from web servers through several connections at once.
///
/// A file is fetched in ranges, each through one of several TCP connections. Their number is tuned while the file
/// comes: it begins with 16, and is doubled as long as new connections bring as much as those before. -n fixes it.
///
/// If a download is interrupted, the same command goes on with what is missing. A file gets its name when all of it is
/// there. With several URLs and -o, or with --mirror, all of them are the same file: its ranges come from all servers.
/// An argument that ends in .meta4 is a Metalink file, here or on a server, with mirrors and digests.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct GetArgs {
    #[command(flatten)]
    pub(crate) given: Given,
    /// http:// or https:// URLs, or Metalink files (.meta4); also sftp://, ftp://, gsiftp://, hikyaku://, s3:// and gfarm:// addresses, or HOST:PATH
    #[arg(value_name = "URL", required_unless_present = "input_file")]
    pub(crate) urls: Vec<OsString>,
    /// Also fetch the URLs in this file, one a line, or from standard input (-), as wget and aria2c
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["output", "mirror", "sha256"])]
    pub(crate) input_file: Option<PathBuf>,
    /// The file to write; several URLs are then mirrors of it. Standard output (-), a FIFO or a device get it in order, through one connection
    #[arg(short, long, value_name = "FILE", conflicts_with = "dir")]
    pub(crate) output: Option<PathBuf>,
    /// The directory for the files; their names are those of the URLs, or what the servers say
    #[arg(short, long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Another URL of the same file; may be repeated
    #[arg(long, value_name = "URL", value_parser = url)]
    pub(crate) mirror: Vec<Url>,
    /// Replace files that exist
    #[arg(short, long)]
    pub(crate) force: bool,
    /// Go on with a file that wget, curl, aria2c, axel or a browser has left unfinished
    #[arg(short, long = "continue", conflicts_with = "force")]
    pub(crate) continued: bool,
    /// SHA-256 of the file, in hexadecimal digits; what does not have it does not get the name
    #[arg(long, value_name = "HEX", value_parser = sha256)]
    pub(crate) sha256: Option<Digest>,
    /// Fetch so many files at once; the connections are divided among them
    #[arg(short, long, value_name = "FILES", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) jobs: u32,
    /// Use N connections, and do not tune their number
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) connections: Option<u32>,
    // As an attribute, because rustdoc would take the brackets for a link.
    #[arg(long, help = MOST, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) max_connections: Option<u32>,
    /// The rule that finds the number of connections
    #[arg(long, value_enum, value_name = "RULE", default_value_t = Rule::Adaptive, conflicts_with = "connections")]
    pub(crate) tuner: Rule,
    /// At most this rate for all connections together, as in curl: 500k and 10M are bytes a second, 100mbit is bits
    #[arg(long, value_name = "RATE", value_parser = limit, conflicts_with = "rate")]
    pub(crate) limit_rate: Option<Rate>,
    /// At most this rate for all connections together (300mbit, 10MB)
    #[arg(long, value_name = "RATE", value_parser = parse_limit)]
    pub(crate) rate: Option<Rate>,
    /// A header for each request, to the servers of the URLs but not to where they redirect; may be repeated
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) header: Vec<(String, String)>,
    /// What the program calls itself
    #[arg(short = 'A', long, value_name = "TEXT", value_parser = text, default_value = concat!("hikyaku/", env!("CARGO_PKG_VERSION")))]
    pub(crate) user_agent: String,
    /// Log in to the servers of the URLs (HTTP Basic); the process list shows it: --netrc does not
    #[arg(short, long, value_name = "USER:PASSWORD", value_parser = login)]
    pub(crate) user: Option<Login>,
    /// Take logins from ~/.netrc
    #[arg(long)]
    pub(crate) netrc: bool,
    /// Take logins from this file
    #[arg(long, value_name = "FILE", conflicts_with = "netrc")]
    pub(crate) netrc_file: Option<PathBuf>,
    #[command(flatten)]
    cookies: CookiesArgs,
    /// Trust the authorities in this PEM file, and not those of the system
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    // As an attribute, because rustdoc would take the brackets for a link.
    #[arg(long, help = PROXY, value_name = "http://HOST:PORT", value_parser = proxy)]
    pub(crate) proxy: Option<Url>,
    // As an attribute, because rustdoc would take the brackets for a link.
    #[arg(long, help = RETRIES, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) retries: Option<u32>,
    /// Time before it is asked again, if it does not say; doubled each time
    #[arg(long, value_name = "TIME", default_value = "1", value_parser = seconds)]
    pub(crate) retry_wait: Duration,
    /// Give a connection up after so long without a byte
    #[arg(long, value_name = "TIME", default_value = "30", value_parser = parse_timeout)]
    pub(crate) timeout: Duration,
    /// TCP congestion control of this end
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    /// Show progress also if standard error is no terminal, and each decision on the number of connections
    #[arg(short = 'v', long, visible_alias = "verbose")]
    pub(crate) vb: bool,
    /// Show nothing but errors
    #[arg(short, long, conflicts_with = "vb")]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) form: FormArgs,
    #[command(flatten)]
    _others: OtherArgs<Guests>,
}

/// How the number of connections is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Rule {
    /// Begin with 16, double it while new connections bring as much as those before, and give up what brings nothing
    Adaptive,
    /// The published rule: multiply it until goodput falls, then a golden section, then stop
    Paper,
}

const PROXY: &str = "Go through this proxy [default: http_proxy, https_proxy, all_proxy and no_proxy of the environment]";

const MOST: &str = "Never use more connections than this [default: 64, or what -n says]";

/// Connections at most, if the user does not say how many.
const CONNECTIONS_MAX: u32 = 64;

const RETRIES: &str = "How often a server is asked again after a failure that may pass [default: 5; 0 if nobody listens at its port]";

/// Attempts after a failure that may pass, if the user does not say how many.
const RETRIES_DEFAULT: u32 = 5;

const EXAMPLES: &str = "\
Examples:
  hikyaku get https://data.example.org/run7/big.tar
  hikyaku get -o b.tar https://a.example.org/b.tar https://b.example.org/b.tar
  hikyaku get -j 8 -d /data https://example.org/1.h5 https://example.org/2.h5
  hikyaku get -n 16 -H 'Authorization: Bearer TOKEN' https://example.org/1.h5
  hikyaku get -o - https://data.example.org/run7.tar.gz | tar xz
  hikyaku get https://mirrors.example.org/debian.iso.meta4
  hikyaku get -d /data --cookies cookies.txt -i list.txt";

impl GetArgs {
    /// The messages on standard error.
    pub const fn says(&self) -> Noise {
        Noise::new(self.quiet, self.vb as u8)
    }

    pub(crate) const fn audience(&self) -> Audience {
        self.form.form().audience(match self {
            Self { quiet: true, .. } => Audience::Quiet,
            Self { vb: true, .. } => Audience::Lines,
            _ => Audience::Person,
        })
    }

    /// How a download behaves.
    pub(crate) fn conduct(&self) -> Conduct {
        Conduct {
            retries: self.retries.unwrap_or(RETRIES_DEFAULT),
            retries_of_closed_port: self.retries.unwrap_or(0),
            retry: RetryPolicy::of_web(self.retry_wait),
        }
    }

    /// The effect on a file that has the name.
    pub(crate) const fn existing(&self) -> Existing {
        match (self.force, self.continued) {
            (true, _) => Existing::Replaced,
            (false, true) => Existing::Continued,
            (false, false) => Existing::Refused,
        }
    }

    /// What all requests have in common.
    ///
    /// # Errors
    /// A file that was named cannot be read.
    pub(crate) fn settings(&self) -> Result<Settings> {
        let home = || env::var_os("HOME").map(PathBuf::from).context("HOME is not set");
        let netrc = match (&self.netrc_file, self.netrc) {
            (Some(path), _) => logins(path)?,
            (None, true) => logins(&home()?.join(".netrc"))?,
            (None, false) => Netrc::default(),
        };
        Ok(Settings {
            cookies: self.cookies.read()?,
            headers: self.header.clone(),
            user_agent: self.user_agent.clone(),
            login: self.user.clone(),
            netrc,
            authorities: self.ca.clone(),
            proxies: self.proxy.clone().map_or_else(Proxies::of_environment, Proxies::all),
            tcp: Options { congestion: self.congestion.clone(), ..Options::default() },
            connect_within: self.timeout.min(Duration::from_secs(10)),
            patience: self.timeout,
            grants: Grants::remembering(Arc::new(Memory::of_user())),
        })
    }

    /// Whether each server has a number of its own.
    pub(crate) fn is_tuned_by_server(&self) -> bool {
        self.connections.is_none() && self.tuner == Rule::Adaptive
    }

    /// A rule that has seen nothing, for at most `cap` connections.
    pub(crate) fn new_controller(&self, cap: u32) -> Controller {
        let controller = match (self.connections, self.tuner) {
            (Some(_), _) => Controller::fixed(cap),
            (None, Rule::Adaptive) => {
                Controller::climb(&ClimbOptions { cap, ..ClimbOptions::default() })
            }
            (None, Rule::Paper) => {
                let options = PaperOptions { cap, ..PaperOptions::default() };
                // The round-trip time decides the size of the first chunk only, and is not known yet.
                Controller::paper(Paper::new(&options, Duration::from_millis(50)), cap)
            }
        };
        controller.in_waves()
    }

    /// Connections of all files at most.
    pub(crate) fn cap(&self) -> u32 {
        let cap = self.max_connections.or(self.connections).unwrap_or(CONNECTIONS_MAX);
        self.connections.map_or(cap, |wanted| wanted.min(cap)).max(1)
    }
}

// fuzz: none, the user's own words
fn url(text: &str) -> Result<Url, String> {
    Url::parse(text).map_err(|error| error.to_string())
}

fn limit(text: &str) -> Result<Rate, ParseUnitError> {
    Rate::parse_limit(text, RateRule::Curl)
}

fn proxy(text: &str) -> Result<Url, String> {
    let url = url(text)?;
    match url.origin.scheme {
        Scheme::Http => Ok(url),
        Scheme::Https => Err("a proxy is spoken to by http://".to_owned()),
    }
}

fn sha256(text: &str) -> Result<Digest, String> {
    Digest::parse(Function::Sha256, text).ok_or_else(|| "is not 64 hexadecimal digits".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

fn login(text: &str) -> Result<Login, String> {
    let (user, password) = text.split_once(':').ok_or("has no colon between user and password")?;
    Ok(Login { user: user.to_owned(), password: password.to_owned() })
}

/// A value of a header: a line end in it would begin another header.
fn text(text: &str) -> Result<String, String> {
    let is_fine = |c: char| c == '\t' || !c.is_control();
    if text.chars().all(is_fine) {
        Ok(text.trim().to_owned())
    } else {
        Err("has control characters".to_owned())
    }
}

fn header(line: &str) -> Result<(String, String), String> {
    /// These decide where a message ends, or which part of a file is asked for.
    const OURS: [&str; 7] = [
        "host",
        "range",
        "if-range",
        "connection",
        "content-length",
        "transfer-encoding",
        "accept-encoding",
    ];
    let (name, value) = line.split_once(':').ok_or("has no colon behind its name")?;
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        return Err("has a name that no header can have".to_owned());
    }
    if OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours)) {
        return Err(format!("{name} is set by the program"));
    }
    Ok((name.to_owned(), text(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_one_line() {
        assert_eq!(header("X-A: b c ").unwrap(), ("X-A".to_owned(), "b c".to_owned()));
        for line in ["X", ": a", "X Y: a", "X: a\r\nHost: b", "Range: bytes=0-1", "host: b"] {
            assert!(header(line).is_err(), "{line:?}");
        }
    }
}
