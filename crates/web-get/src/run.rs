//! One run of the command.

use crate::args::GetArgs;
use crate::download::{Job, Naming, Tools, download};
use crate::fetch::Conduct;
use crate::http::client::{Client, NamedBy, Place};
use crate::http::url::Url;
use crate::http::wire::Stop;
use crate::limit::Limit;
use crate::metalink::{self, Expect, METALINK_BYTES_MAX};
use crate::name::usable;
use crate::outcome::{Interrupted, Lasting, error_of, exit_code};
use crate::show::Show;
use crate::target::Existing;
use anyhow::{Context, Result, bail, ensure};
use hikyaku_console::{
    Audience, ExitCode, Failed, Interrupt, Message, Screen, causes, headline, print_end,
};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Runs the command.
///
/// # Errors
/// A file could not be fetched; [`exit_code`] knows what that means.
pub fn run(args: &GetArgs, interrupt: &Interrupt) -> Result<ExitCode> {
    interrupt.listen().context("cannot listen for signals")?;
    let scope = interrupt.scope();
    let (show, begin) = (Show::new(args.audience()), Instant::now());
    let stop = Stop::default();
    let to_stop = stop.clone();
    let _stops = scope.on_stop(move || to_stop.set());
    let client = Client::new(args.settings()?);
    let limit = Limit::new(args.limit_rate);
    let new_tuner = || args.new_tuner();
    let tools = Tools {
        client: &client,
        limit: &limit,
        show: &show,
        conduct: Conduct { cap: args.cap(), retries: args.retries, wait: args.retry_wait },
        existing: if args.force { Existing::Replaced } else { Existing::Refused },
        interrupted: &stop,
        tuner: &new_tuner,
    };
    let screen = Screen::new(Arc::clone(&show.totals));
    let done = jobs(args, &client, &stop).and_then(|jobs| all(&tools, &jobs));
    screen.finish();
    if args.audience() == Audience::Program {
        let code = done.as_ref().err().map(|error| ExitCode::of(error, &[exit_code]));
        let error = done.as_ref().err().map(headline);
        let code = code.unwrap_or(ExitCode::Success);
        print_end(&show.counts(), begin.elapsed(), code, error.as_deref())?;
    }
    done.map(|()| ExitCode::Success)
}

/// Fetches one file after the other. A failure does not keep the others from being fetched.
fn all(tools: &Tools<'_>, jobs: &[Job]) -> Result<()> {
    tools.show.count(|counts| {
        counts.total_files = jobs.len() as u64;
        counts.is_counted = jobs.len() == 1;
    });
    let mut failures = Vec::new();
    for (at, job) in jobs.iter().enumerate() {
        if at + 1 == jobs.len() {
            tools.show.count(|counts| counts.is_counted = true);
        }
        let Err(error) = download(tools, job) else { continue };
        if jobs.len() == 1 || error.chain().any(|link| link.is::<Interrupted>()) {
            return Err(error);
        }
        let line = causes(&error);
        tools.show.tell(Message::Failure(Failed {
            line: line.clone(),
            host: None,
            path: String::new(),
            kind: "other".to_owned(),
            text: line,
        }));
        failures.push(error);
    }
    let (failed, count) = (failures.len(), jobs.len());
    match failures.into_iter().next() {
        Some(first) => Err(first.context(format!("{failed} of {count} files were not fetched"))),
        None => Ok(()),
    }
}

/// What there is to fetch.
fn jobs(args: &GetArgs, client: &Client, stop: &Stop) -> Result<Vec<Job>> {
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    ensure!(dir.is_dir(), Lasting(format!("{} is no directory", dir.display())));
    let named =
        || args.output.clone().map_or_else(|| Naming::Within(dir.clone(), None), Naming::Path);
    let given = Expect { digests: args.sha256.iter().cloned().collect(), ..Expect::default() };
    let (mut urls, mut jobs) = (Vec::new(), Vec::new());
    for word in &args.urls {
        if is_metalink(word.as_ref()) {
            jobs.extend(described(Path::new(word), client, stop, &dir)?);
            continue;
        }
        let text = word.to_str().unwrap_or_default();
        let url =
            Url::parse(text).map_err(|error| Lasting(format!("'{}' {error}", word.display())))?;
        urls.push(url);
    }
    let is_one = args.output.is_some() || !args.mirror.is_empty();
    if !jobs.is_empty() {
        ensure!(
            urls.is_empty() && args.mirror.is_empty() && args.sha256.is_none(),
            Lasting("a Metalink file has its own mirrors and digests".to_owned())
        );
        match (&args.output, jobs.as_mut_slice()) {
            (None, _) => {}
            (Some(path), [job]) => job.naming = Naming::Path(path.clone()),
            (Some(_), _) => bail!(Lasting("-o is for one file, and these are several".to_owned())),
        }
        return Ok(jobs);
    }
    urls.extend(args.mirror.iter().cloned());
    let job = |urls| Job { urls, named_by: NamedBy::User, naming: named(), expect: given.clone() };
    if is_one {
        return Ok(vec![job(urls)]);
    }
    ensure!(
        urls.len() == 1 || args.sha256.is_none(),
        Lasting("--sha256 is for one file, and these are several".to_owned())
    );
    Ok(urls.into_iter().map(|url| job(vec![url])).collect())
}

fn is_metalink(word: &Path) -> bool {
    word.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("meta4"))
}

/// The files that a Metalink file describes.
fn described(word: &Path, client: &Client, stop: &Stop, dir: &Path) -> Result<Vec<Job>> {
    let shown = word.display();
    let url = word.to_str().filter(|text| text.contains("://")).map(Url::parse);
    let bytes = match url {
        Some(url) => {
            let url = url.map_err(|error| Lasting(format!("'{shown}' {error}")))?;
            fetched(url, client, stop).with_context(|| format!("cannot fetch {shown}"))?
        }
        None => {
            let file = File::open(word).with_context(|| format!("cannot read {shown}"))?;
            let mut bytes = Vec::new();
            file.take(METALINK_BYTES_MAX as u64).read_to_end(&mut bytes)?;
            bytes
        }
    };
    let text =
        String::from_utf8(bytes).map_err(|_| Lasting(format!("{shown} is no UTF-8 text")))?;
    let files = metalink::parse(&text);
    let files = files.map_err(|error| Lasting(format!("{shown} cannot be used: {error}")))?;
    let job = |file: metalink::Described| {
        ensure!(!file.urls.is_empty(), Lasting(format!("{shown} has no web mirror of a file")));
        let name = usable(file.name.as_bytes());
        let naming = Naming::Within(dir.to_owned(), name);
        Ok(Job { urls: file.urls, named_by: NamedBy::Metalink, naming, expect: file.expect })
    };
    files.into_iter().map(job).collect()
}

/// A small file, into memory.
fn fetched(url: Url, client: &Client, stop: &Stop) -> Result<Vec<u8>> {
    let place = Place::new(url, NamedBy::User);
    let mut answer = client.get(None, &place, None, stop).map_err(error_of)?;
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let length = answer.connection.read(&mut buffer).map_err(error_of)?;
        if length == 0 {
            return Ok(bytes);
        }
        bytes.extend_from_slice(&buffer[..length]);
        ensure!(bytes.len() <= METALINK_BYTES_MAX, Lasting("is larger than 16 MiB".to_owned()));
    }
}
