//! Lines for a person, and objects for a program.

use crate::args::LsArgs;
use crate::gather::{Gathered, Listed};
use hikyaku_console::{mode_text, scaled, time_text};
use hikyaku_fs::Shown;
use hikyaku_store::{Found, Kind, Place, StorePath};
use serde::Serialize;

/// How names are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Names {
    /// Escaped, for a terminal.
    Shown,
    /// Byte by byte, for a program.
    Raw,
}

/// The names of one location, as its user wrote it, with its name above them if there are `several`.
pub(crate) fn lines(
    (location, several): (&str, bool),
    gathered: &Gathered,
    (args, names): (&LsArgs, Names),
) -> Vec<u8> {
    let is_root_alone = gathered.names.get(&StorePath::ROOT).is_some_and(|root| !root.is_dir());
    let all: Vec<(&[u8], &Listed)> = match gathered.names.get(&StorePath::ROOT) {
        Some(root) if is_root_alone => vec![(location.as_bytes(), root)],
        _ => {
            let below = gathered.names.iter().filter(|(path, _)| **path != StorePath::ROOT);
            below.map(|(path, listed)| (path.as_bytes(), listed)).collect()
        }
    };
    let mut text = Vec::new();
    if several && !is_root_alone {
        text.extend_from_slice(format!("{location}:\n").as_bytes());
    }
    let size = |found: &Found| match args.human_readable {
        true => scaled(found.size),
        false => found.size.to_string(),
    };
    let width = |column: &dyn Fn(&Listed) -> String| {
        all.iter().map(|(_, listed)| column(listed).chars().count()).max().unwrap_or(0)
    };
    let sizes = width(&|listed| size(&listed.found));
    let places = width(&|listed| places_text(&listed.places));
    for (name, listed) in &all {
        if args.long {
            let Listed { found, .. } = listed;
            let (mode, time) = (mode(found), time_text(found.modified.secs));
            text.extend_from_slice(format!("{mode} {:>sizes$} {time} ", size(found)).as_bytes());
        }
        if args.places {
            let at = places_text(&listed.places);
            text.extend_from_slice(format!("{at:places$} ").as_bytes());
        }
        name_text(name, names, &mut text);
        if let Some(link) = listed.link.as_ref().filter(|_| args.long) {
            text.extend_from_slice(b" -> ");
            name_text(link, names, &mut text);
        }
        text.push(b'\n');
    }
    text
}

fn name_text(name: &[u8], names: Names, text: &mut Vec<u8>) {
    match names {
        Names::Shown => text.extend_from_slice(Shown::new(name).to_string().as_bytes()),
        Names::Raw => text.extend_from_slice(name),
    }
}

/// The machines that have a file; `-` for a directory of a file system with replicas, which is on none of them.
fn places_text(places: &[Place]) -> String {
    let place = |place: &Place| match place.is_up {
        true => place.host.clone(),
        false => format!("{}!", place.host),
    };
    match places {
        [] => "-".to_owned(),
        places => places.iter().map(place).collect::<Vec<_>>().join(","),
    }
}

/// The mode with the bits of the kind.
fn mode(found: &Found) -> String {
    let kind = match found.kind {
        Kind::File => 0o100_000,
        Kind::Dir => 0o040_000,
        Kind::Link => 0o120_000,
        Kind::Special => 0,
    };
    mode_text(kind | found.mode & 0o7777)
}

impl Listed {
    fn is_dir(&self) -> bool {
        self.found.kind == Kind::Dir
    }
}

/// The content of the document.
#[derive(Default, Serialize)]
pub(crate) struct Entries {
    entries: Vec<Object>,
}

/// A name in JSON.
#[derive(Serialize)]
struct Object {
    address: String,
    /// Below the address; empty for the address itself.
    path: String,
    kind: &'static str,
    size: u64,
    /// In seconds since 1970.
    modified: f64,
    mode: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    places: Vec<At>,
}

/// A machine that has the file.
#[derive(Serialize)]
struct At {
    host: String,
    up: bool,
}

impl From<&Place> for At {
    fn from(place: &Place) -> Self {
        Self { host: place.host.clone(), up: place.is_up }
    }
}

impl Entries {
    /// Adds each name of a location, the location itself among them.
    pub(crate) fn add(&mut self, location: &str, gathered: &Gathered, args: &LsArgs) {
        self.entries.extend(gathered.names.iter().map(|(path, listed)| {
            let Listed { found, link, places } = listed;
            let micros = f64::from(found.modified.nanos / 1000) / 1e6;
            Object {
                address: location.to_owned(),
                path: String::from_utf8_lossy(path.as_bytes()).into_owned(),
                kind: match found.kind {
                    Kind::File => "file",
                    Kind::Dir => "directory",
                    Kind::Link => "link",
                    Kind::Special => "special",
                },
                size: found.size,
                modified: found.modified.secs as f64 + micros,
                mode: format!("{:04o}", found.mode & 0o7777),
                link: link.as_ref().map(|link| String::from_utf8_lossy(link).into_owned()),
                places: if args.places {
                    places.iter().map(At::from).collect()
                } else {
                    Vec::new()
                },
            }
        }));
    }
}

#[cfg(test)]
mod tests;
