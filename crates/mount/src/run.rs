//! `hikyaku mount`: from arguments to a mount that is served.

use crate::args::{LocksAt, MountArgs};
use crate::changes::Turn;
use crate::core::{Access, Core, Ending, Opens, Settings};
use crate::crew::Crew;
use crate::front::Front;
use crate::link::{Leasing, Links};
use crate::locks::Locking;
use crate::mounted;
use crate::nodes::Seen;
use crate::notes::{Killed, Notes};
use crate::options::{Options, Owners};
use crate::stage::Stage;
use crate::status::{STATUS_ATTRIBUTE, attribute, figures};
use crate::umount::{Manner, PROCESS, take};
use anyhow::{Context, Error, Result, bail};
use fuser::{Config, MountOption, Session};
use hikyaku_console::{
    At, Document, Exit, ExitCode, Form, Interrupt, Tone, misuse, print, say, with_remedy,
};
use hikyaku_reach::daemon::SUCCESSORS;
use hikyaku_reach::dial::Servers;
use hikyaku_remote::{Client, Holder, RemoteError};
use hikyaku_store::{Kind, StorePath};
use hikyaku_units::{DataSize, counted};
use serde_json::json;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// The line that the process in the background prints once the mount stands.
const READY: &str = "ready";
/// Threads that read the kernel's requests.
const THREADS: usize = 2;
/// Memory for file contents: this fraction of the machine's memory, within the limits below.
const CACHE_PART: u64 = 4;
const CACHE_BYTES_MAX: u64 = 8 << 30;
const CACHE_BYTES_MIN: u64 = 32 << 20;
/// How often it is looked whether the server has everything.
const DRAIN_LOOK: Duration = Duration::from_millis(10);
/// How often it is looked whether the mount is still there.
const LOOK: Duration = Duration::from_secs(1);
/// How long the end may take to reach the servers.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Mounts. Returns the exit of the process in the background if that failed.
///
/// # Errors
///
/// The arguments are wrong, the server cannot be used, or FUSE refuses the mount.
pub fn run(args: &MountArgs, interrupt: &Interrupt) -> Result<Exit> {
    let notes = args.others.check()?;
    for note in notes.iter().filter(|_| !args.is_background) {
        say(Tone::Note, note);
    }
    if let Some(directory) = &args.status {
        let status = attribute(directory, STATUS_ATTRIBUTE);
        let none = || format!("hikyaku has mounted nothing at {}", directory.display());
        print(format!("{}\n", status.with_context(none)?))?;
        return Ok(ExitCode::Success.into());
    }
    let (Some(source), Some(directory)) = (&args.source, &args.directory) else {
        return Err(misuse("a source and a directory are needed", "hikyaku mount --help"));
    };
    if !args.foreground && !args.is_background {
        return in_background(args.form.form());
    }
    let options = Options::parse(&args.options)?;
    let servers = servers(source)?;
    if mounted::at(&mounted::absolute(directory)?).is_some() {
        let remedy = format!("hikyaku umount {}", directory.display());
        let error =
            ExitCode::WillFail.error("a mount already").context(directory.display().to_string());
        return Err(with_remedy(error, Some(remedy)));
    }
    // The kernel would mount over a file, and nothing could be reached there.
    if directory.exists() && !directory.is_dir() {
        return Err(ExitCode::WillFail.error("not a directory")).at(directory.display());
    }
    serve(args, (&servers, options), directory, interrupt)?;
    Ok(ExitCode::Success.into())
}

/// The servers and the path that the user means.
fn servers(source: &OsStr) -> Result<Servers> {
    let text = source.as_bytes();
    if let Some(servers) = Servers::parse(text) {
        return servers.map_err(|error| misuse(error.to_string(), "hikyaku://HOST[:PORT]/PATH"));
    }
    let shown = source.display();
    let Some(colon) = text.iter().position(|&byte| byte == b':') else {
        let text = format!("'{shown}' names no server");
        return Err(misuse(text, "hikyaku://HOST[:PORT]/PATH or CLUSTER:/PATH"));
    };
    let name = String::from_utf8_lossy(&text[..colon]);
    let settings = hikyaku_reach::settings::of_user()?;
    match settings.cluster(&name) {
        Some(cluster) => Ok(Servers::of_cluster(cluster, &text[colon + 1..])),
        None => {
            let text = format!("'{shown}': the settings have no cluster '{name}'");
            let instead = format!("hikyaku://{name}/PATH, with 'hikyaku serve' at {name}");
            Err(misuse(text, instead))
        }
    }
}

/// Starts the same command again as a process of its own, and waits until its mount stands.
fn in_background(form: Form) -> Result<Exit> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1));
    let mut child =
        command.arg("--is-background").stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    match form {
        Form::Words if line.trim() == READY => return Ok(ExitCode::Success.into()),
        Form::Document | Form::Lines if line.ends_with('\n') => {
            return print(line).map(|()| ExitCode::Success.into());
        }
        _ => {}
    }
    // The child has printed its error.
    let status = child.wait()?;
    match status.code() {
        Some(1..) => Ok(Exit::of_command(status)),
        _ => bail!("the process of the mount has ended: {status}"),
    }
}

/// Mounts, and serves until the mount is gone or a signal comes.
fn serve(
    args: &MountArgs,
    (servers, options): (&Servers, Options),
    directory: &Path,
    interrupt: &Interrupt,
) -> Result<()> {
    // Changes under a lease do not go through the journal.
    let leasing = if args.stage.is_some() { Leasing::Unwanted } else { Leasing::Wanted };
    let (link, clients, access, locking) = Links::connect(servers, leasing, &args.connect)?;
    if servers.servers.len() > 1 && options.wish == Some(Access::Write) {
        return Err(misuse("-o rw: several servers are mounted to read only", "-o ro"));
    }
    let access = options.access_of(access)?;
    let root = StorePath::new(&servers.path).with_context(|| servers.to_string())?;
    let asked = Instant::now();
    let crew = Crew::new(clients.clone(), args.timeout);
    let (tell, hear) = channel();
    crew.look_then(&root, move |found| drop(tell.send(found)));
    let found = hear.recv().context("the servers do not answer")?;
    let (found, at) = found.map_err(|error| error.code().error(error.to_string())).at(servers)?;
    if found.kind != Kind::Dir {
        return Err(ExitCode::WillFail.error("not a directory")).at(servers);
    }
    let owner = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let settings = Settings {
        checks: options.checks(),
        attr_ttl: args.attr_cache.unwrap_or(args.attr_ttl),
        opens: if args.attr_cache.is_some() { Opens::Trust } else { Opens::Ask },
        timeout: args.timeout,
        cache_bytes: args.cache.map_or_else(cache_bytes, |size| size.bytes()).max(CACHE_BYTES_MIN),
        access,
        locking: if args.locks == LocksAt::Local { Locking::Local } else { locking },
        owner: (options.owners == Owners::User).then_some(owner),
    };
    if let Some(below) = &args.stage {
        check_stage(below, directory)?;
    }
    let stage = match (&args.stage, clients.first()) {
        (Some(below), Some(Some(client))) => Some(staged(below, servers, access, client)?),
        _ => None,
    };
    let mut notes = Notes::of(&servers.to_string(), link.process())?;
    if let (Access::Write, Some(Some(client))) = (access, clients.first()) {
        // Without this file the next mount waits until the server has noticed the end of this one.
        let _ = notes.live();
        succeed(&notes, client, link.process())?;
    }
    let core = Core::new(settings, crew, stage);
    core.state().set_notes(notes);
    core.state().observe(&root, Seen { found, link: None, at, asked, sent: Turn::default() });
    core.start_threads().context("cannot start a thread")?;
    for client in clients.iter().flatten().filter(|client| client.has_leases()) {
        core.begin_leases(client);
    }
    interrupt.listen().context("cannot listen for signals")?;
    // A signal that comes while nothing has to be stopped ends the process at once, and would leave a mount without a
    // process.
    let scope = interrupt.scope();
    let main = thread::current();
    let _woken = scope.on_stop(move || main.unpark());
    rustix::thread::set_name(PROCESS).context("cannot name the process")?;
    let config = config(options, access, servers);
    let directory = directory.canonicalize().with_context(|| directory.display().to_string())?;
    let session =
        Session::new(Front(core.clone()), &directory, &config).and_then(Session::spawn).map_err(
            |error| unmounted(error).context(format!("cannot mount at {}", directory.display())),
        )?;
    core.kernel.begin(session.notifier()).context("cannot start a thread")?;
    link.keep(&core, clients)?;
    let is_told = args.form.form() != Form::Words;
    match is_told {
        true => print(event("mounted", (servers, &directory), &core))?,
        false if args.is_background => print(format!("{READY}\n"))?,
        false => {}
    }
    if args.is_background {
        leave_terminal()?;
    }
    let device = mounted::at(&directory).map(|mounted| mounted.device);
    let scope = interrupt.scope();
    let main = thread::current();
    let _woken = scope.on_stop(move || main.unpark());
    let is_there = || device.as_deref().is_none_or(|device| mounted::is_there("self", device));
    while scope.stop_cause().is_none() && !session.guard.is_finished() && is_there() {
        thread::park_timeout(LOOK);
    }
    if scope.stop_cause().is_some() && !session.guard.is_finished() {
        // Programs that still use it get errors when this process has ended.
        take(&directory, Manner::Idle).or_else(|_| take(&directory, Manner::Detach))?;
    }
    // A copy of the mount in another namespace may keep the session alive; it ends with this process.
    std::mem::forget(session);
    core.drain();
    core.state().end_notes();
    if is_told {
        print(event("unmounted", (servers, &directory), &core))?;
    }
    client_ends(&core);
    core.unsent().into_result()
}

/// Refuses a folder for changes that the mount would hide.
fn check_stage(below: &Path, directory: &Path) -> Result<()> {
    if !std::path::absolute(below)?.starts_with(mounted::absolute(directory)?) {
        return Ok(());
    }
    let text = format!("--stage {}: it is where the mount will be", below.display());
    Err(misuse(text, "a directory beside it"))
}

/// A line about the mount, for programs.
fn event(event: &str, (source, at): (&Servers, &Path), core: &Core) -> String {
    let (source, directory) = (source.to_string(), at.display().to_string());
    let can_write = core.settings.access == Access::Write;
    Document::new(json!({
        "event": event,
        "source": source,
        "directory": directory,
        "access": if can_write { "write" } else { "read" },
        "process": std::process::id(),
        "status": figures(core),
    }))
    .line()
}

/// Removes the traces of killed mounts at the server: their locks and leases, then their hidden names.
fn succeed(notes: &Notes, client: &Client, process: Holder) -> Result<()> {
    let killed = notes.killed()?;
    let ended: Vec<Holder> = killed.iter().filter_map(Killed::process).collect();
    if !ended.is_empty() && client.has(SUCCESSORS) {
        let (tell, hear) = channel();
        client.process_then((process, ended), move |done| drop(tell.send(done)));
        hear.recv().context("the server does not answer")??;
    }
    let mut killed = killed.into_iter();
    killed
        .try_for_each(|killed| killed.sweep(client))
        .context("cannot remove files of a mount that was killed")
}

/// The options of the FUSE session.
fn config(options: Options, access: Access, servers: &Servers) -> Config {
    let mut config = Config::default();
    let name = servers.to_string().replace([',', '\\'], "_");
    let has_name = options.kernel.iter().any(|o| matches!(o, MountOption::FSName(_)));
    let has_type = options.kernel.iter().any(|o| matches!(o, MountOption::Subtype(_)));
    config.mount_options = options.kernel;
    if access == Access::Read {
        config.mount_options.push(MountOption::RO);
    }
    if !has_name {
        config.mount_options.push(MountOption::FSName(name));
    }
    if !has_type {
        config.mount_options.push(MountOption::Subtype("hikyaku".to_owned()));
    }
    config.acl = options.access;
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    config
}

impl Core {
    /// Waits until the server has all that programs have written and closed, or is away for too long. Writes that
    /// it refuses and that no journal has are sent again until then.
    fn drain(self: &Arc<Self>) {
        let begin = Instant::now();
        self.end_all_unnamed();
        self.begin_flush(begin);
        let may_wait = || begin.elapsed() < self.settings.timeout;
        while !self.is_flushed(begin) || (self.has_kept() && may_wait()) {
            thread::sleep(DRAIN_LOOK);
        }
    }
}

/// Opens the journal, and sends what an earlier mount has left in it.
fn staged(below: &Path, servers: &Servers, access: Access, client: &Client) -> Result<Arc<Stage>> {
    let idle = match (servers.servers.len(), access) {
        (1, Access::Write) => None,
        (1, Access::Read) => Some("--stage: nothing can be written to a mount to read"),
        _ => Some("--stage: several servers are mounted to read only"),
    };
    if let Some(text) = idle {
        return Err(misuse(text, "without --stage"));
    }
    let stage = match Stage::open(below, &servers.to_string()) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            let busy = format!("--stage {}: another mount of {servers} uses it", below.display());
            return Err(with_remedy(ExitCode::MayPass.error(busy), Some("another directory")));
        }
        Err(error) if error.kind() == ErrorKind::Other => {
            let text = "try: a directory that no other user can write to";
            let stage = format!("--stage {}", below.display());
            return Err(Error::new(error).context(text).context(stage));
        }
        stage => stage.with_context(|| format!("--stage {}", below.display()))?,
    };
    let replayed = stage.replay(client).map_err(|error| {
        let is_refusal = matches!(error.downcast_ref(), Some(RemoteError::Refused { .. }));
        let dir = stage.dir().display();
        let remedy =
            format!("make room at the server; or mount without --stage, and {dir} keeps it");
        with_remedy(error, is_refusal.then_some(remedy))
    });
    let replayed = replayed.context("cannot send what an earlier mount has left")?;
    if replayed.files > 0 {
        let size = DataSize::from_bytes(replayed.bytes);
        let files = counted(replayed.files, "file");
        say(Tone::Note, format_args!("{size} of {files} of an earlier mount were sent"));
    }
    for (path, why, kept) in &replayed.aside {
        say(
            Tone::Warning,
            format_args!(
                "what an earlier mount wrote to {path} was not sent, because {why}; it is in {}",
                kept.display()
            ),
        );
    }
    Ok(stage)
}

/// Why FUSE has refused the mount.
fn unmounted(error: std::io::Error) -> Error {
    const DEVICE: &str = "/dev/fuse";
    let (cause, remedy) = match File::options().read(true).write(true).open(DEVICE) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => (cause, "try: modprobe fuse, as root"),
        Err(cause) if cause.kind() == ErrorKind::PermissionDenied => {
            (cause, "try: chmod 666 /dev/fuse, as root")
        }
        Err(cause) => return Error::new(cause).context(format!("cannot open {DEVICE}")),
        // Without the rights of root, fusermount3 mounts.
        Ok(_) if error.kind() == ErrorKind::NotFound => {
            let text = "try: install the package fuse3";
            return Error::new(error)
                .context(text)
                .context("no fusermount3, which mounts for users");
        }
        Ok(_) => return error.into(),
    };
    Error::new(cause).context(remedy).context(format!("cannot open {DEVICE}"))
}

/// Closes the sessions at the servers, and waits until the servers have received that: their places are free then.
fn client_ends(core: &Core) {
    let crew = {
        let mut state = core.state();
        state.ending = Ending::Begun;
        state.crew.clone()
    };
    for client in crew.clients() {
        client.connection().close(hikyaku_net::code::DONE, "");
    }
    let until = Instant::now() + LAST_WORD;
    for client in crew.clients() {
        client.connection().tell_end(until.saturating_duration_since(Instant::now()));
    }
}

/// Leaves the terminal of the parent process, which has reported the mount by then.
fn leave_terminal() -> Result<()> {
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    // A directory that is in use cannot be unmounted.
    std::env::set_current_dir("/")?;
    // It fails for the leader of a process group, which this process is not, unless a user has started it so.
    let _ = rustix::process::setsid();
    Ok(())
}

/// Memory for file contents, if the user gave none.
fn cache_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    let total = (info.totalram as u64).saturating_mul(u64::from(info.mem_unit));
    (total / CACHE_PART).min(CACHE_BYTES_MAX)
}
