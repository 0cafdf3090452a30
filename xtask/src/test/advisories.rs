//! The list of known faults of dependencies, where there is one: it is another repository, so that it is not
//! there on a machine without a network.

use std::path::{Path, PathBuf};

/// Whether `cargo deny` has fetched a list of advisories.
pub(super) fn are_present() -> bool {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    home.is_some_and(|home| are_in(&home))
}

/// Whether this folder of cargo's has one: each in a folder of its own, under the default `db-path`.
fn are_in(home: &Path) -> bool {
    let Ok(lists) = home.join("advisory-dbs").read_dir() else { return false };
    lists.flatten().any(|list| list.path().join("crates").is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_folder_is_no_list() {
        let home = std::env::temp_dir().join(format!("hikyaku-advisories-{}", std::process::id()));
        std::fs::create_dir_all(home.join("advisory-dbs/list")).unwrap();
        assert!(!are_in(&home));
        std::fs::create_dir_all(home.join("advisory-dbs/list/crates/some")).unwrap();
        assert!(are_in(&home));
        std::fs::remove_dir_all(&home).unwrap();
        assert!(!are_in(&home));
    }
}
