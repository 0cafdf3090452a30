//! `hikyaku far install`: the program on other hosts, at a path.

use anyhow::Result;
use clap::Args;
use hikyaku_console::{
    ExitCode, Noise, NoiseArgs, Scope, Tone, print, print_error, say, with_remedy,
};
use hikyaku_reach::bootstrap::{
    BadPlace, Install as Installing, NotInstalled, Place, Programs, Progress, Was,
};
use hikyaku_reach::{Destination, FamilyArgs, Letters, Login, SftpServer, SshArgs, SshOptions};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(mut_args(|arg| Letters::Scp.added(arg)))]
pub(super) struct Install {
    /// The hosts, as ssh takes them
    #[arg(required = true, value_name = "[USER@]HOST")]
    hosts: Vec<String>,
    /// Where the program goes there. One that has the path is replaced
    #[arg(long, value_name = "PATH", default_value = USUAL, value_parser = place)]
    path: Place,
    /// Program that is copied there, in place of this one and those installed with it
    #[arg(long, value_name = "FILE")]
    far_binary: Option<PathBuf>,
    #[command(flatten)]
    ssh: SshArgs,
    #[command(flatten)]
    family: FamilyArgs,
    #[command(flatten)]
    pub(super) noise: NoiseArgs,
}

/// Where hikyaku looks for itself on other hosts, beside `PATH`, and may be put without root.
const USUAL: &str = "~/.local/bin/hikyaku";

fn place(path: &str) -> Result<Place, BadPlace> {
    Place::at(path)
}

impl Install {
    /// Installs on all hosts, one after the other: ssh may ask for a password.
    pub(super) fn run(&self) -> Result<()> {
        let programs = self.far_binary.as_deref();
        let programs = programs.map_or_else(|| Ok(Programs::own()), Programs::named)?;
        let logins = self.hosts.iter().map(|host| Destination::parse(host.as_bytes()));
        let logins: Vec<Destination> = logins.collect::<Result<_, _>>()?;
        let (mut codes, mut installed) = (Vec::new(), Was::There);
        for login in &logins {
            match self.one(login, &programs) {
                Ok(was) => installed = if was == Was::Sent { was } else { installed },
                Err(error) if logins.len() == 1 => return Err(error),
                Err(error) => {
                    let failure = crate::failure(&error);
                    codes.push(failure.code());
                    print_error(failure);
                }
            }
        }
        let place = self.path.shown();
        if installed == Was::Sent && place != USUAL {
            say(Tone::Note, format_args!("commands find it by --remote-path {place}"));
        }
        match codes.len() {
            0 => Ok(()),
            missed => {
                let text =
                    format!("hikyaku was not installed on {missed} of {} hosts", logins.len());
                Err(ExitCode::of_pieces(codes).error(text))
            }
        }
    }

    fn one(&self, login: &Destination, programs: &Programs) -> Result<Was> {
        let (scope, place) = (Scope::default(), &self.path);
        let options = SshOptions { family: self.family.family(), ..self.ssh.options() };
        let server = SftpServer::open(&options, login, Login::Shared, &scope);
        let server = server.map_err(|error| super::no_server(error, (&options, login)))?;
        let ssh = server.ssh(&options);
        let progress = Progress::new(&login.host, place);
        let sending = |sent, size| progress.show(sent, size);
        let installing =
            Installing { ssh: &ssh, login, programs, place, scope: &scope, sending: &sending };
        let done = installing.run(server.client());
        let done = done.map_err(|error| {
            let remedy = match &error {
                NotInstalled::DoesNotRun { .. } => {
                    Some("try: --path PATH, where programs may run".to_owned())
                }
                error => error.remedy(),
            };
            with_remedy(ExitCode::WillFail.error(error.to_string()), remedy)
        })?;
        let version = env!("CARGO_PKG_VERSION");
        let what = match (done.was, &self.far_binary) {
            (Was::There, _) => "already has this hikyaku".to_owned(),
            (Was::Sent, None) => format!("installed hikyaku {version}"),
            (Was::Sent, Some(program)) => format!("installed {}", program.display()),
        };
        if self.noise.noise() != Noise::Quiet {
            print(format!("{login}: {what} as {}\n", done.path))?;
        }
        Ok(done.was)
    }
}
