//! The rate of a path, measured by `hikyaku perf` in each direction.
//!
//! This program starts itself as `hikyaku perf ssh://HOST --json` and reads what that prints, so that both commands give
//! the same figures.

use hikyaku_console::Scope;
use hikyaku_reach::{Destination, SshOptions};
use serde::Deserialize;
use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};

/// Seconds of one test, after those that [`OMITTED`] names.
const SECONDS: &str = "3";
/// Seconds at the start of a test, in which the sender looks for the capacity of the path.
const OMITTED: &str = "1";

/// The way that the data go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// To the host.
    Up,
    /// From the host.
    Down,
}

/// How the program of the other host is started.
pub(crate) struct Way {
    /// How ssh gets there.
    pub(crate) ssh: SshOptions,
    /// Where the program is, if ssh is not to look for it.
    pub(crate) remote_path: Option<String>,
}

/// The tests of a path.
pub(crate) struct Test<'a> {
    pub(crate) host: &'a Destination,
    pub(crate) way: &'a Way,
    pub(crate) udp_ports: Option<&'a str>,
}

/// The output of `hikyaku perf --json`, as far as it is used here.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
struct Printed {
    start: Option<Start>,
    end: Option<End>,
    error: Option<String>,
}

/// The start of a test.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Start {
    pub(crate) granted_recv_buffer: u64,
    pub(crate) server: Option<Server>,
}

/// The other end.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Server {
    pub(crate) granted_recv_buffer: u64,
}

/// The result of a test.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct End {
    pub(crate) sum_received: Received,
    pub(crate) limited_by: String,
    pub(crate) base_rtt_ms: f64,
    pub(crate) queue_ms: f64,
    pub(crate) lost_percent: f64,
    pub(crate) ambient_loss_percent: f64,
    pub(crate) host_drops_local: u64,
    pub(crate) host_drops_remote: Option<u64>,
    pub(crate) busiest_thread_local: Option<Busiest>,
    pub(crate) busiest_thread_remote: Option<Busiest>,
}

/// The counters of the receiver.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Received {
    pub(crate) bits_per_second: f64,
    pub(crate) bytes: f64,
}

/// The thread that had most to do.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Busiest {
    pub(crate) percent: f64,
}

/// A test that came to its end.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) start: Start,
    pub(crate) end: End,
}

/// Why there is no measurement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NotMeasured {
    /// No UDP gets through.
    NoUdp(String),
    /// Anything else, and whether it may pass.
    Other { text: String, may_pass: bool },
}

/// The exit code of a failure that may pass.
const MAY_PASS: i32 = 5;
/// The error of `hikyaku-reach` for a path without UDP begins so.
const NO_UDP: &str = "no UDP gets through";

impl Test<'_> {
    /// Runs one test.
    pub(crate) fn measure(
        &self,
        direction: Direction,
        scope: &Scope,
    ) -> Result<Measured, NotMeasured> {
        let output = std::env::current_exe().and_then(|own| {
            let mut command = Command::new(own);
            command.args(self.arguments(direction));
            // ssh asks for passwords at the terminal itself.
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let (child, _ended) = scope.spawn(&mut command)?;
            child.wait_with_output()
        });
        let output = output.map_err(|error| failed(&error))?;
        let said = String::from_utf8_lossy(&output.stderr);
        read(&output.stdout, &said, output.status.code())
    }

    fn arguments(&self, direction: Direction) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["perf".into(), url(self.host).into()];
        // A program that was sent is at the path below: the test sends none, and asks nothing.
        words.extend(["--json", "-t", SECONDS, "-O", OMITTED, "--bootstrap=never"].map(Into::into));
        if direction == Direction::Down {
            words.push("-R".into());
        }
        words.extend(self.way.ssh.long_words());
        let mut pair = |flag: &str, value: &str| words.extend([flag.into(), value.into()]);
        self.way.remote_path.iter().for_each(|path| pair("--remote-path", path));
        self.udp_ports.iter().for_each(|ports| pair("--udp-ports", ports));
        words
    }
}

fn failed(error: &io::Error) -> NotMeasured {
    NotMeasured::Other {
        text: format!("cannot run hikyaku perf: {}", hikyaku_fs::words(error)),
        may_pass: false,
    }
}

/// As `hikyaku perf` takes a host that ssh reaches.
fn url(host: &Destination) -> String {
    let user = host.user.as_ref().map(|user| format!("{}@", escaped(user))).unwrap_or_default();
    let port = host.port.map(|port| format!(":{port}")).unwrap_or_default();
    let name = if host.host.contains(':') {
        format!("[{}]", escaped(&host.host))
    } else {
        escaped(&host.host)
    };
    format!("ssh://{user}{name}{port}")
}

/// With `%XX` for what has a meaning in a URL.
fn escaped(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte);
    name.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Reads what the test printed and how it ended.
// fuzz: none, what the own program prints
fn read(stdout: &[u8], stderr: &str, code: Option<i32>) -> Result<Measured, NotMeasured> {
    let printed: Printed = serde_json::from_slice(stdout).unwrap_or_default();
    if let (Some(start), Some(end), None) = (printed.start, printed.end, &printed.error) {
        return Ok(Measured { start, end });
    }
    let text = printed.error.unwrap_or_else(|| first_line(stderr));
    if text.contains(NO_UDP) {
        return Err(NotMeasured::NoUdp(text));
    }
    Err(NotMeasured::Other { text, may_pass: code == Some(MAY_PASS) })
}

fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or("hikyaku perf printed nothing");
    line.trim_start_matches("hikyaku: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read() {
        let json = br#"{"start": {"granted_recv_buffer": 5, "server": {"granted_recv_buffer": 7}},
            "intervals": [], "end": {"sum_received": {"bits_per_second": 9e8, "bytes": 100},
            "limited_by": "link", "base_rtt_ms": 200.5, "host_drops_remote": null}}"#;
        let measured = read(json, "", Some(0)).unwrap();
        assert_eq!(measured.end.sum_received.bits_per_second, 9e8);
        assert_eq!((measured.end.limited_by.as_str(), measured.end.base_rtt_ms), ("link", 200.5));
        assert_eq!(measured.start.server.unwrap().granted_recv_buffer, 7);
    }

    #[test]
    fn a_failure_says_why() {
        let json =
            br#"{"start": null, "end": null, "error": "no UDP gets through to h (1.2.3.4:60001)"}"#;
        assert!(matches!(read(json, "", Some(5)), Err(NotMeasured::NoUdp(_))));
        let other = read(b"", "hikyaku: h: ssh did not log in\ntry: ssh h\n", Some(5));
        let text = "h: ssh did not log in".to_owned();
        assert_eq!(other, Err(NotMeasured::Other { text, may_pass: true }));
        let nothing = read(b"", "", None);
        assert!(matches!(nothing, Err(NotMeasured::Other { may_pass: false, .. })));
    }

    #[test]
    fn a_host_becomes_a_url() {
        let of = |text: &str| url(&Destination::parse(text.as_bytes()).unwrap());
        assert_eq!(of("me@h"), "ssh://me@h");
        assert_eq!(of("a@b@h"), "ssh://a%40b@h");
        assert_eq!(of("[2001:db8::1]"), "ssh://[2001:db8::1]");
    }
}
