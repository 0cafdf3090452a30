//! Folders of the user (XDG Base Directory Specification).

use std::path::PathBuf;

/// hikyaku's own folder below what `variable` names, or else below `otherwise` in the home directory;
/// `None` if there is neither. A relative path in the variable does not count.
pub(crate) fn of_user(variable: &str, otherwise: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(otherwise));
    Some(named.or_else(home)?.join("hikyaku"))
}
