//! Finds the pictures that are meant, here or on daemons, in the order in which they are shown.

use crate::args::ViewArgs;
use crate::fleet::{Phone, Server};
use crate::pattern::{Pattern, natural};
use anyhow::{Context, Result, ensure};
use hikyaku_console::{At, ExitCode, Tone, causes, misuse, say};
use hikyaku_crypto::Fingerprint;
use hikyaku_reach::dial::{Address, Servers};
use hikyaku_remote::Seen;
use hikyaku_store::{Kind, StorePath};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The pictures, and the daemons that have some of them.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) frames: Vec<Frame>,
    pub(crate) far: Option<Far>,
}

/// Daemons, and what connects to them.
pub(crate) struct Far {
    pub(crate) phone: Phone,
    pub(crate) servers: Vec<Server>,
}

/// A picture of the sequence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    /// Its name without a directory.
    pub(crate) name: String,
    pub(crate) origin: Origin,
}

/// Where a picture is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// A file of this machine.
    Local(PathBuf),
    /// A file of these servers, which all have it with this size and time.
    Far {
        /// Its path below their roots.
        path: Vec<u8>,
        seen: Seen,
        /// Their indices.
        at: Vec<usize>,
    },
}

/// Frames that a sequence may have.
const FRAMES_MAX: usize = 1_000_000;
/// Endings of pictures in a directory.
const ENDINGS: [&str; 12] =
    ["png", "pgm", "ppm", "pnm", "raw", "tif", "tiff", "jpg", "jpeg", "fits", "fit", "fts"];

/// Finds the pictures that the user has named.
pub(crate) fn find(args: &ViewArgs) -> Result<Found> {
    let mut found = Found::default();
    let mut used: Option<(Vec<Address>, Vec<Fingerprint>)> = None;
    for text in &args.pictures {
        let frames = match far(text)? {
            None => local(text)?,
            Some(servers) => {
                let these = (servers.servers.clone(), servers.keys.clone());
                if used.get_or_insert_with(|| these.clone()) != &these {
                    let text = "pictures on several sets of servers cannot be shown by one command";
                    return Err(misuse(text, "a command for each set"));
                }
                if found.far.is_none() {
                    let phone = Phone::new((&args.connect, args.silence), &servers)?;
                    let reached = phone.connect(&servers)?;
                    found.far = Some(Far { phone, servers: reached });
                }
                let far = found.far.as_ref().context("no server is known")?;
                far.frames(&servers.path).at(text.display())?
            }
        };
        if frames.is_empty() {
            return Err(ExitCode::WillFail.error("no such picture")).at(text.display());
        }
        found.frames.extend(frames);
        ensure!(found.frames.len() <= FRAMES_MAX, "these are more than {FRAMES_MAX} pictures");
    }
    Ok(found)
}

/// The daemons and the path that a text names; `None` for a path of this machine.
fn far(text: &OsStr) -> Result<Option<Servers>> {
    let bytes = text.as_bytes();
    if let Some(servers) = Servers::parse(bytes) {
        return Ok(Some(servers?));
    }
    let Some(colon) = bytes.iter().position(|&byte| byte == b':' || byte == b'/') else {
        return Ok(None);
    };
    if bytes[colon] == b'/' || colon == 0 {
        return Ok(None);
    }
    let (Ok(name), path) = (str::from_utf8(&bytes[..colon]), &bytes[colon + 1..]) else {
        return Ok(None);
    };
    let settings = hikyaku_reach::settings::of_user()?;
    if let Some(cluster) = settings.cluster(name) {
        return Ok(Some(Servers::of_cluster(cluster, path)));
    }
    if Path::new(text).exists() {
        return Ok(None);
    }
    Err(misuse(
        format!("the settings have no [cluster.{name}]"),
        format!("hikyaku://{name}/PATH for a machine that runs hikyaku serve"),
    ))
}

/// Pictures of this machine.
fn local(text: &OsStr) -> Result<Vec<Frame>> {
    let frame = |path: PathBuf| Frame {
        name: name(path.as_os_str().as_bytes()),
        origin: Origin::Local(path),
    };
    let path = Path::new(text);
    if path.is_dir() {
        let has_ending = |path: &PathBuf| has_ending(path.as_os_str().as_bytes());
        return Ok(files(path)?.into_iter().filter(has_ending).map(frame).collect());
    }
    if path.exists() {
        return Ok(vec![frame(path.to_owned())]);
    }
    let Some(pattern) = pattern(text.as_bytes())? else {
        return Err(ExitCode::WillFail.error("no such file")).at(path.display());
    };
    let mut dirs = vec![PathBuf::from(OsString::from_vec(match &pattern.dir[..] {
        b"" if text.as_bytes().starts_with(b"/") => b"/".to_vec(),
        dir => dir.to_vec(),
    }))];
    // Each level of the pattern below its directory is a level of directories.
    let below = text.as_bytes().iter().filter(|&&byte| byte == b'/').count();
    let above = dirs[0].as_os_str().as_bytes().iter().filter(|&&byte| byte == b'/').count();
    let mut frames = Vec::new();
    for _ in 0..=below.saturating_sub(above) {
        let mut next = Vec::new();
        for dir in dirs {
            for path in files(&dir)? {
                if path.is_dir() {
                    next.push(path);
                } else if pattern.matches(path.as_os_str().as_bytes()) {
                    frames.push(frame(path));
                }
            }
        }
        dirs = next;
    }
    frames.sort_by(|a, b| match (&a.origin, &b.origin) {
        (Origin::Local(a), Origin::Local(b)) => {
            natural(a.as_os_str().as_bytes(), b.as_os_str().as_bytes())
        }
        _ => std::cmp::Ordering::Equal,
    });
    Ok(frames)
}

/// Everything in a directory, in order. The path of the directory stands before each name unless it is empty.
fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let here = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let cannot = || here.display().to_string();
    let mut all = Vec::new();
    for entry in fs::read_dir(here).with_context(cannot)? {
        all.push(dir.join(entry.with_context(cannot)?.file_name()));
        ensure!(all.len() <= FRAMES_MAX, "{} has too many files", here.display());
    }
    all.sort_by(|a, b| natural(a.as_os_str().as_bytes(), b.as_os_str().as_bytes()));
    Ok(all)
}

impl Far {
    /// Pictures of the daemons.
    fn frames(&self, path: &[u8]) -> Result<Vec<Frame>> {
        let pattern = pattern(path)?;
        let dir = pattern.as_ref().map_or(path, |pattern| &pattern.dir);
        let root = StorePath::new(dir).context("this cannot be the name of a file")?;
        let mut all: BTreeMap<Vec<u8>, (Seen, Vec<usize>)> = BTreeMap::new();
        let (mut answered, mut first) = (false, None);
        for (index, server) in self.servers.iter().enumerate() {
            let client = self.phone.link(server).client;
            let mut too_many = false;
            let walked = client.walk(&root, |_, entry| {
                let is_meant = match &pattern {
                    Some(pattern) => pattern.matches(&entry.path),
                    None => entry.path == path || has_ending(&entry.path),
                };
                let file = entry.found.ok().filter(|found| found.kind == Kind::File);
                let Some(found) = file.filter(|_| is_meant) else {
                    return ControlFlow::Continue(());
                };
                too_many |= all.len() >= FRAMES_MAX;
                if too_many {
                    return ControlFlow::Break(());
                }
                let seen = Seen::from(&found);
                let (known, at) = all.entry(entry.path).or_insert((seen, Vec::new()));
                if *known == seen && at.last() != Some(&index) {
                    at.push(index);
                }
                ControlFlow::Continue(())
            });
            ensure!(!too_many, "these are more than {FRAMES_MAX} pictures");
            match walked {
                Ok(()) => answered = true,
                Err(error) => {
                    if error.is_of_server() {
                        say(Tone::Error, format_args!("{}: {error}", server.address));
                    }
                    first.get_or_insert(error);
                }
            }
        }
        match first {
            Some(error) if !answered => return Err(error.into()),
            _ => {}
        }
        let mut frames: Vec<_> = all.into_iter().collect();
        frames.sort_by(|(a, _), (b, _)| natural(a, b));
        let frame = |(path, (seen, at)): (Vec<u8>, _)| Frame {
            name: name(&path),
            origin: Origin::Far { path, seen, at },
        };
        Ok(frames.into_iter().map(frame).collect())
    }
}

/// The pattern in the user's words; `None` for a plain name.
fn pattern(text: &[u8]) -> Result<Option<Pattern>> {
    Pattern::parse(text).map_err(|error| ExitCode::Usage.error(causes(&error)))
}

/// Whether the name ends as those of pictures do.
fn has_ending(path: &[u8]) -> bool {
    let ending = path.rsplit(|&byte| byte == b'.').next().unwrap_or_default();
    ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known.as_bytes()))
}

/// The last part of a path, for people.
fn name(path: &[u8]) -> String {
    let last = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    String::from_utf8_lossy(last).chars().filter(|c| !c.is_control()).take(200).collect()
}
