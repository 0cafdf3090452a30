//! The proxy configuration for the user's own browser, where no other user of this machine can answer in its place: a file in the
//! state folder for Firefox, and an address that is the whole configuration for Chromium, which takes no files.
//!
//! A port of the gateway is no such place: while the gateway does not run, anybody may have the port.

use anyhow::{Context, Result};
use hikyaku_console::Folder;
use hikyaku_fs::write_private;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Writes the configuration for the gateway at this port as the user named it. Returns the file, whose path is the same in
/// each run.
pub(super) fn write(port: u16, script: &str) -> Result<PathBuf> {
    let folder = Folder::State.of_user()?;
    write_to(&folder, port, script)
}

fn write_to(folder: &Path, port: u16, script: &str) -> Result<PathBuf> {
    let path = folder.join(format!("web-{port}.pac"));
    let context = || path.display().to_string();
    DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(context)?;
    // A browser that reads it meanwhile finds the old one or the new one.
    write_private(&path, script.as_bytes()).with_context(context)?;
    Ok(path)
}

/// The configuration as an address (RFC 2397).
pub(super) fn data_address(script: &str) -> String {
    format!("data:application/x-ns-proxy-autoconfig,{}", encoded(script.as_bytes(), b"-._~"))
}

/// The file as an address.
pub(crate) fn file_address(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    format!("file://{}", encoded(path.as_os_str().as_bytes(), b"-._~/"))
}

/// Octets in a form that an address may have (RFC 3986, section 2.1).
fn encoded(bytes: &[u8], plain: &[u8]) -> String {
    let one = |byte: &u8| match byte.is_ascii_alphanumeric() || plain.contains(byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    bytes.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hand::decoded;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_configuration_is_a_file_of_this_user_only_whose_path_stays() {
        let folder = std::env::temp_dir().join(format!("hikyaku-pac-{}", std::process::id()));
        let (first, again) = (write_to(&folder, 5210, "one"), write_to(&folder, 5210, "two"));
        let path = again.unwrap();
        assert_eq!(first.unwrap(), path);
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        for (path, mode) in [(&path, 0o600), (&folder, 0o700)] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, mode);
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn addresses_have_no_character_that_a_shell_or_a_browser_reads() {
        let script = "function f() {\n  return \"PROXY 127.0.0.1:1; DIRECT\";\n}\n";
        let address = data_address(script);
        let (_, body) = address.split_once(',').unwrap();
        assert_eq!(decoded(body).unwrap(), script);
        assert!(
            address.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'`$;&#?".contains(&byte))
        );
        assert_eq!(file_address(Path::new("/srv/a b/x.pac")), "file:///srv/a%20b/x.pac");
    }
}
