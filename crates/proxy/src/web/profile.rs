//! A new profile of a browser, in a folder that is removed.

use anyhow::{Context, Result};
use clap::ValueEnum;
use hikyaku_console::At;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// A browser.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Browser {
    /// Chromium, or Google Chrome.
    Chromium,
    /// Firefox.
    Firefox,
}

/// The folder of a profile.
pub(super) struct Profile {
    browser: Browser,
    proxy: SocketAddr,
    folder: PathBuf,
}

/// Attempts to remove the folder: processes of a browser that was ended still write into it for a moment.
const REMOVALS_MAX: u32 = 20;
const REMOVAL_PAUSE: Duration = Duration::from_millis(100);

impl Browser {
    /// Names of its program.
    pub(super) const fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Chromium => &["chromium", "chromium-browser", "google-chrome"],
            Self::Firefox => &["firefox", "firefox-esr"],
        }
    }
}

impl Profile {
    /// Makes a profile with this proxy, and with this folder for downloads if there is one.
    pub(super) fn new(
        browser: Browser,
        proxy: SocketAddr,
        downloads: Option<&Path>,
    ) -> Result<Self> {
        let name = format!("hikyaku-web-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let context = || format!("cannot make {}", folder.display());
        // Not if it is there already: somebody else may have made it.
        DirBuilder::new().mode(0o700).create(&folder).with_context(context)?;
        let profile = Self { browser, proxy, folder };
        let downloads = match downloads {
            Some(path) => Some(fs::canonicalize(path).with_context(|| path.display().to_string())?),
            None => None,
        };
        let (file, text) = match browser {
            Browser::Chromium => ("Default/Preferences", chromium(downloads.as_deref())),
            Browser::Firefox => ("user.js", firefox(proxy, downloads.as_deref())),
        };
        let file = profile.folder.join(file);
        let parent = file.parent().unwrap_or(&profile.folder);
        let written = fs::create_dir_all(parent).and_then(|()| fs::write(&file, text));
        written.at(file.display())?;
        Ok(profile)
    }

    /// The command that shows `url`.
    pub(super) fn command(&self, program: &Path, url: &str, is_headless: bool) -> Command {
        let mut command = Command::new(program);
        match self.browser {
            Browser::Chromium => {
                let mut folder = std::ffi::OsString::from("--user-data-dir=");
                folder.push(&self.folder);
                command.arg(folder).arg(format!("--proxy-server=http://{}", self.proxy));
                command.args(["--disable-http2", "--disable-quic"]);
                command.args(["--no-first-run", "--no-default-browser-check"]);
                if is_headless {
                    command.arg("--headless=new");
                }
                // Chromium's sandbox refuses to be set up by root.
                if geteuid().is_root() {
                    command.arg("--no-sandbox");
                }
            }
            Browser::Firefox => {
                command.arg("--profile").arg(&self.folder).args(["--new-instance"]);
                if is_headless {
                    command.arg("--headless");
                }
            }
        }
        // Whatever it begins with, it is no option.
        command.arg("--").arg(url);
        command
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        for _ in 0..REMOVALS_MAX {
            match fs::remove_dir_all(&self.folder) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => sleep(REMOVAL_PAUSE),
                _ => return,
            }
        }
    }
}

/// `Preferences` of Chromium: downloads are not asked about.
fn chromium(downloads: Option<&Path>) -> String {
    let folder = downloads.map_or_else(String::new, |path| {
        format!(",\"default_directory\":\"{}\"", quoted(&path.to_string_lossy()))
    });
    format!("{{\"download\":{{\"prompt_for_download\":false{folder}}}}}\n")
}

/// What a Firefox with a new profile asks of servers of its maker before the user has asked for anything: whether there is a
/// network, where it is, figures of its use, and messages. Lists that protect the user are still fetched.
const OFF: [&str; 7] = [
    "network.captive-portal-service.enabled",
    "network.connectivity-service.enabled",
    "browser.region.update.enabled",
    "datareporting.healthreport.uploadEnabled",
    "toolkit.telemetry.unified",
    "app.normandy.enabled",
    "dom.push.connection.enabled",
];

/// `user.js` of Firefox.
fn firefox(proxy: SocketAddr, downloads: Option<&Path>) -> String {
    let (host, port) = (proxy.ip(), proxy.port());
    let mut text = format!(
        "user_pref(\"network.proxy.type\", 1);\n\
         user_pref(\"network.proxy.http\", \"{host}\");\n\
         user_pref(\"network.proxy.http_port\", {port});\n\
         user_pref(\"network.proxy.ssl\", \"{host}\");\n\
         user_pref(\"network.proxy.ssl_port\", {port});\n\
         user_pref(\"network.http.http2.enabled\", false);\n\
         user_pref(\"network.http.http3.enable\", false);\n\
         user_pref(\"browser.download.useDownloadDir\", true);\n\
         user_pref(\"browser.shell.checkDefaultBrowser\", false);\n\
         user_pref(\"browser.aboutwelcome.enabled\", false);\n\
         user_pref(\"datareporting.policy.dataSubmissionEnabled\", false);\n"
    );
    for name in OFF {
        text.push_str(&format!("user_pref(\"{name}\", false);\n"));
    }
    if let Some(path) = downloads {
        let path = quoted(&path.to_string_lossy());
        text.push_str("user_pref(\"browser.download.folderList\", 2);\n");
        text.push_str(&format!("user_pref(\"browser.download.dir\", \"{path}\");\n"));
    }
    text
}

/// A text as JSON and JavaScript have it between quotes.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_names_the_proxy_and_the_folder_and_is_removed() {
        let proxy: SocketAddr = "127.0.0.1:3128".parse().unwrap();
        let profile = Profile::new(Browser::Firefox, proxy, Some(Path::new("/"))).unwrap();
        let folder = profile.folder.clone();
        let text = fs::read_to_string(folder.join("user.js")).unwrap();
        for wanted in [
            "(\"network.proxy.ssl\", \"127.0.0.1\")",
            "(\"network.proxy.ssl_port\", 3128)",
            "(\"network.http.http2.enabled\", false)",
            "(\"network.captive-portal-service.enabled\", false)",
            "(\"browser.download.dir\", \"/\")",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        let again = Profile::new(Browser::Chromium, proxy, None);
        assert!(again.is_err(), "a folder that is there is not taken");
        drop(profile);
        assert!(!folder.exists());
    }

    #[test]
    fn a_folder_with_quotes_stays_one_text() {
        let text = chromium(Some(Path::new("/a\"b\\c\nd")));
        let wanted = "{\"download\":{\"prompt_for_download\":false,\
                      \"default_directory\":\"/a\\\"b\\\\c\\u000ad\"}}\n";
        assert_eq!(text, wanted);
    }
}
