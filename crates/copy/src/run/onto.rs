//! Copies within a machine that cannot be meant: of a file onto itself, of a directory into itself.

use hikyaku_fs::Shown;
use hikyaku_pair::Options;
use hikyaku_transfer::{Failure, FailureKind, Links};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Why `source` is not copied to `target`, if it cannot be meant.
pub(super) fn objection(source: &Path, target: &Path, options: &Options) -> Option<Failure> {
    let itself = look(source, options)?;
    let made = destination(source, target, options);
    let of =
        |kind, text| Some(Failure { place: source.as_os_str().as_bytes().to_vec(), kind, text });
    if is_same(source, &itself, &made, options) {
        let shown = Shown::new(made.as_os_str().as_bytes());
        return of(
            FailureKind::Exists,
            format!("is the same as {shown}, and is not copied onto itself"),
        );
    }
    if itself.is_dir() && is_within(&made, &itself) && has_it(source, &made, options) {
        let shown = Shown::new(made.as_os_str().as_bytes());
        let text = format!("is a directory, and is not copied into itself, which {shown} is in");
        return of(FailureKind::Exists, text);
    }
    None
}

/// Whether what is copied of a directory has what it becomes in it. The names of a list need not.
fn has_it(source: &Path, made: &Path, options: &Options) -> bool {
    let has = |name: &Vec<u8>| {
        let found = look(&source.join(OsStr::from_bytes(name)), options);
        found.is_some_and(|found| found.is_dir() && is_within(made, &found))
    };
    options.files.is_empty() || options.files.iter().any(has)
}

/// What is at a source: a link itself where links are kept.
fn look(source: &Path, options: &Options) -> Option<Metadata> {
    let keeps = options.rules.links == Links::Kept;
    if keeps { fs::symlink_metadata(source) } else { fs::metadata(source) }.ok()
}

/// What a source becomes, as its user would write it.
fn destination(source: &Path, target: &Path, options: &Options) -> PathBuf {
    let is_contents = !options.files.is_empty() || source.as_os_str().as_bytes().ends_with(b"/.");
    match source.components().next_back() {
        Some(Component::Normal(name)) if !is_contents && target.is_dir() => target.join(name),
        _ => target.to_path_buf(),
    }
}

fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

/// Whether both are one, be it through links. A link that is kept may stand where the same link is, unless it
/// would take the place of what it leads to.
fn is_same(source: &Path, itself: &Metadata, made: &Path, options: &Options) -> bool {
    let (link, followed) = (fs::symlink_metadata(made), fs::metadata(made));
    let is = |one: &Metadata, other: &std::io::Result<Metadata>| {
        other.as_ref().is_ok_and(|other| identity(one) == identity(other))
    };
    let leads_to = fs::metadata(source).ok();
    is(itself, &link)
        || leads_to.as_ref().is_some_and(|meta| is(meta, &link))
        || (options.rules.links == Links::Followed && is(itself, &followed))
}

/// Whether `made`, or where it would be made, is somewhere below the directory.
fn is_within(made: &Path, dir: &Metadata) -> bool {
    // As long as there is nothing of its name, what is above it counts.
    let there = made.ancestors().find_map(|path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        fs::canonicalize(path).ok()
    });
    let Some(there) = there else { return false };
    there.ancestors().any(|above| fs::metadata(above).is_ok_and(|m| identity(&m) == identity(dir)))
}

#[cfg(test)]
mod tests;
