//! What the user named: the roots of the two trees, and the session with the machine that is not this one.

use crate::args::SyncArgs;
use crate::run::usage;
use crate::side::{Side, Stored};
use anyhow::{Error, Result, ensure};
use hikyaku_console::{Interrupt, Tone, Way, say, with_remedy};
use hikyaku_fs::{FsError, Shown};
use hikyaku_reach::settings;
use hikyaku_sftp::{Attributes, Client, Failed, Kind, Request, Status};
use hikyaku_shell::{Link, Opening};
use hikyaku_stores::{Location, Remote};
use hikyaku_units::DataSize;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// One end as the user named it.
pub(crate) struct Place {
    location: Location,
    /// The directory that is the root, or that the file is in.
    root: Vec<u8>,
}

impl Place {
    /// The root, or a name in it if that is not empty.
    pub(crate) fn location(&self, name: &[u8]) -> Location {
        let slash = if name.is_empty() || self.root.ends_with(b"/") { &b""[..] } else { b"/" };
        let path = [&self.root[..], slash, name].concat();
        match &self.location {
            Location::Remote(Remote { login, .. }) => {
                Location::Remote(Remote { login: login.clone(), path })
            }
            _ if path.starts_with(b"/") => Location::Local(OsString::from_vec(path).into()),
            _ => Location::Local(OsString::from_vec([b"./", &path[..]].concat()).into()),
        }
    }

    /// Whether both are one directory of this machine, whatever the ways that were named.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let identity = |place: &Self| {
            let found = fs::metadata(OsStr::from_bytes(&place.root)).ok();
            found.map(|found| (found.dev(), found.ino()))
        };
        let own = identity(self).filter(|_| !self.is_remote() && !other.is_remote());
        own.is_some() && own == identity(other)
    }

    pub(crate) const fn is_remote(&self) -> bool {
        matches!(self.location, Location::Remote(_))
    }

    /// The root as a side.
    pub(crate) fn side(&self, client: Option<&Client>, memory: DataSize) -> Result<Box<dyn Side>> {
        Ok(match client.filter(|_| self.is_remote()) {
            Some(client) => Box::new(Stored::of_server(client.clone(), &self.root, memory)?),
            None => Box::new(Stored::here(Path::new(OsStr::from_bytes(&self.root)))?),
        })
    }
}

const NO_DAEMONS: &str =
    "trees on daemons and in Gfarm are not compared; try: hikyaku cp, which copies them";

/// The one end that is not on this machine; `None` if both are here.
///
/// # Errors
///
/// Both are on other machines, or one is no directory of a machine.
pub(crate) fn far_end(ends: [&Location; 2]) -> Result<Option<&Remote>> {
    let remote = match ends {
        [Location::Local(_), Location::Local(_)] => return Ok(None),
        [Location::Remote(remote), Location::Local(_)]
        | [Location::Local(_), Location::Remote(remote)] => remote,
        [Location::Remote(_), Location::Remote(_)] => {
            let text = "both are on other machines; try: the same command on one of the two";
            return Err(usage(text));
        }
        _ => return Err(usage(NO_DAEMONS)),
    };
    // A name of daemons in the settings stands for them in every command.
    let settings = settings::of_user()?;
    let is_plain = remote.login.user.is_none() && remote.login.port.is_none();
    ensure!(!is_plain || settings.cluster(&remote.login.host).is_none(), usage(NO_DAEMONS));
    Ok(Some(remote))
}

/// A session with the machine that is not this one.
pub(crate) fn open_link(
    args: &SyncArgs,
    remote: &Remote,
    memory: DataSize,
    interrupt: &Interrupt,
) -> Result<Link> {
    let opening = Opening::new(remote.login.clone(), args.way(Way::Ssh)?);
    let link = Link::connect(&opening, memory, &interrupt.scope())?;
    if let Some(advice) = link.advice().filter(|_| !args.is_quiet()) {
        say(Tone::Note, advice);
    }
    Ok(link)
}

/// A path on the server; the home directory is where relative ones begin.
fn remote_path(remote: &Remote) -> Vec<u8> {
    match &remote.path[..] {
        b"" | b"~" | b"~/" => b"./".to_vec(),
        path => path.strip_prefix(b"~/").unwrap_or(path).to_vec(),
    }
}

fn path_of(location: &Location) -> Vec<u8> {
    match location {
        Location::Remote(remote) => remote_path(remote),
        Location::Local(path) => path.as_os_str().as_bytes().to_vec(),
        _ => Vec::new(),
    }
}

/// Whether what a link leads to is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Links {
    Followed,
    Kept,
}

/// What has a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Dir,
    Other,
    Nothing,
}

fn found(
    location: &Location,
    path: &[u8],
    (client, links): (Option<&Client>, Links),
) -> Result<Found> {
    let of = |is_dir: bool| if is_dir { Found::Dir } else { Found::Other };
    let here = OsStr::from_bytes(path);
    match (location, client) {
        (Location::Remote(_), Some(client)) => {
            let request = match links {
                Links::Followed => Request::Stat(path),
                Links::Kept => Request::LStat(path),
            };
            match client.attributes(&request) {
                Ok(found) => Ok(of(found.kind() == Some(Kind::Dir))),
                Err(error) if error.is_absent() => Ok(Found::Nothing),
                Err(error) => Err(refused(&error, location, path)),
            }
        }
        _ => {
            match if links == Links::Kept { fs::symlink_metadata(here) } else { fs::metadata(here) }
            {
                Ok(found) => Ok(of(found.is_dir())),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Nothing),
                Err(error) => Err(FsError::io("look at", path, &error).into()),
            }
        }
    }
}

/// A path of an end, for messages: with the host, if it is another one.
fn shown(location: &Location, path: &[u8]) -> String {
    match location {
        Location::Remote(remote) => format!("{}:{}", remote.login, Shown::new(path)),
        _ => Shown::new(path).to_string(),
    }
}

/// What the far side says of a path, as the error that this machine would have.
fn refused(error: &Failed, location: &Location, path: &[u8]) -> Error {
    let kind = match error {
        Failed::Refused { status: Status::NoSuchFile, .. } => ErrorKind::NotFound,
        Failed::Refused { status: Status::Denied, .. } => ErrorKind::PermissionDenied,
        Failed::Refused { .. } => ErrorKind::Other,
        _ => ErrorKind::ConnectionAborted,
    };
    io::Error::new(kind, format!("{}: {error}", shown(location, path))).into()
}

/// There is nothing of this name, or no directory.
fn missing(location: &Location, path: &[u8], what: &str) -> Error {
    let text = format!("{}: {what}", shown(location, path));
    io::Error::new(ErrorKind::NotFound, text).into()
}

/// What a source means.
pub(crate) struct Source {
    pub(crate) place: Place,
    /// The one name in the root that is meant; `None` if all that is in the root is meant.
    pub(crate) only: Option<Vec<u8>>,
    pub(crate) kind: SourceKind,
}

/// What a source is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SourceKind {
    Directory,
    /// A file, a link or another: the target may be its new name.
    Other,
}

/// What a source without a slash at its end means if it is a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meaning {
    /// The directory, as a name at the target.
    Itself,
    /// The root of the paths of a list.
    Root,
}

/// The root of the source.
///
/// # Errors
///
/// There is no such file or directory.
pub(crate) fn source_root(
    location: Location,
    client: Option<&Client>,
    meaning: Meaning,
) -> Result<Source> {
    let path = path_of(&location);
    let trimmed = path.strip_suffix(b"/").unwrap_or(&path);
    let name = trimmed.rsplit(|&byte| byte == b'/').next().unwrap_or_default().to_vec();
    let is_contents = path.ends_with(b"/") || matches!(&name[..], b"" | b"." | b"..");
    let is_root = is_contents || meaning == Meaning::Root;
    // As in rsync, a link that is named without a slash is a link.
    let links = if is_root { Links::Followed } else { Links::Kept };
    let kind = match found(&location, &path, (client, links))? {
        Found::Nothing => return Err(missing(&location, &path, "no such file or directory")),
        Found::Dir => SourceKind::Directory,
        Found::Other => SourceKind::Other,
    };
    if is_root {
        ensure!(kind == SourceKind::Directory, missing(&location, &path, "not a directory"));
        return Ok(Source { place: Place { location, root: path }, only: None, kind });
    }
    let dir = path[..path.len() - name.len()].to_vec();
    let root = if dir.is_empty() { b"./".to_vec() } else { dir };
    Ok(Source { place: Place { location, root }, only: Some(name), kind })
}

/// Whether the root of the target was there before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Root {
    There,
    Made,
    /// It is not there, and is not made.
    Absent,
}

/// What the target means for a source.
pub(crate) struct Target {
    pub(crate) place: Place,
    pub(crate) root: Root,
    /// What the one file is called there, if it has another name.
    pub(crate) new_name: Option<Vec<u8>>,
}

/// Whether a root of the target that is not there is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Making {
    Made,
    /// In a rehearsal.
    Rehearsed,
    /// Only what is there takes part (`--existing`). As in rsync, the root is made all the same if more than one name
    /// comes into it.
    IfMany,
}

/// The root of the target, which is made if the directory above it is there. One file, or a directory in which no name
/// takes part, may get another name. `is_sole` tells whether a source is such a directory.
///
/// # Errors
///
/// It is no directory, or cannot be made.
pub(crate) fn target_root(
    location: Location,
    (source, is_sole): (&Source, impl Fn() -> bool),
    client: Option<&Client>,
    making: Making,
) -> Result<Target> {
    let (mut path, mut root, mut new_name) = (path_of(&location), Root::There, None);
    let follow = (client, Links::Followed);
    let at = found(&location, &path, follow)?;
    let is_sole = at == Found::Nothing && !path.ends_with(b"/") && is_sole();
    match (at, &source.only, source.kind) {
        (Found::Dir, ..) => {}
        (_, Some(only), kind) if is_sole || kind == SourceKind::Other && !path.ends_with(b"/") => {
            let at = path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
            let name = path.split_off(at);
            path = if path.is_empty() { b"./".to_vec() } else { path };
            if found(&location, &path, follow)? != Found::Dir {
                let error = missing(&location, &path, "no such directory");
                return Err(with_remedy(error, Some(make_it(&location, &path))));
            }
            new_name = Some(name).filter(|name| name != only);
        }
        (Found::Nothing, ..) => {
            root = match making {
                Making::Rehearsed => Root::Absent,
                Making::IfMany if is_sole => Root::Absent,
                Making::IfMany | Making::Made => Root::Made,
            };
            if root == Root::Made {
                make_root(&location, &path, client)?;
            }
        }
        (Found::Other, ..) => return Err(missing(&location, &path, "not a directory")),
    }
    Ok(Target { place: Place { location, root: path }, root, new_name })
}

fn make_root(location: &Location, root: &[u8], client: Option<&Client>) -> Result<()> {
    let made = match (location, client) {
        (Location::Remote(_), Some(client)) => {
            let attributes = Attributes { mode: Some(0o777), ..Attributes::default() };
            let made = client.done(&Request::MakeDir(root, attributes));
            made.map_err(|error| refused(&error, location, root))
        }
        _ => {
            let made = fs::create_dir(OsStr::from_bytes(root));
            made.map_err(|error| FsError::io("make the directory", root, &error).into())
        }
    };
    made.map_err(|error| {
        let remedy = make_it(location, root);
        with_remedy(error.context("the target cannot be made"), Some(remedy))
    })
}

/// How the user makes a directory.
fn make_it(location: &Location, path: &[u8]) -> String {
    match location {
        Location::Remote(remote) => {
            format!("try: ssh {} mkdir -p {}", remote.login, Shown::new(path))
        }
        _ => format!("try: mkdir -p {}", Shown::new(path)),
    }
}
