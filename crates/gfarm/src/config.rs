//! The settings that Gfarm's own programs use.
//!
//! They read the file that `GFARM_CONFIG_FILE` names, or `~/.gfarm2rc` without that variable, and then
//! `/etc/gfarm2.conf`. The first line that sets something counts (gfarm2.conf(5)). Of the many settings, this client needs
//! where gfmd is, where the shared key is, and the user's name at the servers; it ignores all others.

use crate::account::{Account, Dial, KeyError, SharedKey};
use nix::unistd::{Uid, User};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// gfmd's port, unless another is set.
const GFMD_PORT: u16 = 601;
/// The settings of the machine.
const MACHINE: &str = "/etc/gfarm2.conf";
/// Levels of files that include others: as in Gfarm.
const INCLUDES_MAX: usize = 20;

/// Host and port of a server.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address {
    /// A name or an address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl Address {
    /// Reads `HOST` or `HOST:PORT`, with gfmd's port 601 if there is none.
    // fuzz: gfarm
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']')?;
                match port.strip_prefix(':') {
                    None if !port.is_empty() => return None,
                    port => (host, port),
                }
            }
            None => match text.rsplit_once(':') {
                // An IPv6 address without brackets has no port.
                Some((host, port)) if !host.contains(':') => (host, Some(port)),
                _ => (text, None),
            },
        };
        let port = port.map_or(Some(GFMD_PORT), |port| port.parse().ok())?;
        // What is no part of a name would be read differently when the address is shown and read again.
        let in_a_name = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '[' | ']');
        (!host.is_empty() && host.chars().all(in_a_name))
            .then(|| Self { host: host.to_owned(), port })
    }
}

/// What is set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// Where gfmd is. With several, one is the master and the others refuse.
    pub metadata: Vec<Address>,
    /// The file of the shared key.
    pub key_file: PathBuf,
    /// The user's name at the servers.
    pub user: String,
    /// How the servers are dialled. Not in the files.
    pub dial: Dial,
}

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file that the user names cannot be read.
    #[error("{}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line has no meaning.
    #[error("{}, line {line}: {why}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The user of this process has no name.
    #[error("the user of this process has no name")]
    NoUser,
    /// No line says where gfmd is.
    #[error("no metadata server is set (metadb_server_host in {MACHINE} or ~/.gfarm2rc)")]
    NoServer,
}

/// The lines that count, as they were found.
#[derive(Debug, Default)]
struct Found {
    host: Option<String>,
    port: Option<u16>,
    list: Option<Vec<Address>>,
    key_file: Option<PathBuf>,
    user_maps: Vec<PathBuf>,
}

impl Config {
    /// What is set for the user of this process. `server` replaces the metadata server of the files.
    ///
    /// # Errors
    ///
    /// A file cannot be read or understood, or no metadata server is set.
    pub fn of_user(server: Option<Address>) -> Result<Self, ConfigError> {
        let account = User::from_uid(Uid::effective()).ok().flatten().ok_or(ConfigError::NoUser)?;
        let home = std::env::var_os("HOME").map_or(account.dir, PathBuf::from);
        let named = std::env::var_os("GFARM_CONFIG_FILE").map(PathBuf::from);
        let mut found = Found::default();
        match named {
            Some(path) => found.read(&path, 0)?,
            None => found.read_if_there(&home.join(".gfarm2rc"))?,
        }
        found.read_if_there(Path::new(MACHINE))?;
        found.finish(server, &home, &account.name)
    }

    /// The account: the user and the key in the key file.
    ///
    /// # Errors
    ///
    /// Those of [`SharedKey::read`].
    pub fn account(&self) -> Result<Account, KeyError> {
        let key = SharedKey::read(&self.key_file)?;
        Ok(Account { user: self.user.clone(), key, dial: self.dial })
    }
}

impl Found {
    fn read_if_there(&mut self, path: &Path) -> Result<(), ConfigError> {
        if path.exists() { self.read(path, 0) } else { Ok(()) }
    }

    fn read(&mut self, path: &Path, level: usize) -> Result<(), ConfigError> {
        let failed = |source| ConfigError::Read { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(failed)?;
        for (line, number) in text.lines().zip(1..) {
            let bad = |why| ConfigError::Line { path: path.to_owned(), line: number, why };
            let words = words(line).map_err(bad)?;
            let Some((key, values)) = words.split_first() else { continue };
            if key == "include" {
                let file = values.first().ok_or_else(|| bad("a file is missing"))?;
                if level >= INCLUDES_MAX {
                    return Err(bad("too many files include each other"));
                }
                self.read(Path::new(file), level + 1)?;
                continue;
            }
            self.set(key, values).map_err(bad)?;
        }
        Ok(())
    }

    /// Takes what a line sets, unless it was set before.
    fn set(&mut self, key: &str, values: &[String]) -> Result<(), &'static str> {
        let value = || values.first().ok_or("a value is missing");
        match key {
            "metadb_server_host" if self.host.is_none() => self.host = Some(value()?.clone()),
            "metadb_server_port" if self.port.is_none() => {
                self.port = Some(value()?.parse().map_err(|_| "not a port")?);
            }
            "metadb_server_list" if self.list.is_none() => {
                let list = values.iter().map(|value| Address::parse(value));
                self.list = Some(list.collect::<Option<_>>().ok_or("HOST:PORT is expected")?);
            }
            "shared_key_file" if self.key_file.is_none() => {
                self.key_file = Some(PathBuf::from(value()?));
            }
            "local_user_map" => self.user_maps.push(PathBuf::from(value()?)),
            _ => {}
        }
        Ok(())
    }

    fn finish(
        self,
        server: Option<Address>,
        home: &Path,
        local: &str,
    ) -> Result<Config, ConfigError> {
        let port = self.port.unwrap_or(GFMD_PORT);
        let host = self.host.map(|host| Address { host, port });
        let metadata = match server {
            Some(server) => vec![server],
            None => self.list.unwrap_or_else(|| host.into_iter().collect()),
        };
        if metadata.is_empty() {
            return Err(ConfigError::NoServer);
        }
        let mut user = local.to_owned();
        for path in &self.user_maps {
            let failed = |source| ConfigError::Read { path: path.clone(), source };
            let text = std::fs::read_to_string(path).map_err(failed)?;
            if let Some(global) = global_name(&text, local) {
                user = global;
                break;
            }
        }
        let key_file = self.key_file.unwrap_or_else(|| home.join(".gfarm_shared_key"));
        Ok(Config { metadata, key_file, user, dial: Dial::default() })
    }
}

/// The name at the servers of a local user. A line of a map is the global name, then the local one.
fn global_name(map: &str, local: &str) -> Option<String> {
    map.lines().find_map(|line| {
        let words = words(line).ok()?;
        let [global, here] = words.as_slice() else { return None };
        (here == local).then(|| global.clone())
    })
}

/// The words of a line. Quotes and backslashes are as in a shell, and `#` between words begins a comment.
fn words(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some('"') | None, '\\') => {
                let next = letters.next().ok_or("a backslash at the end")?;
                let word = word.get_or_insert_default();
                // Within double quotes only the quote and the backslash lose their meaning.
                if quote.is_some() && !matches!(next, '"' | '\\') {
                    word.push('\\');
                }
                word.push(next);
            }
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#') => break,
            (None, _) if letter.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed");
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests;
