//! What users have set once for all commands: `$XDG_CONFIG_HOME/hikyaku/config.toml`.
//!
//! ```toml
//! [default]
//! window = "256MB"
//!
//! [host."*.example.org"]
//! rate = "800m"
//! udp-ports = "50000-50100"
//!
//! [cluster.store]
//! hosts = ["s[01-13].example.org"]
//! ```
//!
//! The section `default` counts for all hosts. A section `host` counts for the hosts that its pattern matches, as they are
//! written on the command line. If several sections have a value, that of the longest pattern wins. A flag of the
//! command line wins over the file ([`Settings::resolve`]).
//!
//! Which settings there are is told by the commands ([`Keys`]). Every value of the file is checked when it is read.

mod cluster;
mod hosts;
mod key;
mod show;
#[cfg(test)]
mod tests;

pub use cluster::Cluster;
pub use key::{Key, Keys};
pub use show::{ConfigArgs, config};

use crate::folders::Folder;
use globset::{GlobBuilder, GlobMatcher};
use key::Setting;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use toml::{Table, Value};

/// Everything that the file says.
#[derive(Debug, Default)]
pub struct Settings {
    /// The longest pattern first.
    sections: Vec<Section>,
    clusters: BTreeMap<String, Cluster>,
}

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file exists and cannot be read.
    #[error("{}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file has a mistake.
    #[error("{}: {mistake}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What it is. It is part of the message.
        mistake: Mistake,
    },
}

/// What is wrong with the text of a settings file.
#[derive(Debug, thiserror::Error)]
pub enum Mistake {
    /// It is not TOML.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// There are no such sections.
    #[error("'{0}': there are the sections [default], [host.\"NAME\"] and [cluster.NAME] only")]
    Section(String),
    /// A value stands where a section must be.
    #[error("'{0}' is no section")]
    NoSection(String),
    /// The pattern of a section is none.
    #[error("'{0}' is not a pattern")]
    Pattern(String),
    /// A section has a setting that no command knows.
    #[error("[{section}] {name}: there is no such setting; there are {known}")]
    Unknown {
        /// The section, as it is written.
        section: String,
        /// The setting.
        name: String,
        /// All settings that such a section may have.
        known: String,
    },
    /// A value is not one of those that the setting may have.
    #[error("[{section}] {name}{}: {why}", .value.as_ref().map(|v| format!(" = {v:?}")).unwrap_or_default())]
    Value {
        /// The section, as it is written.
        section: String,
        /// The setting.
        name: String,
        /// The value, if it is a text, a number or a truth value.
        value: Option<String>,
        /// What is wrong with it.
        why: String,
    },
}

#[derive(Debug)]
struct Section {
    /// As in the file.
    title: String,
    /// The hosts that it counts for; all, if there is none.
    hosts: Option<GlobMatcher>,
    values: BTreeMap<&'static str, String>,
}

impl Settings {
    /// The settings of the user who runs this process; none, if there is no file. `keys` are all settings that the
    /// program has, because the file is that of all commands.
    ///
    /// # Errors
    /// The file cannot be read, or has a mistake.
    pub fn of_user(keys: &Keys) -> Result<Self, SettingsError> {
        let Some(path) = path() else { return Ok(Self::default()) };
        match fs::read_to_string(&path) {
            Ok(text) => {
                Self::parse(&text, keys).map_err(|mistake| SettingsError::Invalid { path, mistake })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(SettingsError::Read { path, source }),
        }
    }

    /// The section `[cluster.NAME]` of the user's settings, if there is one. Nothing else of the file is read, so that a
    /// library need not know the settings of all commands.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or the section has a mistake.
    pub fn cluster_of_user(name: &str) -> Result<Option<Cluster>, SettingsError> {
        let Some(path) = path() else { return Ok(None) };
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(SettingsError::Read { path, source }),
        };
        let cluster = || -> Result<Option<Cluster>, Mistake> {
            let mut file: Table = text.parse()?;
            let mut sections = subsections(&mut file, "cluster")?.into_iter();
            let found = sections.find(|(other, _)| other == name);
            found.map(|(name, values)| Cluster::parse(&name, values)).transpose()
        };
        cluster().map_err(|mistake| SettingsError::Invalid { path, mistake })
    }

    /// The settings in the text of a file.
    ///
    /// # Errors
    /// The text has a mistake; the first one is told.
    // fuzz: none, the user's own file
    pub fn parse(text: &str, keys: &Keys) -> Result<Self, Mistake> {
        let mut file: Table = text.parse()?;
        let mut sections = Vec::new();
        for (pattern, values) in subsections(&mut file, "host")? {
            let title = format!("host.\"{pattern}\"");
            sections.push((pattern.len(), section(title, values, Some(compile(&pattern)?), keys)?));
        }
        sections.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
        let mut sections: Vec<Section> = sections.into_iter().map(|(_, section)| section).collect();
        if let Some(values) = file.remove("default") {
            sections.push(section("default".to_owned(), values, None, keys)?);
        }
        let mut clusters = BTreeMap::new();
        for (name, values) in subsections(&mut file, "cluster")? {
            let cluster = Cluster::parse(&name, values)?;
            clusters.insert(name, cluster);
        }
        match file.keys().next() {
            Some(key) => Err(Mistake::Section(key.clone())),
            None => Ok(Self { sections, clusters }),
        }
    }

    /// What is set for a host, and the section that says it.
    fn find(&self, name: &str, host: &str) -> Option<(&str, &Section)> {
        let sections = self.sections.iter().filter(|section| section.is_for(host));
        let mut found = sections.filter_map(|section| Some((section.values.get(name)?, section)));
        found.next().map(|(value, section)| (value.as_str(), section))
    }

    /// What is set for a host.
    ///
    /// # Errors
    /// The value cannot be read, which happens only if `key` was not among the keys when the file was read.
    pub fn get<T>(&self, key: &Key<T>, host: &str) -> Result<Option<T>, Mistake> {
        let Some((text, section)) = self.find(key.name, host) else { return Ok(None) };
        let read = (key.read)(text);
        read.map(Some).map_err(|why| Mistake::value(&section.title, key.name, Some(text), why))
    }

    /// What the user wants for a host: the flag of the command line, or else what is set.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn resolve<T>(
        &self,
        flag: Option<T>,
        key: &Key<T>,
        host: &str,
    ) -> Result<Option<T>, Mistake> {
        flag.map_or_else(|| self.get(key, host), |flag| Ok(Some(flag)))
    }

    /// The cluster of this name, if the file has one.
    pub fn cluster(&self, name: &str) -> Option<&Cluster> {
        self.clusters.get(name)
    }
}

impl Section {
    fn is_for(&self, host: &str) -> bool {
        self.hosts.as_ref().is_none_or(|hosts| hosts.is_match(host))
    }
}

impl Mistake {
    fn value(section: &str, name: &str, value: Option<&str>, why: impl Into<String>) -> Self {
        Self::Value {
            section: section.to_owned(),
            name: name.to_owned(),
            value: value.map(str::to_owned),
            why: why.into(),
        }
    }
}

/// Takes the sections of a kind, such as those whose titles begin with `host.`, out of a file.
fn subsections(file: &mut Table, kind: &str) -> Result<Vec<(String, Value)>, Mistake> {
    match file.remove(kind) {
        Some(Value::Table(sections)) => Ok(sections.into_iter().collect()),
        Some(_) => Err(Mistake::NoSection(kind.to_owned())),
        None => Ok(Vec::new()),
    }
}

/// `*` and `?` match no slash, `**` does.
fn compile(pattern: &str) -> Result<GlobMatcher, Mistake> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build();
    Ok(glob.map_err(|_| Mistake::Pattern(pattern.to_owned()))?.compile_matcher())
}

fn section(
    title: String,
    values: Value,
    hosts: Option<GlobMatcher>,
    keys: &Keys,
) -> Result<Section, Mistake> {
    let Value::Table(table) = values else { return Err(Mistake::NoSection(title)) };
    let mut values = BTreeMap::new();
    for (name, value) in table {
        let Some(setting) = keys.find(&name) else {
            let known = keys.names().collect::<Vec<_>>().join(", ");
            return Err(Mistake::Unknown { section: title, name, known });
        };
        let text = text(&title, setting, &value)?;
        values.insert(setting.name, text);
    }
    Ok(Section { title, hosts, values })
}

/// A value as it is written, checked.
fn text(title: &str, setting: &Setting, value: &Value) -> Result<String, Mistake> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Boolean(yes) => yes.to_string(),
        _ => {
            let why = "must be a text, a number, true or false";
            return Err(Mistake::value(title, setting.name, None, why));
        }
    };
    match (setting.check)(&text) {
        Ok(()) => Ok(text),
        Err(why) => Err(Mistake::value(title, setting.name, Some(&text), why)),
    }
}

/// Where the file is, if the user has a directory for it.
fn path() -> Option<PathBuf> {
    Some(Folder::Config.of_user().ok()?.join("config.toml"))
}
