//! Logins in `~/.netrc`, as ftp(1) and curl read them.

use crate::secrets::{SecretsError, read_secrets};
use crate::url::Login;
use std::path::Path;

/// The logins of a file. The default has none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Netrc(Vec<Entry>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Entry {
    /// `None`: for all other machines (`default`).
    machine: Option<String>,
    login: Login,
}

impl Netrc {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, is larger than 4 MiB, or other users may read it.
    pub fn read(path: &Path) -> Result<Self, SecretsError> {
        Ok(Self::parse(&String::from_utf8_lossy(&read_secrets(path)?)))
    }

    // fuzz: none, the user's own file
    fn parse(text: &str) -> Self {
        let mut entries: Vec<Entry> = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let mut words = line.split_whitespace();
            while let Some(word) = words.next() {
                let empty = || Login { user: String::new(), password: String::new() };
                match word {
                    "machine" => {
                        let machine = words.next().map(str::to_ascii_lowercase);
                        let machine = machine.unwrap_or_default();
                        entries.push(Entry { machine: Some(machine), login: empty() });
                    }
                    "default" => entries.push(Entry { machine: None, login: empty() }),
                    "login" | "password" => {
                        let value = words.next().unwrap_or_default().to_owned();
                        match (entries.last_mut(), word) {
                            (Some(entry), "login") => entry.login.user = value,
                            (Some(entry), _) => entry.login.password = value,
                            (None, _) => {}
                        }
                    }
                    "account" => drop(words.next()),
                    // A macro ends with an empty line.
                    "macdef" => {
                        lines.by_ref().find(|line| line.trim().is_empty());
                        break;
                    }
                    _ if word.starts_with('#') => break,
                    _ => {}
                }
            }
        }
        Self(entries)
    }

    /// The login for a host that the user named.
    pub fn login(&self, host: &str) -> Option<Login> {
        let is_for = |entry: &&Entry| entry.machine.as_ref().is_none_or(|machine| machine == host);
        self.0.iter().find(is_for).map(|entry| entry.login.clone())
    }

    /// The login for a host that another server or a Metalink file named: `default` does not count.
    pub fn login_of_machine(&self, host: &str) -> Option<Login> {
        let is_for = |entry: &&Entry| entry.machine.as_deref() == Some(host);
        self.0.iter().find(is_for).map(|entry| entry.login.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entry_for_a_host_counts() {
        let netrc = Netrc::parse(
            "# a comment\nmachine A.org login me password x\nmacdef init\n machine b.org login no\n\n\
             machine b.org\n  login you\n  account z password y\ndefault login anonymous password a@b\n",
        );
        let login = |host| netrc.login(host).map(|login| (login.user, login.password)).unwrap();
        assert_eq!(login("a.org"), ("me".to_owned(), "x".to_owned()));
        assert_eq!(login("b.org"), ("you".to_owned(), "y".to_owned()));
        assert_eq!(login("c.org").0, "anonymous");
        assert!(netrc.login_of_machine("b.org").is_some());
        assert_eq!(netrc.login_of_machine("c.org"), None, "not the default");
    }
}
