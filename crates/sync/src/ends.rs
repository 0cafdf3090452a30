//! What the user named: the roots of the two trees, and the session with the machine that is not this one.

use crate::args::SyncArgs;
use crate::contents::ssh_words;
use crate::side::{Here, Side, There};
use anyhow::{Context, Error, Result, bail, ensure};
use clap::{Args, Command, FromArgMatches};
use hikyaku_console::{Interrupt, Keys, Settings, with_remedy};
use hikyaku_copy::{Location, Remote, add_keys};
use hikyaku_fs::Shown;
use hikyaku_sftp::{Attributes, Client, Kind, Request};
use hikyaku_shell::{Link, SftpArgs, connect};
use hikyaku_units::DataSize;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// One end as the user named it.
pub(crate) struct Place {
    location: Location,
    /// The directory that is the root, or that the file is in.
    root: Vec<u8>,
}

impl Place {
    /// The root as `hikyaku cp` takes it.
    pub(crate) fn word(&self) -> OsString {
        OsString::from_vec(match &self.location {
            Location::Remote(remote) => {
                let login = bracketed(&remote.login.to_string());
                [login.as_bytes(), b":", &self.root].concat()
            }
            _ if self.root.starts_with(b"/") => self.root.clone(),
            _ => [b"./", &self.root[..]].concat(),
        })
    }

    /// The port of ssh, if the address has one (`scp://`).
    pub(crate) fn port(&self) -> Option<u16> {
        match &self.location {
            Location::Remote(remote) => remote.login.port,
            _ => None,
        }
    }

    /// The path of `other` below this place, if both are on this machine and it is there. Links are followed: the user may
    /// have named a directory by two ways.
    pub(crate) fn path_of(&self, other: &Self) -> Option<Vec<u8>> {
        if self.is_remote() || other.is_remote() {
            return None;
        }
        let whole = |place: &Self| fs::canonicalize(OsStr::from_bytes(&place.root)).ok();
        let (here, other) = (whole(self)?, whole(other)?);
        let below = other.strip_prefix(&here).ok()?;
        Some(below.as_os_str().as_bytes().to_vec()).filter(|below| !below.is_empty())
    }

    /// Whether both are one directory of this machine.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let whole = |place: &Self| fs::canonicalize(OsStr::from_bytes(&place.root)).ok();
        !self.is_remote()
            && !other.is_remote()
            && whole(self).is_some_and(|own| Some(own) == whole(other))
    }

    pub(crate) const fn is_remote(&self) -> bool {
        matches!(self.location, Location::Remote(_))
    }

    /// The root as a side.
    pub(crate) fn side(&self, client: Option<&Client>, memory: DataSize) -> Result<Box<dyn Side>> {
        Ok(match client.filter(|_| self.is_remote()) {
            Some(client) => Box::new(There::new(client.clone(), self.root.clone(), memory)),
            None => Box::new(Here::open(Path::new(OsStr::from_bytes(&self.root)))?),
        })
    }
}

const NO_DAEMONS: &str =
    "trees on daemons and in Gfarm are not compared; try: hikyaku cp, which copies them";

/// A session with the one machine that is not this one; `None` if both ends are here.
pub(crate) fn open_link(
    args: &SyncArgs,
    ends: [&Location; 2],
    memory: DataSize,
    interrupt: &Interrupt,
) -> Result<Option<Link>> {
    let remote = match ends {
        [Location::Local(_), Location::Local(_)] => return Ok(None),
        [Location::Remote(remote), Location::Local(_)]
        | [Location::Local(_), Location::Remote(remote)] => remote,
        [Location::Remote(_), Location::Remote(_)] => {
            bail!("both are on other machines; try: the same command on one of the two")
        }
        _ => bail!(NO_DAEMONS),
    };
    // A name of daemons in the settings stands for them in every command.
    let settings = Settings::of_user(&add_keys(Keys::default()))?;
    let is_plain = remote.login.user.is_none() && remote.login.port.is_none();
    ensure!(!is_plain || settings.cluster(&remote.login.host).is_none(), NO_DAEMONS);
    let mut words: Vec<OsString> = vec!["sftp".into()];
    words.extend(ssh_words(args)?);
    words.push("--".into());
    let port = remote.login.port.map(|port| format!(":{port}")).unwrap_or_default();
    words.push(format!("sftp://{}{port}", bracketed(&remote.login.to_string())).into());
    let link = connect(&parsed::<SftpArgs>(words)?, memory, &interrupt.scope())?;
    if let Some(advice) = link.advice().filter(|_| !args.is_quiet()) {
        eprintln!("hikyaku: {advice}");
    }
    Ok(Some(link))
}

/// Reads words as the arguments of another command.
pub(crate) fn parsed<T: Args + FromArgMatches>(words: Vec<OsString>) -> Result<T> {
    let matches = T::augment_args(Command::new("hikyaku")).try_get_matches_from(words)?;
    Ok(T::from_arg_matches(&matches)?)
}

/// A login of which an address of IPv6 has brackets.
fn bracketed(login: &str) -> String {
    let (user, host) = match login.rsplit_once('@') {
        Some((user, host)) => (format!("{user}@"), host),
        None => (String::new(), login),
    };
    let is_bare = host.contains(':') && !host.starts_with('[');
    if is_bare { format!("{user}[{host}]") } else { format!("{user}{host}") }
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

/// What has a name, links followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Dir,
    Other,
    Nothing,
}

fn found(location: &Location, path: &[u8], client: Option<&Client>) -> Result<Found> {
    let of = |is_dir: bool| if is_dir { Found::Dir } else { Found::Other };
    let shown = || Shown::new(path).to_string();
    match (location, client) {
        (Location::Remote(_), Some(client)) => match client.attributes(&Request::Stat(path)) {
            Ok(found) => Ok(of(found.kind() == Some(Kind::Dir))),
            Err(error) if error.is_absent() => Ok(Found::Nothing),
            Err(error) => Err(Error::new(error).context(shown())),
        },
        _ => match fs::metadata(OsStr::from_bytes(path)) {
            Ok(found) => Ok(of(found.is_dir())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Nothing),
            Err(error) => Err(Error::new(error).context(shown())),
        },
    }
}

/// What a source means.
pub(crate) struct Source {
    pub(crate) place: Place,
    /// The one name in the root that is meant, if it is a file.
    pub(crate) only: Option<Vec<u8>>,
    /// The name that the directory gets at the target; `None` if only what is in it is meant.
    pub(crate) name: Option<Vec<u8>>,
}

/// The root of the source.
///
/// # Errors
///
/// There is no such file or directory.
pub(crate) fn source_root(location: Location, client: Option<&Client>) -> Result<Source> {
    let path = path_of(&location);
    let found = found(&location, &path, client)?;
    if found == Found::Nothing {
        let absent = std::io::Error::from(ErrorKind::NotFound);
        return Err(Error::new(absent).context(Shown::new(&path).to_string()));
    }
    let trimmed = path.strip_suffix(b"/").unwrap_or(&path);
    let name = trimmed.rsplit(|&byte| byte == b'/').next().unwrap_or_default().to_vec();
    let is_contents = path.ends_with(b"/") || matches!(&name[..], b"" | b"." | b"..");
    if found == Found::Dir {
        let name = (!is_contents).then_some(name);
        return Ok(Source { place: Place { location, root: path }, only: None, name });
    }
    ensure!(!is_contents, "{}: not a directory", Shown::new(&path));
    let dir = path[..path.len() - name.len()].to_vec();
    let root = if dir.is_empty() { b"./".to_vec() } else { dir };
    Ok(Source { place: Place { location, root }, only: Some(name), name: None })
}

/// Whether the root of the target was there before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Root {
    There,
    Made,
    /// It is not made in a rehearsal.
    Absent,
}

/// The root of the target, which is made if the directory above it is there, or not in a rehearsal.
///
/// # Errors
///
/// It is no directory, or cannot be made.
pub(crate) fn target_root(
    location: Location,
    source: &Source,
    client: Option<&Client>,
    is_rehearsal: bool,
) -> Result<(Place, Root)> {
    let (mut path, mut root) = (path_of(&location), Root::There);
    for name in
        [None, source.name.as_deref()].into_iter().take(1 + usize::from(source.name.is_some()))
    {
        if let Some(name) = name {
            let slash = if path.ends_with(b"/") { &b""[..] } else { b"/" };
            path = [&path, slash, name].concat();
        }
        match found(&location, &path, client)? {
            Found::Dir => {}
            Found::Nothing if source.only.is_none() || path.ends_with(b"/") => {
                root = if is_rehearsal { Root::Absent } else { Root::Made };
                if root == Root::Made {
                    make_root(&location, &path, client)?;
                }
            }
            _ => {
                let text = format!("{}: not a directory", Shown::new(&path));
                let remedy =
                    source.only.as_ref().map(|_| "try: hikyaku cp -p, for one file".to_owned());
                return Err(with_remedy(Error::msg(text), remedy));
            }
        }
    }
    Ok((Place { location, root: path }, root))
}

fn make_root(location: &Location, root: &[u8], client: Option<&Client>) -> Result<()> {
    let shown = || format!("cannot make {}", Shown::new(root));
    match (location, client) {
        (Location::Remote(_), Some(client)) => {
            let attributes = Attributes { mode: Some(0o777), ..Attributes::default() };
            client.done(&Request::MakeDir(root, attributes)).with_context(shown)
        }
        _ => fs::create_dir(OsStr::from_bytes(root)).with_context(shown),
    }
}
