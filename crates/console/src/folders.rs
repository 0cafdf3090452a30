//! The directories of the user: the XDG Base Directory Specification, version 0.8.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// The program's own directory in each of the user's directories.
const OWN: &str = "hikyaku";

/// What a directory is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Folder {
    /// What the user writes: `$XDG_CONFIG_HOME/hikyaku`, by default `~/.config/hikyaku`.
    Config,
    /// What must outlive a restart: keys, journals. `$XDG_STATE_HOME/hikyaku`, by default `~/.local/state/hikyaku`.
    State,
    /// What can be computed again: `$XDG_CACHE_HOME/hikyaku`, by default `~/.cache/hikyaku`.
    Cache,
    /// Sockets and locks, removed when the user logs out: `$XDG_RUNTIME_DIR/hikyaku`. It has no default.
    Runtime,
}

/// Neither the folder's variable nor `HOME`, if it counts, holds an absolute path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", self.text())]
pub struct NoFolder(Folder);

/// The folder in which stores note what they have begun, so that a later process removes what a killed one has left; `None`
/// without a state folder.
pub fn begun() -> Option<PathBuf> {
    Some(Folder::State.of_user().ok()?.join("begun"))
}

impl Folder {
    /// The program's own directory of this kind. It need not exist.
    ///
    /// # Errors
    /// No variable of the environment names it. A relative path does not count, as the specification requires.
    pub fn of_user(self) -> Result<PathBuf, NoFolder> {
        self.of(|variable| env::var_os(variable))
    }

    /// The same in an environment.
    fn of(self, value: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, NoFolder> {
        let absolute =
            |variable| value(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        let in_home = || Some(absolute("HOME")?.join(self.below_home()?));
        let folder = absolute(self.variable()).or_else(in_home).ok_or(NoFolder(self))?;
        Ok(folder.join(OWN))
    }

    const fn variable(self) -> &'static str {
        match self {
            Self::Config => "XDG_CONFIG_HOME",
            Self::State => "XDG_STATE_HOME",
            Self::Cache => "XDG_CACHE_HOME",
            Self::Runtime => "XDG_RUNTIME_DIR",
        }
    }

    /// The default, relative to the home directory.
    const fn below_home(self) -> Option<&'static str> {
        match self {
            Self::Config => Some(".config"),
            Self::State => Some(".local/state"),
            Self::Cache => Some(".cache"),
            Self::Runtime => None,
        }
    }
}

impl NoFolder {
    #[cfg(test)]
    pub(crate) const fn for_test(folder: Folder) -> Self {
        Self(folder)
    }

    /// What the user can do, as a line that begins with `try: `.
    pub fn remedy(self) -> String {
        let variable = self.0.variable();
        match self.0.below_home() {
            Some(_) => format!("try: set HOME or {variable}"),
            None => format!("try: set {variable}"),
        }
    }

    fn text(self) -> String {
        let variable = self.0.variable();
        match self.0.below_home() {
            Some(_) => format!("neither {variable} nor HOME is an absolute path"),
            None => format!("{variable} is not an absolute path"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absolute_variable_wins_over_the_home_directory() {
        use Folder::{Cache, Config, Runtime, State};
        let cases = [
            (State, Some("/s"), Some("/h"), Some("/s/hikyaku")),
            (State, Some(""), Some("/h"), Some("/h/.local/state/hikyaku")),
            (State, Some("relative"), Some("/h"), Some("/h/.local/state/hikyaku")),
            (Config, None, Some("/h"), Some("/h/.config/hikyaku")),
            (Cache, None, Some("/h"), Some("/h/.cache/hikyaku")),
            (Cache, None, Some("h"), None),
            (State, None, None, None),
            (Runtime, Some("/r"), None, Some("/r/hikyaku")),
            (Runtime, None, Some("/h"), None),
        ];
        for (folder, own, home, wanted) in cases {
            let value = |variable: &str| match variable {
                "HOME" => home.map(OsString::from),
                variable if variable == folder.variable() => own.map(OsString::from),
                _ => Some("/other".into()),
            };
            assert_eq!(folder.of(value).ok(), wanted.map(PathBuf::from), "{folder:?} {own:?}");
        }
    }

    #[test]
    fn the_remedy_names_variables_that_help() {
        let remedy = |folder: Folder| folder.of(|_| None).unwrap_err().remedy();
        assert_eq!(remedy(Folder::State), "try: set HOME or XDG_STATE_HOME");
        assert_eq!(remedy(Folder::Runtime), "try: set XDG_RUNTIME_DIR");
    }
}
