//! The options behind `-o`, as mount(8) and mount.fuse(8) have them.

use crate::core::Access;
use anyhow::Result;
use fuser::{MountOption, SessionACL};
use hikyaku_console::misuse;

/// The parsed mount options.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Options {
    /// For the kernel.
    pub(crate) kernel: Vec<MountOption>,
    /// The users that may use the mount besides the mounting one.
    pub(crate) access: SessionACL,
    /// Files have the owners that they have at the server, in place of the user who mounts.
    pub(crate) owners: Owners,
    /// Whether the user has asked for reading only, or for writing.
    pub(crate) wish: Option<Access>,
    /// The user's choice of the kernel's permission checks.
    checks: Option<Checks>,
}

/// Whether the kernel compares the mode of a file with the user who uses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Checks {
    Made,
    /// All users of the mount have the rights of the mounting user.
    Omitted,
}

/// Whose files they seem to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Owners {
    /// The user who mounts.
    #[default]
    User,
    /// The numbers of the server.
    Server,
}

const KNOWN: &str = "ro, rw, allow_other, allow_root, default_permissions, no_default_permissions, idmap=user, \
     idmap=none, fsname=, subtype=, exec, noexec, atime, noatime, and those that only fstab(5) needs";

impl Options {
    /// Reads the options.
    pub(crate) fn parse(texts: &[String]) -> Result<Self> {
        let mut options = Self::default();
        for text in texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty()) {
            match text.split_once('=') {
                Some(("fsname", name)) => {
                    options.kernel.push(MountOption::FSName(name.to_owned()));
                }
                Some(("subtype", name)) => {
                    options.kernel.push(MountOption::Subtype(name.to_owned()));
                }
                Some(("idmap", "none")) => options.owners = Owners::Server,
                Some(("idmap", "user")) => options.owners = Owners::User,
                _ => options.word(text)?,
            }
        }
        // The daemon knows the key of the mounting user, and cannot distinguish users of this machine.
        let by_default = match options.access {
            SessionACL::Owner => Checks::Omitted,
            SessionACL::All | SessionACL::RootAndOwner => Checks::Made,
        };
        if options.checks.unwrap_or(by_default) == Checks::Made {
            options.kernel.push(MountOption::DefaultPermissions);
        }
        Ok(options)
    }

    /// Whether the kernel checks rights.
    pub(crate) fn checks(&self) -> Checks {
        match self.kernel.contains(&MountOption::DefaultPermissions) {
            true => Checks::Made,
            false => Checks::Omitted,
        }
    }

    /// Whether programs may write, where the server allows this much.
    pub(crate) fn access_of(&self, allowed: Access) -> Result<Access> {
        match (self.wish, allowed) {
            (Some(Access::Write), Access::Read) => {
                let text = "-o rw: the server lets its clients read only";
                Err(misuse(text, "hikyaku serve --writable, at the server"))
            }
            (Some(Access::Read), _) => Ok(Access::Read),
            (_, allowed) => Ok(allowed),
        }
    }

    fn word(&mut self, text: &str) -> Result<()> {
        match text {
            "allow_other" => self.access = SessionACL::All,
            "allow_root" => self.access = SessionACL::RootAndOwner,
            "default_permissions" => self.checks = Some(Checks::Made),
            "no_default_permissions" => self.checks = Some(Checks::Omitted),
            "exec" => self.kernel.push(MountOption::Exec),
            "noexec" => self.kernel.push(MountOption::NoExec),
            "atime" => self.kernel.push(MountOption::Atime),
            "noatime" => self.kernel.push(MountOption::NoAtime),
            // They hold anyway, or concern other programs than this one.
            "ro" => self.wish = Some(Access::Read),
            "rw" => self.wish = Some(Access::Write),
            "nosuid" | "nodev" | "defaults" | "auto" | "noauto" | "user" | "nouser" | "users"
            | "nofail" | "_netdev" => {}
            "suid" | "dev" => {
                return Err(misuse(
                    format!("-o {text}: a mount is nosuid and nodev"),
                    "without it",
                ));
            }
            _ => {
                let text = format!("-o {text}: there is no such option");
                return Err(misuse(text, format_args!("one of {KNOWN}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(texts: &[&str]) -> Result<Options> {
        Options::parse(&texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_usual_options_are_understood() {
        let options = parse(&["ro", "_netdev", "allow_other", "default_permissions"]).unwrap();
        assert_eq!(options.access, SessionACL::All);
        assert_eq!(options.kernel, [MountOption::DefaultPermissions]);
        assert_eq!(options.owners, Owners::User);
        assert_eq!(parse(&["idmap=none", ""]).unwrap().owners, Owners::Server);
    }

    #[test]
    fn other_users_are_checked_by_the_kernel_unless_the_user_says_otherwise() {
        let cases: [(&[&str], bool); 8] = [
            (&[], false),
            (&["default_permissions"], true),
            (&["allow_other"], true),
            (&["allow_root"], true),
            (&["allow_other", "idmap=none"], true),
            (&["allow_other", "default_permissions"], true),
            (&["allow_other", "no_default_permissions"], false),
            (&["no_default_permissions", "allow_root"], false),
        ];
        for (texts, is_checked) in cases {
            let kernel = parse(texts).unwrap().kernel;
            let count = kernel.iter().filter(|o| **o == MountOption::DefaultPermissions).count();
            assert_eq!(count, usize::from(is_checked), "{texts:?}");
        }
    }

    #[test]
    fn writing_needs_the_server_and_the_user() {
        let access = |texts: &[&str], allowed| parse(texts).unwrap().access_of(allowed).ok();
        assert_eq!(access(&[], Access::Write), Some(Access::Write));
        assert_eq!(access(&[], Access::Read), Some(Access::Read));
        assert_eq!(access(&["ro"], Access::Write), Some(Access::Read));
        assert_eq!(access(&["rw"], Access::Read), None);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in ["sync", "idmap=x", "allow_others", "suid"] {
            let error = parse(&[text]).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
