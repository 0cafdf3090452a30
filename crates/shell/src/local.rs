//! Commands for this machine.

use crate::fault::{Done, told};
use crate::shell::told_of;
use rustix::fs::Mode;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Write, stdout};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A path of this machine.
pub(crate) fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Goes to a directory, or home.
pub(crate) fn change_dir(to: Option<&[u8]>) -> Done {
    let to = to.filter(|to| !to.is_empty()).unwrap_or(b"~");
    env::set_current_dir(expanded(to))
        .map_err(|error| told_of("Couldn't change local directory to", to, &error))
}

/// A path of which `~` is the home directory.
fn expanded(to: &[u8]) -> PathBuf {
    let home = || env::var_os("HOME").map(PathBuf::from);
    match to {
        b"~" => home().unwrap_or_else(|| PathBuf::from("/")),
        [b'~', b'/', rest @ ..] => home().unwrap_or_default().join(path(rest)),
        _ => path(to).to_owned(),
    }
}

/// Prints where this process is.
pub(crate) fn dir() -> Done {
    match env::current_dir() {
        Ok(dir) => {
            let mut line = b"Local working directory: ".to_vec();
            line.extend(dir.into_os_string().into_vec());
            line.push(b'\n');
            stdout().write_all(&line)?;
            Ok(())
        }
        Err(error) => {
            Err(told(format!("Couldn't get local cwd: {}", crate::fault::system(&error))))
        }
    }
}

/// Makes a directory.
pub(crate) fn make_dir(name: &[u8]) -> Done {
    fs::create_dir(path(name))
        .map_err(|error| told_of("Couldn't create local directory", name, &error))
}

/// Sets the umask of this process.
pub(crate) fn mask(mask: u32) -> Done {
    if mask > 0o777 {
        return Err(told("You must supply a numeric argument to the lumask command."));
    }
    rustix::process::umask(Mode::from_raw_mode(mask));
    writeln!(stdout(), "Local umask: {mask:03o}")?;
    Ok(())
}

/// Lists files with ls(1).
pub(crate) fn list(words: &[u8]) -> Done {
    shell(&[b"ls ", words].concat())
}

/// Gives a text to the user's shell, or runs the shell itself. Its failure is told and is none of the command, as in
/// OpenSSH's sftp.
pub(crate) fn shell(text: &[u8]) -> Done {
    let shell = env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let mut command = Command::new(shell.unwrap_or_else(|| "/bin/sh".into()));
    if !text.is_empty() {
        command.arg("-c").arg(OsString::from_vec(text.to_vec()));
    }
    stdout().flush()?;
    match command.status() {
        Ok(status) => match status.code() {
            Some(0) => {}
            Some(code) => eprintln!("Shell exited with status {code}"),
            None => eprintln!("Shell exited abnormally"),
        },
        Err(error) => eprintln!("Couldn't run the shell: {}", crate::fault::system(&error)),
    }
    Ok(())
}
