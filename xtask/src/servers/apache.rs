//! Debian's Apache with the event module and the settings that it has by itself, for another network namespace than this one.

use crate::packages::Need;
use anyhow::{Context, Result};
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The program. It is outside the search path of ordinary users.
const PROGRAM: &str = "/usr/sbin/apache2";
const MODULES: &str = "/usr/lib/apache2/modules";
/// Programs that must be installed.
pub const NEEDS: &[Need] = &[Need::new("apache2", "apache2-bin")];

/// A server that can be started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Apache {
    /// The directory that it serves.
    pub www: PathBuf,
    /// The URL of that directory, without a slash at its end.
    pub url: String,
    /// The command that runs it in the foreground until SIGTERM.
    pub command: Vec<String>,
}

/// Makes `folder` for a server at `ip` and `port`. Started by root it runs as www-data, which needs access to the files.
///
/// # Errors
/// The folder cannot be made.
pub fn prepare(folder: &Path, ip: IpAddr, port: u16) -> Result<Apache> {
    let www = folder.join("www");
    fs::create_dir_all(&www).with_context(|| format!("cannot make {}", www.display()))?;
    let folder = folder.canonicalize()?;
    let (www, file) = (folder.join("www"), folder.join("apache.conf"));
    fs::write(&file, configuration(&folder, ip, port))?;
    let file = file.display().to_string();
    let command = [PROGRAM, "-D", "FOREGROUND", "-f", &file].map(str::to_owned).into();
    Ok(Apache { www, url: format!("http://{ip}:{port}"), command })
}

/// Nothing of the system's own configuration has an effect.
fn configuration(folder: &Path, ip: IpAddr, port: u16) -> String {
    let dir = folder.display();
    let user = if crate::is_root() { "User www-data\nGroup www-data\n" } else { "" };
    format!(
        "ServerRoot {dir}\nServerName localhost\nPidFile {dir}/pid\nDefaultRuntimeDir {dir}\nErrorLog {dir}/log\n\
         LoadModule mpm_event_module {MODULES}/mod_mpm_event.so\n\
         LoadModule authz_core_module {MODULES}/mod_authz_core.so\n\
         Mutex file:{dir} default\n{user}Listen {ip}:{port}\nEnableSendfile On\nDocumentRoot {dir}/www\n\
         <Directory {dir}/www>\nRequire all granted\n</Directory>\n"
    )
}
