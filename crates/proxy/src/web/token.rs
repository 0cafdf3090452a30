//! The token of the page for the user's own browser. It is kept, because the browser remembers the address with the token.

use super::{Context, Error, Result};
use hikyaku_console::Folder;
use hikyaku_page::Gate;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The file, in the state folder.
const FILE: &str = "web_token";

/// The token of this user. It is made at the first time.
pub(super) fn of_user() -> Result<String> {
    let folder = Folder::State.of_user()?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    kept_at(&folder.join(FILE))
}

fn kept_at(path: &Path) -> Result<String> {
    match fs::read_to_string(path) {
        Ok(text) if Gate::with_token(text.trim(), 0).is_some() => Ok(text.trim().to_owned()),
        Ok(_) => {
            let error = Error::msg(format!("{} has no token", path.display()));
            Err(hikyaku_console::with_remedy(error, Some(format!("try: rm {}", path.display()))))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => make(path),
        Err(error) => Err(Error::from(error).context(path.display().to_string())),
    }
}

fn make(path: &Path) -> Result<String> {
    let gate = Gate::new(0).context("no random numbers")?;
    let context = || path.display().to_string();
    let open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = open.with_context(context)?;
    file.write_all(format!("{}\n", gate.token()).as_bytes()).with_context(context)?;
    Ok(gate.token().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_made_once_and_kept_for_this_user_only() {
        let path = std::env::temp_dir().join(format!("hikyaku-web-token-{}", std::process::id()));
        let token = kept_at(&path).unwrap();
        assert_eq!(kept_at(&path).unwrap(), token);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, "guess me").unwrap();
        assert!(format!("{:#}", kept_at(&path).unwrap_err()).contains("try: rm"));
        fs::remove_file(path).unwrap();
    }
}
