//! The gateways that links may use: a list of the user, a line each, in the state folder. What a link says is only compared
//! with it, so a page can neither bring a gateway of its own nor an option for ssh.

use super::{Context, Error, FarArgs, Result, TransportArgs, far_end};
use hikyaku_console::{At, Folder, with_remedy};
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

/// The list.
pub(super) struct Gateways {
    path: PathBuf,
    /// As the user gave them.
    all: Vec<String>,
}

/// The file, in the state folder.
const FILE: &str = "web_gateways";

impl Gateways {
    /// The list of this user. It is empty before the handler was installed.
    ///
    /// # Errors
    ///
    /// There is no state folder, or the file cannot be read.
    pub(super) fn of_user() -> Result<Self> {
        let path = Folder::State.of_user()?.join(FILE);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text.at(path.display())?,
        };
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Ok(Self { path, all: lines.map(str::to_owned).collect() })
    }

    /// The gateway that a link means: what the user calls it, or its host. Without a name the first one.
    ///
    /// # Errors
    ///
    /// The user knows no such gateway.
    pub(super) fn find(&self, wanted: Option<&str>) -> Result<&str> {
        let is_wanted = |known: &&String| {
            let host = || {
                far_end(OsStr::new(known), (&FarArgs::default(), &TransportArgs::default()))
                    .ok()
                    .map(|far| far.host().to_owned())
            };
            wanted.is_none_or(|wanted| {
                *known == wanted || host().is_some_and(|host| host.eq_ignore_ascii_case(wanted))
            })
        };
        if let Some(known) = self.all.iter().find(is_wanted) {
            return Ok(known);
        }
        let text = match wanted {
            // It is visible ASCII.
            Some(wanted) => {
                format!("the link wants the gateway '{wanted}', which you have not named")
            }
            None => "no gateway is known for links".to_owned(),
        };
        let remedy =
            "try: hikyaku web HOST --install-handler, if you trust this HOST with your downloads";
        Err(with_remedy(refusal(text), Some(remedy)))
    }

    /// Adds a gateway, unless it is there.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(super) fn add(&mut self, gateway: &str) -> Result<()> {
        if self.all.iter().any(|known| known == gateway) {
            return Ok(());
        }
        let context = || self.path.display().to_string();
        let folder = self.path.parent().unwrap_or(&self.path);
        DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(context)?;
        let open = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path);
        open.and_then(|mut file| file.write_all(format!("{gateway}\n").as_bytes()))
            .with_context(context)?;
        self.all.push(gateway.to_owned());
        Ok(())
    }

    /// Forgets all of them.
    ///
    /// # Errors
    ///
    /// The file cannot be removed.
    pub(super) fn forget(self) -> Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::from(error).context(format!("cannot remove {}", self.path.display())))
            }
            _ => Ok(()),
        }
    }
}

/// An error that another attempt does not change, and no other user either.
pub(super) fn refusal(text: String) -> Error {
    io::Error::new(ErrorKind::InvalidInput, text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_uses_gateways_that_the_user_has_named_and_no_others() {
        let all = ["me@Far", "hikyaku://daemon:5300", "ssh://you@other:2222"].map(str::to_owned);
        let known = Gateways { path: PathBuf::new(), all: all.to_vec() };
        for (wanted, found) in [
            (None, Some("me@Far")),
            (Some("me@Far"), Some("me@Far")),
            (Some("far"), Some("me@Far")),
            (Some("other"), Some("ssh://you@other:2222")),
            (Some("hikyaku://daemon:5300"), Some("hikyaku://daemon:5300")),
            (Some("daemon"), Some("hikyaku://daemon:5300")),
            (Some("root@far"), None),
            (Some("hikyaku://daemon:5301"), None),
            (Some("far.evil.example"), None),
            (Some("-oProxyCommand=x"), None),
        ] {
            assert_eq!(known.find(wanted).ok(), found, "{wanted:?}");
        }
        let nothing = Gateways { path: PathBuf::new(), all: Vec::new() };
        assert!(nothing.find(None).is_err());
    }
}
