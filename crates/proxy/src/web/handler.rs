//! The handler of `hikyaku:` links: a desktop entry that starts this program with the address of a link, and a line in
//! the user's list of default programs that names it (Desktop Entry Specification 1.5; `mimeapps.list`).
//!
//! What another program or the user has written is never replaced. The entry opens a terminal, in which the user is asked.

mod mime_list;

use super::gateways::{Gateways, refusal};
use super::{Context, Error, Result};
use anyhow::ensure;
use hikyaku_console::{At, print, with_remedy};
use hikyaku_fs::write_whole;
use mime_list::Taken;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The name of the desktop entry.
const ENTRY: &str = "hikyaku-link.desktop";
/// Begins each entry of ours.
const MARK: &str =
    "# Made by 'hikyaku web --install-handler', and removed by 'hikyaku web --remove-handler'.\n";
/// The list of default programs.
const LIST: &str = "mimeapps.list";

/// The files of the handler.
pub(super) struct Handler {
    entry: PathBuf,
    list: PathBuf,
    /// Where the list was in earlier versions of its specification. It is only read.
    old_list: PathBuf,
}

impl Handler {
    /// Those of this user.
    ///
    /// # Errors
    ///
    /// The environment names no home.
    pub(super) fn of_user() -> Result<Self> {
        let applications = user_folder("XDG_DATA_HOME", ".local/share")?.join("applications");
        let list = user_folder("XDG_CONFIG_HOME", ".config")?.join(LIST);
        let (entry, old_list) = (applications.join(ENTRY), applications.join(LIST));
        Ok(Self { entry, list, old_list })
    }

    /// Installs the handler, and lets links use a gateway.
    ///
    /// # Errors
    ///
    /// Another program has links of the scheme, or a file cannot be written.
    pub(super) fn install(&self, gateway: &str) -> Result<()> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let text = entry(&program)?;
        let (old_list, list) = (read(&self.old_list)?, read(&self.list)?);
        let of_old = mime_list::with(&old_list, ENTRY);
        let changed = of_old.and_then(|_| mime_list::with(&list, ENTRY)).map_err(taken)?;
        let found = read(&self.entry)?;
        if !found.is_empty() && !found.starts_with(MARK.as_bytes()) {
            let text = format!("{} is not from this program", self.entry.display());
            return Err(refusal(text));
        }
        replace(&self.entry, &found, text.as_bytes())?;
        if let Some(changed) = changed {
            replace(&self.list, &list, &changed)?;
        }
        Gateways::of_user()?.add(gateway)?;
        print(format!(
            "links of the form hikyaku:{gateway}?url=ADDRESS are downloaded through {gateway}, after a question\n\
             the handler is {}\n\
             it is removed by: hikyaku web --remove-handler\n",
            self.entry.display()
        ))
    }

    /// Removes the handler, and forgets the gateways that links may use.
    ///
    /// # Errors
    ///
    /// A file cannot be removed or written.
    pub(super) fn remove(&self) -> Result<()> {
        let list = read(&self.list)?;
        if let Some(changed) = mime_list::without(&list, ENTRY) {
            match mime_list::is_bare(&changed) {
                true => remove(&self.list)?,
                false => replace(&self.list, &list, &changed)?,
            }
        }
        if read(&self.entry)?.starts_with(MARK.as_bytes()) {
            remove(&self.entry)?;
        }
        Gateways::of_user()?.forget()?;
        print("hikyaku: links are not handled any more\n")
    }
}

/// A folder of the user, for files of other programs (XDG Base Directory Specification).
pub(super) fn user_folder(variable: &str, below_home: &str) -> Result<PathBuf> {
    let absolute = |variable| {
        let value = std::env::var_os(variable).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    let found = absolute(variable).or_else(|| Some(absolute("HOME")?.join(below_home)));
    found.ok_or_else(|| {
        let error = refusal(format!("neither {variable} nor HOME names a folder"));
        with_remedy(error, Some(format!("try: set HOME or {variable}")))
    })
}

/// The desktop entry. The program stands there without quotes: not all desktops know them.
fn entry(program: &Path) -> Result<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    let plain = program.to_str().filter(|path| path.chars().all(is_plain));
    let path = plain.ok_or_else(|| {
        let text = format!("{} has characters that a desktop entry cannot have", program.display());
        let remedy = "try: hikyaku at a path of letters, digits and ._-+@";
        with_remedy(refusal(text), Some(remedy))
    })?;
    Ok(format!(
        "{MARK}[Desktop Entry]\nType=Application\nName=hikyaku links\nComment=Downloads a file through a gateway\n\
         Exec={path} web --in-own-window %u\nTerminal=true\nNoDisplay=true\nMimeType=x-scheme-handler/hikyaku;\n"
    ))
}

fn taken(Taken(program): Taken) -> Error {
    let text = match program.as_str() {
        "" => "the list of default programs says that no program has hikyaku: links".to_owned(),
        program => format!("{program} has hikyaku: links already; nothing is changed"),
    };
    let remedy = format!("try: remove the line 'x-scheme-handler/hikyaku' from {LIST}");
    with_remedy(refusal(text), Some(remedy))
}

/// The bytes of a file, none if it is not there.
fn read(path: &Path) -> Result<Vec<u8>> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        bytes => bytes.at(path.display()),
    }
}

fn remove(path: &Path) -> Result<()> {
    fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
}

/// Replaces what was read of a file, whole or not at all. A symbolic link stays one.
fn replace(path: &Path, before: &[u8], now: &[u8]) -> Result<()> {
    if before == now {
        return Ok(());
    }
    let context = || path.display().to_string();
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().context("no folder")?;
    fs::create_dir_all(folder).with_context(context)?;
    let is_same = read(&path)? == before;
    ensure!(is_same, "{} was changed by another program: try again", path.display());
    write_whole(&path, now).with_context(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_starts_this_program_with_the_link_as_one_word() {
        let text = entry(Path::new("/usr/bin/hikyaku")).unwrap();
        assert!(text.contains("\nExec=/usr/bin/hikyaku web --in-own-window %u\n"), "{text}");
        for path in ["/a b/hikyaku", "/a;b", "/a%u", "/a\"", "/a\nExec=x", "/b\u{fc}cher"] {
            assert!(entry(Path::new(path)).is_err(), "{path:?}");
        }
    }

    #[test]
    fn a_file_that_has_changed_meanwhile_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("hikyaku-handler-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let (file, link) = (folder.join("a"), folder.join("b"));
        fs::write(&file, "theirs").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(replace(&link, b"older", b"ours").is_err());
        assert_eq!(fs::read(&file).unwrap(), b"theirs");
        replace(&link, b"theirs", b"ours").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"ours");
        assert!(link.is_symlink() && fs::read_dir(&folder).unwrap().count() == 2);
        fs::remove_dir_all(folder).unwrap();
    }
}
