//! The files of a command, one after the other: those of the command line, then those of a list.

use crate::args::GetArgs;
use crate::download::{Job, Naming};
use crate::list::{Entry, List};
use crate::metalink::{self, Expect, METALINK_BYTES_MAX};
use crate::outcome::error_of;
use crate::output::Output;
use crate::run::{is_metalink, lasting, of_several};
use anyhow::{Result, bail, ensure};
use hikyaku_console::{At, host_by_ssh, misuse, remedy_for_scheme};
use hikyaku_http::{Client, NamedBy, Place, Stop, Turn, Url, usable};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files that were not begun.
pub(crate) struct Queue<'a> {
    client: &'a Client,
    stop: &'a Stop,
    /// The directory of files whose names are the servers'.
    dir: PathBuf,
    ready: VecDeque<Result<Job>>,
    /// `None` at its end.
    list: Option<List>,
    /// The number of files that were named.
    count: u64,
}

/// The next file, and its number from 1.
pub(crate) type Next = (u64, Result<Job>);

impl<'a> Queue<'a> {
    /// The files of a command.
    pub(crate) fn new(
        args: &GetArgs,
        output: Option<&Arc<Output>>,
        (client, stop): (&'a Client, &'a Stop),
    ) -> Result<Self> {
        let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from("."));
        ensure!(dir.is_dir(), lasting(format!("{} is no directory", dir.display())));
        let ready: VecDeque<_> =
            jobs(args, output, (client, stop), &dir)?.into_iter().map(Ok).collect();
        let list = args.input_file.as_deref().map(List::open).transpose()?;
        let count = ready.len() as u64;
        let mut queue = Self { client, stop, dir, ready, list, count };
        // Connections are divided among the files: the number of a few is known before they begin.
        let is_here = args.input_file.as_ref().is_some_and(|path| path.is_file());
        while is_here && queue.list.is_some() && queue.ready.len() <= args.jobs as usize {
            queue.read_one();
        }
        Ok(queue)
    }

    /// The number of files that were named.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// The files that were named and not begun.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Job> {
        self.ready.iter().flatten()
    }

    /// Whether all files were named.
    pub(crate) const fn is_counted(&self) -> bool {
        self.list.is_none()
    }

    /// Whether all files were begun.
    pub(crate) fn is_over(&self) -> bool {
        self.list.is_none() && self.ready.is_empty()
    }

    /// The next file. A list is waited for.
    pub(crate) fn next(&mut self) -> Option<Next> {
        while !self.stop.is_set() {
            if let Some(job) = self.ready.pop_front() {
                return Some((self.count - self.ready.len() as u64, job));
            }
            self.list.as_ref()?;
            self.read_one();
        }
        None
    }

    /// Reads the next entry of the list, or its end.
    fn read_one(&mut self) {
        let Some(mut list) = self.list.take() else { return };
        let goes_on = || !self.stop.is_set();
        let named = list.next(&goes_on);
        let named = named.and_then(|entry| entry.map(|entry| self.of_entry(&entry)).transpose());
        let jobs: Vec<Result<Job>> = match named {
            Ok(Some(jobs)) => jobs.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
            Ok(None) if self.count == 0 && !self.stop.is_set() => {
                self.count = 1;
                self.ready.push_back(Err(lasting(format!("{} names no files", list.shown()))));
                return;
            }
            Ok(None) => return,
        };
        self.count += jobs.len() as u64;
        self.ready.extend(jobs);
        self.list = Some(list);
    }
}

impl Queue<'_> {
    /// The files of an entry of a list: several if it is a Metalink file.
    fn of_entry(&self, entry: &Entry) -> Result<Vec<Job>> {
        let jobs = || match entry.urls.as_slice() {
            [word] if is_metalink(word.as_ref()) => {
                described(Path::new(word), self.client, self.stop, &self.dir)
            }
            words => {
                let urls = words.iter().map(|word| url(word)).collect::<Result<_>>()?;
                let naming = Naming::Within(self.dir.clone(), None);
                let expect = Expect::default();
                Ok(vec![Job { urls, named_by: NamedBy::User, naming, expect }])
            }
        };
        let applied = |jobs: Vec<Job>| {
            ensure!(jobs.len() == 1 || !entry.has_options(), of_several("an option of a list"));
            jobs.into_iter().map(|job| entry.apply(job, &self.dir)).collect()
        };
        jobs().and_then(applied).map_err(|error| entry.failed(error))
    }
}

/// The files of the command line.
fn jobs(
    args: &GetArgs,
    output: Option<&Arc<Output>>,
    (client, stop): (&Client, &Stop),
    dir: &Path,
) -> Result<Vec<Job>> {
    let named = || match (output, &args.output) {
        (Some(output), _) => Naming::Output(Arc::clone(output)),
        (None, Some(path)) => Naming::Path(path.clone()),
        (None, None) => Naming::Within(dir.to_owned(), None),
    };
    let given = Expect { digests: args.sha256.iter().cloned().collect(), ..Expect::default() };
    let (mut urls, mut jobs) = (Vec::new(), Vec::new());
    for word in &args.urls {
        match is_metalink(word.as_ref()) {
            true => jobs.extend(described(Path::new(word), client, stop, dir)?),
            false => urls.push(url(word)?),
        }
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
    ensure!(urls.len() <= 1 || args.sha256.is_none(), of_several("--sha256"));
    Ok(urls.into_iter().map(|url| job(vec![url])).collect())
}

/// The URL of a word.
fn url(word: &OsStr) -> Result<Url> {
    Url::parse(word.to_str().unwrap_or_default()).map_err(|error| {
        let text = format!("'{}' {error}", without_login(&word.to_string_lossy()));
        misuse(text, remedy_for(word))
    })
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
    let mut answer = client.get(&place, None, (stop, Turn::Waits)).map_err(error_of)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use hikyaku_http::Settings;
    use std::fs;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: GetArgs,
    }

    #[test]
    fn an_error_does_not_repeat_a_login() {
        for word in ["http://me:top-secret@x y/", "ftps://me:top-secret@a.org/", "me:top-secret"] {
            let error = format!("{:#}", url(OsStr::new(word)).unwrap_err());
            assert_eq!(error.contains("top-secret"), !word.contains('@'), "{error}");
        }
    }

    #[test]
    fn the_number_of_a_few_files_is_known_before_they_begin() {
        let path = std::env::temp_dir().join(format!("hikyaku-queue-{}", std::process::id()));
        fs::write(&path, "http://a.org/1\nhttp://a.org/2\n").unwrap();
        let words = ["get", "-i", path.to_str().unwrap()];
        let args = Line::try_parse_from(words).unwrap().args;
        let (client, stop) = (Client::new(Settings::default()).unwrap(), Stop::default());
        let queue = Queue::new(&args, None, (&client, &stop)).unwrap();
        assert!(queue.is_counted());
        assert_eq!((queue.count(), queue.known().count()), (2, 2));
        fs::remove_file(path).unwrap();
    }
}
