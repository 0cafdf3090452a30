//! `hikyaku sync` within this machine, to and from a far hikyaku, and by SFTP.

use super::{Begin, Call, Ground, NAMING, READING, Records};
use crate::common::Sshd;
use std::process::Command;

/// Which end is the far one, and how it is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Route {
    Here,
    ToSsh,
    FromSsh,
    ToSftp,
    FromSftp,
}

use Route::{FromSftp, FromSsh, Here, ToSftp, ToSsh};

/// The routes, their names, and the call before which this end is killed.
const ROUTES: [(Route, &str, Option<Call>); 5] = [
    (Here, "here to here", Some(NAMING)),
    (ToSsh, "here to ssh", None),
    (FromSsh, "ssh to here", Some(NAMING)),
    (ToSftp, "here to sftp", Some(READING)),
    (FromSftp, "sftp to here", Some(NAMING)),
];

fn command(ends: (&Sshd, &Ground), route: Route, options: &[&str], source: &str) -> Command {
    let (sshd, ground) = ends;
    let end = |name: &str, is_far: bool| {
        let path = ground.path(name);
        if is_far { format!("far:{path}/") } else { format!("{path}/") }
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
    command.arg("sync").args(options);
    if route != Here {
        let is_native = matches!(route, ToSsh | FromSsh);
        let program = if is_native { env!("CARGO_BIN_EXE_hikyaku") } else { "no-such-hikyaku" };
        let rsh = format!("ssh -F {}", sshd.at("ssh_config").display());
        command.args(["-e", &rsh, "--remote-path", program]);
    }
    command.arg(end(source, matches!(route, FromSsh | FromSftp)));
    command.arg(end("to", matches!(route, ToSsh | ToSftp))).current_dir(ground.at(""));
    ground.is_home_of(&mut command);
    command
}

#[test]
fn sync_does_what_is_recorded() {
    let sshd = Sshd::with_lines("recorded-sync", "Subsystem sftp internal-sftp\n");
    let mut ground = Ground::new("recorded-sync-ends");
    ground.name(sshd.at("").display(), "$SSHD/");
    let mut records = Records::new();
    for (route, name, call) in ROUTES {
        let mut add = |title: &str, begin: Begin, options: &[&str], source: &str| {
            let title = format!("sync {name}, {title}");
            let ends = (&sshd, &ground);
            records.add(&ground, &title, begin, &|| command(ends, route, options, source));
        };
        add("-a", Begin::New, &["-a"], "from");
        add("-ai", Begin::Again, &["-ai"], "from");
        add("-a", Begin::Taken, &["-a"], "from");
        add("-ai --delete", Begin::Taken, &["-ai", "--delete"], "from");
        add("-r", Begin::New, &["-r"], "from");
        add("dry run", Begin::New, &["-ain"], "from");
        add("lines", Begin::New, &["-a", "--json-lines"], "from");
        add("document", Begin::Taken, &["-a", "--delete", "--json"], "from");
        add("missing source", Begin::New, &["-a"], "nosuch");
        if let Some(call) = call {
            add("-a", Begin::Killed(call), &["-a"], "from");
        }
    }
    records.check("sync");
}
