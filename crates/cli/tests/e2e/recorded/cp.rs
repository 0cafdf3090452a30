//! `hikyaku cp` on every route with two ends on this machine.

use super::{Begin, Call, Ground, NAMING, READING, Records};
use crate::common::Sshd;
use crate::common::daemon::{Client, Daemon};
use std::fs;
use std::process::Command;

/// Source and target of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Route {
    Here,
    ToSsh,
    FromSsh,
    Through,
    ToSftp,
    FromSftp,
    ToDaemon,
    FromDaemon,
}

use Route::{FromDaemon, FromSftp, FromSsh, Here, Through, ToDaemon, ToSftp, ToSsh};

/// The routes, their names, and the call before which this end is killed. The far end of an upload by ssh or of a copy
/// between two hosts ends at its own time, so these routes have no such case.
const ROUTES: [(Route, &str, Option<Call>); 8] = [
    (Here, "here to here", Some(NAMING)),
    (ToSsh, "here to ssh", None),
    (FromSsh, "ssh to here", Some(NAMING)),
    (Through, "ssh to ssh", None),
    (ToSftp, "here to sftp", Some(READING)),
    (FromSftp, "sftp to here", Some(NAMING)),
    (ToDaemon, "here to daemon", Some(READING)),
    (FromDaemon, "daemon to here", Some(NAMING)),
];

struct Ends {
    ground: Ground,
    sshd: Sshd,
    daemon: Daemon,
    _client: Client,
}

impl Ends {
    fn new() -> Self {
        let sshd = Sshd::with_lines("recorded-cp", "Subsystem sftp internal-sftp\n");
        let mut ground = Ground::new("recorded-cp-ends");
        let client = Client::new("recorded-cp-client");
        let keys = client.authorized("keys", "");
        // All cases have the key that the daemon knows.
        fs::rename(client.at("state"), ground.at("state")).unwrap();
        let daemon = Daemon::start_with(&client, &ground.at(""), &keys, &["--writable"]);
        ground.name(&daemon.address, "$DAEMON");
        ground.name(sshd.at("").display(), "$SSHD/");
        Self { ground, sshd, daemon, _client: client }
    }

    /// A copy of `sources` of `from` into `to`.
    fn copy(&self, route: Route, options: &[&str], sources: &[&str]) -> Command {
        let end = |name: &str, is_far: bool| match route {
            ToDaemon | FromDaemon if is_far => format!("hikyaku://{}/{name}", self.daemon.address),
            _ if is_far => format!("far:{}", self.ground.path(name)),
            _ => self.ground.path(name),
        };
        let is_from_far = matches!(route, FromSsh | Through | FromSftp | FromDaemon);
        let is_to_far = matches!(route, ToSsh | Through | ToSftp | ToDaemon);
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        command.arg("cp").args(options);
        match route {
            ToSsh | FromSsh | Through => {
                command.args(["-F", &self.sshd.at("ssh_config").display().to_string()]);
                command.args(["--remote-path", env!("CARGO_BIN_EXE_hikyaku")]);
            }
            ToSftp | FromSftp => {
                command.args(["-F", &self.sshd.at("ssh_config").display().to_string()]);
                command.args(["--via", "sftp"]);
            }
            _ => {}
        }
        for source in sources {
            command.arg(end(&format!("from/{source}"), is_from_far));
        }
        command.arg(end("to", is_to_far)).current_dir(self.ground.at(""));
        self.ground.is_home_of(&mut command);
        command
    }
}

#[test]
fn cp_does_what_is_recorded() {
    let ends = Ends::new();
    let mut records = Records::new();
    let all = ["t", "f"];
    for (route, name, call) in ROUTES {
        let mut add = |title: &str, begin: Begin, options: &[&str], sources: &[&str]| {
            let title = format!("cp {name}, {title}");
            records.add(&ends.ground, &title, begin, &|| ends.copy(route, options, sources));
        };
        add("tree and file", Begin::New, &["-r", "--json-lines"], &all);
        add("tree and file", Begin::Again, &["-r", "--json-lines"], &all);
        add("tree and file", Begin::Taken, &["-r", "--json-lines"], &all);
        add("-p", Begin::New, &["-rp", "--json-lines"], &all);
        add("dry run", Begin::New, &["-rn"], &all);
        add("tree without -r", Begin::New, &["--json-lines"], &all);
        add("missing source", Begin::New, &["-r", "--json-lines"], &["nosuch", "f"]);
        add("document", Begin::New, &["-r", "--json"], &["nosuch", "f"]);
        if let Some(call) = call {
            add("file", Begin::Killed(call), &["--json-lines"], &["f"]);
        }
    }
    records.check("cp");
}
