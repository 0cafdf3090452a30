//! What the user's own configuration makes of a host: asked of ssh itself (`ssh -G`), which knows its
//! aliases, patterns and conditions.

use std::ffi::OsString;
use std::net::{IpAddr, ToSocketAddrs};
use std::process::{Command, Stdio};

/// What concerns us of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Configuration {
    text: String,
}

/// What the user's configuration may say of a connection and a session cannot have, and what is said in its
/// place. An ssh that does not know an option does not name it either.
const OVERRULED: [(&str, &str, &str); 3] = [
    ("sessiontype", "default", "-oSessionType=default"),
    ("stdinnull", "no", "-oStdinNull=no"),
    ("forkafterauthentication", "no", "-oForkAfterAuthentication=no"),
];

impl Configuration {
    /// Asks for what `words` connect to; the last of them is the command there. Where the program does
    /// not answer, nothing is known.
    pub(crate) fn ask(words: &[OsString]) -> Self {
        Self::try_ask(words).unwrap_or_default()
    }

    fn try_ask(words: &[OsString]) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        let arguments = &arguments[..arguments.len().checked_sub(1)?];
        let output = Command::new(program)
            .arg("-G")
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        Some(Self { text: String::from_utf8_lossy(&output.stdout).into_owned() })
    }

    fn value(&self, key: &str) -> Option<&str> {
        let lines = self.text.lines().filter_map(|line| line.split_once(' '));
        lines.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// Where the host's name leads.
    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        let Some(name) = self.value("hostname") else { return Vec::new() };
        let found = (name, 0).to_socket_addrs().into_iter().flatten();
        found.map(|address| address.ip()).collect()
    }

    /// Options that must come before the user's own.
    pub(crate) fn overruling(&self) -> Vec<OsString> {
        let unfit = OVERRULED.iter().filter(|(key, wanted, _)| {
            self.value(key).is_some_and(|value| !value.eq_ignore_ascii_case(wanted))
        });
        unfit.map(|(_, _, option)| OsString::from(option)).collect()
    }

    /// Whether our ssh may be the one by whose connection other sessions go (ControlMaster).
    pub(crate) fn may_be_shared(&self) -> bool {
        let is_master = self.value("controlmaster").is_some_and(|value| value != "false");
        is_master && self.value("controlpath").is_some_and(|path| path != "none")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Configuration {
        Configuration { text: text.to_owned() }
    }

    #[test]
    fn what_a_session_cannot_have_is_overruled() {
        assert!(of("").overruling().is_empty());
        assert!(of("sessiontype default\nstdinnull no\n").overruling().is_empty());
        let all = of("sessiontype none\nstdinnull yes\nforkafterauthentication yes\n").overruling();
        assert_eq!(all.len(), 3);
        assert_eq!(of("sessiontype subsystem\n").overruling(), ["-oSessionType=default"]);
    }

    #[test]
    fn a_shared_connection_is_known() {
        assert!(!of("controlmaster false\ncontrolpath /x\n").may_be_shared());
        assert!(!of("controlmaster auto\n").may_be_shared());
        assert!(of("controlmaster auto\ncontrolpath /run/cm\n").may_be_shared());
    }

    #[test]
    fn addresses_are_those_of_the_configured_name() {
        assert_eq!(
            of("hostname 192.0.2.7\n").addresses(),
            ["192.0.2.7".parse::<IpAddr>().unwrap()]
        );
        assert!(of("hostname no.such.name.invalid\n").addresses().is_empty());
    }
}
