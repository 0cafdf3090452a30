//! How the far side is started: the user's own `ssh`, told what scp would tell it.

mod args;
mod child;
mod configuration;

pub use args::{FamilyArgs, Letters, ScpArgs, SshArgs};
pub use child::NO_CONNECTION;
pub(crate) use child::{Output, Sharing, Ssh};
pub(crate) use configuration::Configuration;

use crate::bootstrap::Programs;
use crate::destination::Destination;
pub use hikyaku_tcp::Family;
use std::ffi::{OsStr, OsString};
use std::time::Duration;

/// What the user said that concerns `ssh`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SshOptions {
    /// The program; `ssh` by default (`-S`).
    pub program: Option<OsString>,
    /// Only this address family (`-4`, `-6`).
    pub family: Option<Family>,
    /// Forward the agent (`-A`).
    pub forward_agent: bool,
    /// Never ask for a password (`-B`).
    pub batch: bool,
    /// Say nothing (`-q`).
    pub quiet: bool,
    /// How often `-v` was said.
    pub verbose: u8,
    /// `-c`: ssh's cipher, of the start-up only.
    pub cipher: Option<OsString>,
    /// `-F`.
    pub config: Option<OsString>,
    /// `-i`, each.
    pub identities: Vec<OsString>,
    /// `-J`.
    pub jump: Option<OsString>,
    /// `-o`, each.
    pub options: Vec<OsString>,
    /// `-P`.
    pub port: Option<u16>,
    /// The silence after which ssh gives a session by SFTP up; `None` leaves that to the user's configuration.
    pub silence: Option<Duration>,
    /// The socket of a login that commands share ([`SharedLogin`](crate::SharedLogin)).
    pub login: Option<OsString>,
}

/// A path of the far side's program that could mean something to a shell.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "'{0}': a path on the far side may have letters, digits and any of / . _ - + ~ only, \
     because the remote shell reads it"
)]
pub struct BadRemotePath(String);

/// Without these the far side cannot be spoken to, whatever the user's configuration or options say: the first
/// setting of a kind wins.
const NEEDED: [&str; 2] = ["-oRemoteCommand=none", "-oRequestTTY=no"];

/// Settings of the user's `ssh` that a session must not inherit: scp sets the same.
const ALWAYS: [&str; 4] =
    ["-x", "-oPermitLocalCommand=no", "-oClearAllForwardings=yes", "-oForwardAgent=no"];

/// Questions to a silent server that ssh lets pass without an answer.
const UNANSWERED: u32 = 2;

/// Where `cargo install` and `pip install --user` put programs, which a shell without a terminal
/// does not always look in.
const FIND: &str = "PATH=$PATH:$HOME/.local/bin:$HOME/.cargo/bin; export PATH";

/// Exit code of the far side's `sh`, and so of `ssh`, if the program is not there. No shell ends with it by itself.
pub const NOT_THERE: i32 = 121;
/// What a login shell ends with if there is no `sh` that it may start.
pub(crate) const NO_SH: i32 = 127;

/// How the far side's login shell is told to start the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Through `sh`, which looks for it in more places.
    Searched,
    /// By its name only: a restricted shell may have no `sh`.
    Bare,
}

impl SshOptions {
    /// The program and its arguments that start `hikyaku serve --stdio` at `destination`. `path` is where the program
    /// is there, if it is not to be looked for; `others` are paths below the home directory where it may be if it is
    /// not there.
    pub(crate) fn command(
        &self,
        destination: &Destination,
        (path, others): (Option<&str>, &[String]),
        form: Form,
    ) -> Result<Vec<OsString>, BadRemotePath> {
        let script = script((path, others), form, "serve --stdio")?;
        Ok(self.words(destination, script))
    }

    /// The program and its arguments that give `command` to the login shell at `destination`. It has plain words only,
    /// which every shell reads alike.
    pub(crate) fn plain(&self, destination: &Destination, command: &str) -> Vec<OsString> {
        self.words(destination, command.to_owned())
    }

    /// The program and its arguments that start `hikyaku VERB` at `destination`, where `verb` is a few plain words, and
    /// `path` is the program there; `None` searches for it. If there is none, a program that this installation has sent is
    /// started.
    ///
    /// # Errors
    ///
    /// A shell would find a meaning in the path.
    pub fn start(
        &self,
        destination: &Destination,
        path: Option<&str>,
        verb: &str,
    ) -> Result<Vec<OsString>, BadRemotePath> {
        let sent = Programs::own().paths();
        Ok(self.words(destination, script((path, &sent), Form::Searched, verb)?))
    }

    /// The program and its arguments that start the subsystem `sftp` at `destination`.
    pub fn sftp(&self, destination: &Destination) -> Vec<OsString> {
        let mut words = self.words(destination, "sftp".to_owned());
        // The options end with "--", the host and the name of the subsystem.
        let end = words.len() - 3;
        let mut own: Vec<OsString> = vec!["-s".into()];
        if let Some(silence) = self.silence {
            // The session has nothing that would notice it. ssh gives a connection up when the time of one question more than
            // this number has passed without an answer.
            let interval = silence.as_secs().div_ceil(u64::from(UNANSWERED) + 1).max(1);
            own.insert(0, format!("-oServerAliveInterval={interval}").into());
            own.insert(1, format!("-oServerAliveCountMax={UNANSWERED}").into());
        }
        words.splice(end..end, own);
        words
    }

    /// The program and its arguments that have the login shell at `destination` run a script, which all shells must take
    /// alike.
    pub fn run(&self, destination: &Destination, script: &str) -> Vec<OsString> {
        self.words(destination, script.to_owned())
    }

    fn words(&self, destination: &Destination, script: String) -> Vec<OsString> {
        let mut words = vec![self.program.clone().unwrap_or_else(|| "ssh".into())];
        words.extend(NEEDED.map(OsString::from));
        if let Some(socket) = &self.login {
            let mut path = OsString::from("-oControlPath=");
            path.push(socket);
            words.extend(["-oControlMaster=auto".into(), path, "-oControlPersist=no".into()]);
        }
        // What the user says comes before what we say.
        self.add_flags(&mut words);
        words.extend(ALWAYS.map(OsString::from));
        self.add_login(destination, &mut words);
        words.extend(["--".into(), destination.host.clone().into(), script.into()]);
        words
    }

    /// These options with a login of their own. A command that shares a login waits for its connection, which may be
    /// lost.
    #[must_use]
    pub fn alone(self) -> Self {
        Self { login: None, ..self }
    }

    /// What a user types to see how ssh itself gets on with `destination`.
    pub fn by_hand(&self, destination: &Destination) -> String {
        let mut words = vec![self.program.clone().unwrap_or_else(|| "ssh".into())];
        Self { verbose: 0, batch: false, quiet: false, ..self.clone() }.add_flags(&mut words);
        self.add_login(destination, &mut words);
        words.push(destination.host.clone().into());
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        words.join(" ")
    }

    fn add_login(&self, destination: &Destination, words: &mut Vec<OsString>) {
        if let Some(port) = destination.port.or(self.port) {
            words.extend(["-p".into(), port.to_string().into()]);
        }
        if let Some(user) = &destination.user {
            words.extend(["-l".into(), user.into()]);
        }
    }

    fn add_flags(&self, words: &mut Vec<OsString>) {
        match self.family {
            Some(Family::V4) => words.push("-4".into()),
            Some(Family::V6) => words.push("-6".into()),
            None => {}
        }
        if self.forward_agent {
            words.push("-A".into());
        }
        if self.batch {
            words.push("-oBatchMode=yes".into());
        }
        if self.quiet {
            words.push("-q".into());
        }
        // The first is for us.
        words.extend((1..self.verbose).map(|_| OsString::from("-v")));
        let mut pair = |flag: &str, value: &OsStr| words.extend([flag.into(), value.to_owned()]);
        for (flag, value) in [("-c", &self.cipher), ("-F", &self.config), ("-J", &self.jump)] {
            if let Some(value) = value {
                pair(flag, value);
            }
        }
        self.identities.iter().for_each(|value| pair("-i", value));
        self.options.iter().for_each(|value| pair("-o", value));
    }
}

/// A word as a shell reads it back.
pub fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy().replace(char::is_control, "?");
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%:=,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// What the far side's login shell is given: one command with at most one quoted word, which Bourne, C and fish
/// shells read alike. It does nothing that a restricted one (rbash) forbids: no `exec`, no slash, no setting of
/// `PATH`.
fn script(
    (path, others): (Option<&str>, &[String]),
    form: Form,
    verb: &str,
) -> Result<String, BadRemotePath> {
    let program = path.unwrap_or("hikyaku");
    others.iter().map(String::as_str).chain([program]).try_for_each(is_harmless)?;
    let start = format!("{program} {verb}");
    Ok(match form {
        Form::Searched if others.is_empty() => format!(
            "sh -c '{FIND}; command -v {program} >/dev/null || exit {NOT_THERE}; exec {start}'"
        ),
        Form::Searched => {
            let others: Vec<_> = others.iter().map(|path| format!("\"$HOME/{path}\"")).collect();
            let others = others.join(" ");
            format!(
                "sh -c '{FIND}; for p in {program} {others}; \
                 do command -v \"$p\" >/dev/null && exec \"$p\" {verb}; done; exit {NOT_THERE}'"
            )
        }
        Form::Bare => start,
    })
}

/// Whether no shell finds a meaning in it.
pub fn is_harmless(path: &str) -> Result<(), BadRemotePath> {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "/._-+~".contains(c);
    if path.is_empty() || path.starts_with('-') || !path.chars().all(harmless) {
        return Err(BadRemotePath(path.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
