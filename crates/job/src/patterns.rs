//! Shell patterns: the paths that a source on the far side stands for, and the names that may arrive for it.

use globset::{GlobBuilder, GlobMatcher};
use hikyaku_fs::{Kind, Name, dirs_above};
use hikyaku_store::{ErrorKind, Kind as FileKind, Store, StorePath, doing};
use hikyaku_transfer::Depth;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Compiles one: `*` and `?` match no slash, `**` does.
pub(crate) fn compile(pattern: &str) -> Result<GlobMatcher, PatternError> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build();
    let glob = glob.map_err(|error| PatternError {
        pattern: pattern.to_owned(),
        reason: error.kind().to_string(),
    })?;
    Ok(glob.compile_matcher())
}

/// A text that is not a pattern.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "'{pattern}' is not a pattern: {reason} (a character behind a backslash means itself, as in '\\[')"
)]
pub struct PatternError {
    pattern: String,
    reason: String,
}

/// A name as the user typed it: it stands for itself and, as a pattern, for the names that it matches.
#[derive(Clone, Debug)]
pub struct Asked {
    literal: Vec<u8>,
    pattern: Option<GlobMatcher>,
}

impl Asked {
    /// A name as it was typed.
    pub fn new(name: &[u8]) -> Self {
        let is_pattern = name.iter().any(|byte| b"*?[".contains(byte));
        // A text that is no valid pattern is a name with a special character.
        let matcher = is_pattern.then(|| compile(&String::from_utf8_lossy(name)).ok());
        Self { literal: name.to_vec(), pattern: matcher.flatten() }
    }

    /// Whether it is a pattern.
    pub const fn is_pattern(&self) -> bool {
        self.pattern.is_some()
    }

    /// Whether the text stands for `name`. Only a pattern that begins with a dot matches a name that does.
    pub fn fits(&self, name: &[u8]) -> bool {
        let is_in_sight = !name.starts_with(b".") || self.literal.starts_with(b".");
        // A name that is no UTF-8 was compiled in its replaced form.
        let matches = |matcher: &GlobMatcher| matcher.is_match(&*String::from_utf8_lossy(name));
        name == self.literal || (is_in_sight && self.pattern.as_ref().is_some_and(matches))
    }
}

/// The paths that `path` stands for: all that match it, sorted; or itself, if it exists or nothing matches.
pub fn expand(path: &Path) -> Vec<PathBuf> {
    let is_pattern = path.components().any(|component| match component {
        Component::Normal(name) => Asked::new(name.as_bytes()).pattern.is_some(),
        _ => false,
    });
    if !is_pattern || fs::symlink_metadata(path).is_ok() {
        return vec![path.to_path_buf()];
    }
    let mut found = vec![PathBuf::new()];
    for component in path.components() {
        found = match component {
            Component::Normal(name) => {
                let asked = Asked::new(name.as_bytes());
                match asked.pattern {
                    Some(_) => matching(&found, &asked),
                    None => found.into_iter().map(|path| path.join(name)).collect(),
                }
            }
            other => found.into_iter().map(|path| path.join(other)).collect(),
        };
    }
    found.retain(|path| fs::symlink_metadata(path).is_ok());
    // Reading it then fails with the reason.
    if found.is_empty() { vec![path.to_path_buf()] } else { found }
}

/// Maximum number of matched entries.
const MATCHING_MAX: usize = 1_000_000;
/// Maximum number of entries of one request to a store.
const PAGE_ITEMS: usize = 4096;

/// The paths in a store that `path` stands for.
pub fn in_store(store: &dyn Store, path: &StorePath) -> hikyaku_store::Result<Vec<StorePath>> {
    if !is_pattern(path.as_bytes()) {
        return Ok(vec![path.clone()]);
    }
    match store.look(path) {
        Err(error) if is_nothing(error.kind) => {}
        // The path exists, or reading it fails with the reason.
        Ok(_) | Err(_) => return Ok(vec![path.clone()]),
    }
    let mut found = vec![StorePath::ROOT];
    for name in path.as_bytes().split(|&byte| byte == b'/') {
        let asked = Asked::new(name);
        let mut next = Vec::new();
        for dir in found {
            match asked.is_pattern() {
                true => next.extend(entries(store, &dir, &asked)?),
                // A name that cannot be one of a file matches nothing.
                false => next.extend(Name::new(name).ok().and_then(|name| dir.join(&name).ok())),
            }
            if next.len() > MATCHING_MAX {
                return doing("match the pattern", path).fail(ErrorKind::TooLarge);
            }
        }
        found = next;
    }
    found.retain(|path| !store.look(path).is_err_and(|error| is_nothing(error.kind)));
    Ok(if found.is_empty() { vec![path.clone()] } else { found })
}

/// Whether an error means that the path does not exist, including a file in place of a directory above it.
const fn is_nothing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotDir)
}

/// The matching entries of a directory, or of one that a link leads to, sorted by name. An unreadable directory has none, as in
/// a shell.
fn entries(
    store: &dyn Store,
    dir: &StorePath,
    asked: &Asked,
) -> hikyaku_store::Result<Vec<StorePath>> {
    let (mut found, mut after) = (Vec::new(), None);
    let looked = match store.look(dir) {
        Ok(there) if there.kind != FileKind::Link => Ok((dir.clone(), there)),
        Err(error) if error.kind != ErrorKind::Link => Err(error),
        // It is a link, or a link is on the way to it.
        Ok(_) | Err(_) => store.follow(dir),
    };
    let real = match looked {
        Ok((real, there)) if there.kind == FileKind::Dir => real,
        Err(error) if error.kind.is_worth_retrying() => return Err(error),
        // A path that is no directory has no entries, whichever error a store returns for it.
        Ok(_) | Err(_) => return Ok(found),
    };
    loop {
        let page = match store.list(&real, after.as_ref(), PAGE_ITEMS) {
            Ok(page) => page,
            Err(error) if error.kind.is_worth_retrying() => return Err(error),
            Err(_) => break,
        };
        let fits = page.items.iter().filter(|item| asked.fits(item.name.as_bytes()));
        found.extend(fits.filter_map(|item| dir.join(&item.name).ok()));
        if found.len() > MATCHING_MAX || page.next.is_none() {
            break;
        }
        after = page.next;
    }
    found.sort();
    Ok(found)
}

/// Whether a name in the path is a pattern.
pub fn is_pattern(path: &[u8]) -> bool {
    path.split(|&byte| byte == b'/').any(|name| Asked::new(name).is_pattern())
}

fn matching(dirs: &[PathBuf], asked: &Asked) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for dir in dirs {
        let here = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        // An unreadable directory matches nothing, as in a shell.
        let Ok(entries) = fs::read_dir(here) else { continue };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort_unstable();
        found.extend(
            names.iter().filter(|name| asked.fits(name.as_bytes())).map(|name| dir.join(name)),
        );
    }
    found
}

/// The entries that a far side may send for the requested sources. Others are refused: a file that was not requested must
/// not be written (CVE-2019-6111).
#[derive(Clone, Debug, Default)]
pub struct Allowed(Set);

#[derive(Clone, Debug, Default)]
enum Set {
    /// Any entry: the user trusts the far side, or this host sends.
    #[default]
    Anything,
    /// Entries with one of these names, and all below them.
    Named(Vec<Asked>, Depth),
    /// All entries of a directory.
    Contents(Depth),
    /// These paths, the directories above them, and all below them.
    Listed { paths: BTreeSet<Vec<u8>>, parents: BTreeSet<Vec<u8>>, depth: Depth },
}

impl Allowed {
    /// All entries.
    pub fn anything() -> Self {
        Self::default()
    }

    /// The entries that may arrive for these sources.
    pub fn of(sources: &[Vec<u8>], depth: Depth) -> Self {
        let mut names = Vec::new();
        for source in sources {
            let path = Path::new(OsStr::from_bytes(source));
            // If no directory is allowed, a file may have this name.
            let is_users_home = depth == Depth::Tree && is_users_home(source);
            let is_contents = source.ends_with(b"/.") || is_home(source) || is_users_home;
            match path.components().next_back() {
                Some(Component::Normal(name)) if !is_contents => {
                    names.push(Asked::new(name.as_bytes()));
                }
                _ => return Self(Set::Contents(depth)),
            }
        }
        Self(Set::Named(names, depth))
    }

    /// The entries that may arrive for a list of paths.
    pub fn listed(paths: &[Vec<u8>], depth: Depth) -> Self {
        let parents = paths.iter().flat_map(|path| dirs_above(path)).map(<[u8]>::to_vec).collect();
        Self(Set::Listed { paths: paths.iter().cloned().collect(), parents, depth })
    }

    /// Whether an entry with this path and kind may arrive.
    // fuzz: lines
    pub fn admits(&self, path: &[u8], kind: Kind) -> bool {
        let is_flat = kind != Kind::Dir && !path.contains(&b'/');
        match &self.0 {
            Set::Anything => true,
            Set::Contents(depth) => *depth == Depth::Tree,
            Set::Named(names, depth) => {
                let first = path.split(|&byte| byte == b'/').next().unwrap_or_default();
                (is_flat || *depth == Depth::Tree) && names.iter().any(|name| name.fits(first))
            }
            Set::Listed { paths, parents, depth: Depth::File } => match kind {
                Kind::Dir => parents.contains(path),
                _ => paths.contains(path),
            },
            Set::Listed { paths, parents, depth: Depth::Tree } => {
                paths.contains(path)
                    || (kind == Kind::Dir && parents.contains(path))
                    || dirs_above(path).any(|dir| paths.contains(dir))
            }
        }
    }
}

/// Whether a source is the home directory on the far side, whose name the near side does not know.
pub fn is_home(source: &[u8]) -> bool {
    matches!(source, b"" | b"~" | b"~/")
}

/// Whether it is another user's one, unless a file has such a name.
pub fn is_users_home(source: &[u8]) -> bool {
    let name = source.strip_suffix(b"/").unwrap_or(source);
    name.starts_with(b"~") && name.len() > 1 && !name.contains(&b'/')
}

#[cfg(test)]
mod tests;
