//! The sources and targets: the two words of the command line, or the pairs of a file (`-f`).

use crate::args::GucArgs;
use crate::table::way;
use crate::url::Place;
use anyhow::{Context, Result, ensure};
use hikyaku_console::{ExitCode, Way, causes, misuse};
use hikyaku_fs::read_list;
use hikyaku_gridftp::Server;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// A source and a target.
pub(super) struct Pair {
    pub(super) source: Place,
    pub(super) target: Place,
}

impl Pair {
    // fuzz: none, the user's own words
    fn parse(source: &OsStr, target: &OsStr) -> Result<Self> {
        let place = |word| Place::parse(word).map_err(mistake);
        Ok(Self { source: place(source)?, target: place(target)? })
    }

    /// Which way it goes.
    ///
    /// # Errors
    /// None of the two is on a server.
    pub(super) fn way(&self) -> Result<Way> {
        way(&self.source, &self.target).ok_or_else(|| {
            misuse("one of the two has to be on a server", "ftp://HOST/PATH or gsiftp://HOST/PATH")
        })
    }

    /// Its servers.
    pub(super) fn servers(&self) -> impl Iterator<Item = &Server> {
        let servers = servers(&self.source, &self.target);
        servers.into_iter().flat_map(|(one, other)| std::iter::once(one).chain(other))
    }
}

/// The pairs of the command line.
pub(super) fn pairs(args: &GucArgs) -> Result<Vec<Pair>> {
    let Some(path) = &args.file_of_urls else {
        let (Some(source), Some(target)) = (&args.source, &args.target) else {
            return Err(misuse("a source and a target are needed", "hikyaku guc --help"));
        };
        return Ok(vec![Pair::parse(source, target)?]);
    };
    let text = read_list(path).with_context(|| format!("cannot read {}", path.display()))?;
    of_file(path, &text)
}

/// The pairs in a file.
// fuzz: none, the user's own words
fn of_file(path: &Path, text: &[u8]) -> Result<Vec<Pair>> {
    let mut pairs = Vec::new();
    for (number, line) in (1..).zip(text.split(|&byte| byte == b'\n')) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let pair = words(line).and_then(|words| match words.as_slice() {
            [source, target] => Pair::parse(source, target),
            _ => Err(ExitCode::Usage.error("not a source and a target")),
        });
        pairs.push(pair.with_context(|| format!("{}, line {number}", path.display()))?);
    }
    Ok(pairs)
}

/// The words of a line. One in double quotes may have spaces.
// fuzz: none, the user's own words
fn words(line: &[u8]) -> Result<Vec<OsString>> {
    let (mut words, mut rest) = (Vec::new(), line);
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix(b"\"") {
            Some(quoted) => {
                let end = quoted.iter().position(|&byte| byte == b'"');
                let end = end.ok_or_else(|| ExitCode::Usage.error("a quote without an end"))?;
                let after = &quoted[end + 1..];
                let is_over = after.first().is_none_or(u8::is_ascii_whitespace);
                ensure!(is_over, ExitCode::Usage.error("a quote within a word"));
                (&quoted[..end], after)
            }
            None => {
                let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
                rest.split_at(end)
            }
        };
        words.push(OsString::from_vec(word.to_vec()));
        rest = after.trim_ascii_start();
    }
    Ok(words)
}

/// A word of the command line that cannot be read.
pub(super) fn mistake(error: anyhow::Error) -> anyhow::Error {
    match ExitCode::of(&error, &[]) {
        ExitCode::Usage => error,
        _ => ExitCode::Usage.error(causes(&error)),
    }
}

/// The server of a copy, and the one that receives if it is between two.
pub(super) const fn servers<'p>(
    source: &'p Place,
    target: &'p Place,
) -> Option<(&'p Server, Option<&'p Server>)> {
    match (source, target) {
        (Place::Remote(from), Place::Remote(to)) => Some((&from.server, Some(&to.server))),
        (Place::Remote(remote), Place::Local(_)) | (Place::Local(_), Place::Remote(remote)) => {
            Some((&remote.server, None))
        }
        (Place::Local(_), Place::Local(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> std::result::Result<Vec<(String, String)>, String> {
        let pairs = of_file(Path::new("list"), text.as_bytes());
        let pairs = pairs.map_err(|error| causes(&error))?;
        Ok(pairs
            .iter()
            .map(|Pair { source, target }| (source.to_string(), target.to_string()))
            .collect())
    }

    #[test]
    fn each_line_has_a_source_and_a_target() {
        let text = "# comment\n\n  ftp://h/a /tmp/a  \r\n\"/tmp/b c\"\t\"ftp://h/b%20c\"\n";
        let wanted = [("ftp://h:21/a", "/tmp/a"), ("/tmp/b c", "ftp://h:21/b c")];
        let wanted = wanted.map(|(source, target)| (source.to_owned(), target.to_owned()));
        assert_eq!(read(text).unwrap(), wanted);
        for (text, reason) in [
            ("ftp://h/a\n", "line 1: not a source and a target"),
            ("\n/a ftp://h/a x", "line 2: not a source and a target"),
            ("\"/a ftp://h/a", "a quote without an end"),
            ("\"/a\"b ftp://h/a", "a quote within a word"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
