//! One run of the command.

use crate::args::GetArgs;
use crate::download::{Job, Naming, Tools, download};
use crate::elsewhere;
use crate::metalink::{self, Expect, METALINK_BYTES_MAX};
use crate::names::Names;
use crate::outcome::{error_of, exit_code};
use crate::output::Output;
use crate::show::Show;
use crate::table::TABLE;
use crate::target::Existing;
use anyhow::{Context, Error, Result, bail, ensure};
use hikyaku_console::{
    At, ExitCode, Failed, Interrupt, Kept, Message, Screen, Way, causes, host_by_ssh, misuse,
    print_end, printed, remedy_for_scheme,
};
use hikyaku_http::{Client, NamedBy, Place, Stop, Url, usable};
use hikyaku_transfer::Limit;
use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// Runs the command.
///
/// # Errors
/// A file could not be fetched; [`exit_code`] knows what that means.
pub fn run(args: &GetArgs, interrupt: &Interrupt) -> Result<ExitCode> {
    let elsewhere = elsewhere::locations(args)?;
    if !elsewhere.is_empty() {
        return elsewhere::run(args, elsewhere, interrupt);
    }
    interrupt.listen().context("cannot listen for signals")?;
    let scope = interrupt.scope();
    let begin = Instant::now();
    let stop = Stop::default();
    let to_stop = stop.clone();
    let _stops = scope.on_stop(move || to_stop.set());
    let output = args.output.as_deref().map(Output::of).transpose()?.flatten();
    let output = output.map(Arc::new);
    check(args, output.as_deref())?;
    let way = if output.is_some() { Way::WebToOutput } else { Way::FromWeb };
    let notes = TABLE.check(&args.given, &[way])?;
    let client = Arc::new(Client::new(args.settings()?)?);
    let shows = Show::all(args.audience(), args.jobs as usize);
    let totals = Arc::clone(&shows[0].totals);
    let command =
        Command { args, client, limit: Arc::new(Limit::new(args.rate.or(args.limit_rate))), stop };
    let screen = Screen::new(Arc::clone(&totals));
    for note in notes {
        totals.remark(note);
    }
    let done = jobs(args, output.as_ref(), &command.client, &command.stop)
        .and_then(|jobs| command.fetch_all(&shows, &jobs));
    screen.finish();
    let code = done.as_ref().err().map(|error| ExitCode::of(error, &[exit_code]));
    let error = done.as_ref().err().map(causes);
    let exit = interrupt.exit(code.unwrap_or(ExitCode::Success));
    let counts = (&totals.counts(), begin.elapsed());
    printed(print_end(args.audience(), counts, exit, error.as_deref()))?;
    done.map(|()| ExitCode::Success)
}

/// Refuses options that have no meaning for an output.
fn check(args: &GetArgs, output: Option<&Output>) -> Result<()> {
    let Some(output) = output else { return Ok(()) };
    if args.audience().is_program() && output.is_standard() {
        let wrong = "JSON and the file cannot both be written to standard output";
        return Err(misuse(wrong, "-o FILE"));
    }
    match args.connections {
        Some(2..) => Err(misuse(
            "an output takes a file in order, through one connection",
            "without -n, or -o FILE",
        )),
        _ => Ok(()),
    }
}

/// The parts that all downloads of a command share.
struct Command<'a> {
    args: &'a GetArgs,
    client: Arc<Client>,
    limit: Arc<Limit>,
    stop: Stop,
}

impl Command<'_> {
    /// Fetches all files, several at once. A failure does not keep the others from being fetched. Each show is for one file at
    /// a time.
    fn fetch_all(&self, shows: &[Show], jobs: &[Job]) -> Result<()> {
        let shows = &shows[..shows.len().min(jobs.len().max(1))];
        shows[0].count(|counts| {
            counts.total_files = jobs.len() as u64;
            counts.is_counted = jobs.len() == 1;
        });
        let (next, complete) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let names = Names::default();
        let failures: Mutex<Vec<(usize, Error)>> = Mutex::default();
        let fetch = |show: &Show| {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(job) = jobs.get(at).filter(|_| !self.stop.is_set()) else { return };
                if at + 1 == jobs.len() {
                    show.count(|counts| counts.is_counted = true);
                }
                match self.fetch(show, shows.len(), &names, job) {
                    Ok(()) => drop(complete.fetch_add(1, Ordering::Relaxed)),
                    Err(error) => {
                        if jobs.len() > 1 {
                            tell(show, &error);
                        }
                        lock(&failures).push((at, error));
                    }
                }
            }
        };
        match shows {
            [show] => fetch(show),
            shows => thread::scope(|scope| {
                for show in shows {
                    scope.spawn(|| fetch(show));
                }
            }),
        }
        let mut failures = std::mem::take(&mut *lock(&failures));
        failures.sort_by_key(|(at, _)| *at);
        let (failed, count) = (failures.len(), jobs.len());
        let complete = complete.into_inner();
        let stopped: Vec<Kept> = failures.iter().filter_map(|(_, error)| Kept::of(error)).collect();
        if !stopped.is_empty() || (self.stop.is_set() && failed == 0 && complete < count) {
            return Err(kept(&stopped, (complete as u64, count as u64)).into());
        }
        match failures.into_iter().next() {
            Some((_, first)) if count == 1 => Err(first),
            Some((_, first)) => {
                Err(first.context(format!("{failed} of {count} files were not fetched")))
            }
            None => Ok(()),
        }
    }

    /// Fetches one of `files` that are fetched at once.
    fn fetch(&self, show: &Show, files: usize, names: &Names, job: &Job) -> Result<()> {
        let (args, files) = (self.args, u32::try_from(files).unwrap_or(u32::MAX));
        let controller = || args.new_controller(files);
        let tools = Tools {
            client: &self.client,
            limit: &self.limit,
            show,
            conduct: args.conduct(files),
            existing: if args.force { Existing::Replaced } else { Existing::Refused },
            interrupted: &self.stop,
            controller: &controller,
            names,
            added: Cell::default(),
        };
        download(&tools, job)
    }
}

/// What is kept of all files, of which `stopped` were under way.
fn kept(stopped: &[Kept], (complete, of): (u64, u64)) -> Kept {
    let is_any = |wanted| stopped.contains(&wanted);
    match (is_any(Kept::Everything), is_any(Kept::Nothing)) {
        (true, false) => Kept::Everything,
        (true, true) => Kept::WholeFiles { files: complete, of: Some(of) },
        (false, _) => Kept::whole_files(complete, Some(of)),
    }
}

fn tell(show: &Show, error: &Error) {
    if Kept::of(error).is_some() {
        return;
    }
    let line = causes(error);
    show.tell(Message::Failure(Failed {
        line: line.clone(),
        host: None,
        path: String::new(),
        kind: "other".to_owned(),
        text: line,
    }));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The request cannot succeed, now or later.
pub(crate) fn lasting(text: String) -> Error {
    ExitCode::WillFail.error(text)
}

/// An option that is about one file.
pub(crate) fn of_several(option: &str) -> Error {
    misuse(format!("{option} is for one file, and these are several"), "one command for each")
}

/// The files to fetch.
fn jobs(
    args: &GetArgs,
    output: Option<&Arc<Output>>,
    client: &Client,
    stop: &Stop,
) -> Result<Vec<Job>> {
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    ensure!(dir.is_dir(), lasting(format!("{} is no directory", dir.display())));
    let named = || match (output, &args.output) {
        (Some(output), _) => Naming::Output(Arc::clone(output)),
        (None, Some(path)) => Naming::Path(path.clone()),
        (None, None) => Naming::Within(dir.clone(), None),
    };
    let given = Expect { digests: args.sha256.iter().cloned().collect(), ..Expect::default() };
    let (mut urls, mut jobs) = (Vec::new(), Vec::new());
    for word in &args.urls {
        if is_metalink(word.as_ref()) {
            jobs.extend(described(Path::new(word), client, stop, &dir)?);
            continue;
        }
        let text = word.to_str().unwrap_or_default();
        let url = Url::parse(text).map_err(|error| {
            misuse(
                format!("'{}' {error}", without_login(&word.to_string_lossy())),
                remedy_for(word),
            )
        })?;
        urls.push(url);
    }
    let is_one = args.output.is_some() || !args.mirror.is_empty();
    if !jobs.is_empty() {
        ensure!(
            urls.is_empty() && args.mirror.is_empty() && args.sha256.is_none(),
            misuse("a Metalink file has its own mirrors and digests", "it by itself")
        );
        match (&args.output, jobs.as_mut_slice()) {
            (None, _) => {}
            (Some(_), [job]) => job.naming = named(),
            (Some(_), _) => bail!(of_several("-o")),
        }
        return Ok(jobs);
    }
    urls.extend(args.mirror.iter().cloned());
    let job = |urls| Job { urls, named_by: NamedBy::User, naming: named(), expect: given.clone() };
    if is_one {
        return Ok(vec![job(urls)]);
    }
    ensure!(urls.len() == 1 || args.sha256.is_none(), of_several("--sha256"));
    Ok(urls.into_iter().map(|url| job(vec![url])).collect())
}

/// An address without the login that it may have.
// fuzz: none, the user's own words
fn without_login(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = rest[..end].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}://{}", &rest[host..])
}

/// The remedy for a word that is no address of a web server.
// fuzz: none, the user's own words
fn remedy_for(word: &OsStr) -> &'static str {
    let scheme = word.to_str().and_then(|text| text.split_once("://")).map(|(scheme, _)| scheme);
    let scheme = scheme.or_else(|| host_by_ssh(word.as_bytes()).map(|_| "scp"));
    let known = scheme.and_then(|scheme| remedy_for_scheme(&scheme.to_ascii_lowercase()));
    known
        .filter(|_| scheme.is_some_and(|scheme| !scheme.starts_with("http")))
        .unwrap_or("http://HOST/PATH or https://HOST/PATH")
}

pub(crate) fn is_metalink(word: &Path) -> bool {
    word.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("meta4"))
}

/// The files that a Metalink file describes.
fn described(word: &Path, client: &Client, stop: &Stop, dir: &Path) -> Result<Vec<Job>> {
    let shown = word.display();
    let url = word.to_str().filter(|text| text.contains("://")).map(Url::parse);
    let bytes = match url {
        Some(url) => {
            let url = url.map_err(|error| lasting(format!("'{shown}' {error}")))?;
            fetched(url, client, stop).at(&shown)?
        }
        None => {
            let file = File::open(word).at(&shown)?;
            let mut bytes = Vec::new();
            file.take(METALINK_BYTES_MAX as u64).read_to_end(&mut bytes)?;
            bytes
        }
    };
    let text =
        String::from_utf8(bytes).map_err(|_| lasting(format!("{shown} is no UTF-8 text")))?;
    let files = metalink::parse(&text);
    let files = files.map_err(|error| lasting(format!("{shown} cannot be used: {error}")))?;
    let job = |file: metalink::Described| {
        ensure!(!file.urls.is_empty(), lasting(format!("{shown} has no web mirror of a file")));
        let name = usable(file.name.as_bytes());
        let naming = Naming::Within(dir.to_owned(), name);
        Ok(Job { urls: file.urls, named_by: NamedBy::Other, naming, expect: file.expect })
    };
    files.into_iter().map(job).collect()
}

/// A small file, into memory.
fn fetched(url: Url, client: &Client, stop: &Stop) -> Result<Vec<u8>> {
    let place = Place::new(url, NamedBy::User);
    let mut answer = client.get(None, &place, None, stop).map_err(error_of)?;
    let mut bytes = Vec::new();
    loop {
        let more = answer.connection.read(METALINK_BYTES_MAX).map_err(error_of)?;
        if more.is_empty() {
            client.keep(answer.connection);
            return Ok(bytes);
        }
        bytes.extend_from_slice(&more);
        ensure!(bytes.len() <= METALINK_BYTES_MAX, lasting("is larger than 16 MiB".to_owned()));
    }
}
