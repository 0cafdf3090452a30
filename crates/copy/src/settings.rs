//! What users have set once for all: `$XDG_CONFIG_HOME/hikyaku/config.toml`.
//!
//! ```toml
//! [default]
//! window = "256MB"
//!
//! [host."*.example.org"]
//! rate = "800m"
//! udp-ports = "50000-50100"
//! ```
//!
//! A section counts for the hosts that its pattern matches, as they are written on the command line;
//! of several that have a value the longest pattern's wins. A flag comes before all of them.

mod keys;
mod show;

pub use show::{ConfigArgs, config};

use crate::patterns::compile;
use anyhow::{Context, Result, bail};
use globset::GlobMatcher;
use hikyaku_console::Folder;
use keys::{KEYS, Key};
pub(crate) use keys::{size, yes};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use toml::{Table, Value};

/// Everything that the file says.
#[derive(Default)]
pub(crate) struct Settings {
    /// The most particular first.
    sections: Vec<Section>,
}

struct Section {
    /// As in the file.
    title: String,
    /// Which hosts; all, if there is none.
    hosts: Option<GlobMatcher>,
    values: BTreeMap<&'static str, String>,
}

impl Settings {
    /// Those of the user who runs this.
    pub(crate) fn of_user() -> Result<Self> {
        let Some(path) = path() else { return Ok(Self::default()) };
        match fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text).map_err(|error| {
                // It fails again until the file is mended: the kind decides the exit code.
                let text = format!("{}: {error:#}", path.display());
                std::io::Error::new(ErrorKind::InvalidInput, text).into()
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    // fuzz: none, the user's own file
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut file: Table = text.parse()?;
        let mut sections = Vec::new();
        if let Some(hosts) = file.remove("host") {
            let Value::Table(hosts) = hosts else { bail!("'host' is no section: [host.\"NAME\"]") };
            for (pattern, values) in hosts {
                let hosts = compile(&pattern)?;
                sections.push((
                    pattern.len(),
                    section(format!("host.\"{pattern}\""), values, Some(hosts))?,
                ));
            }
        }
        sections.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
        let mut sections: Vec<Section> = sections.into_iter().map(|(_, section)| section).collect();
        if let Some(values) = file.remove("default") {
            sections.push(section("default".to_owned(), values, None)?);
        }
        match file.keys().next() {
            Some(key) => {
                bail!("'{key}': there are the sections [default] and [host.\"NAME\"] only")
            }
            None => Ok(Self { sections }),
        }
    }

    /// What is set for a host, and the section that says it.
    fn find(&self, key: &str, host: &str) -> Option<(&str, &str)> {
        let sections = self.sections.iter().filter(|section| section.is_for(host));
        let mut found = sections.filter_map(|section| Some((section.values.get(key)?, section)));
        found.next().map(|(value, section)| (value.as_str(), section.title.as_str()))
    }

    /// What is set for a host, as it is written.
    pub(crate) fn text(&self, key: &str, host: &str) -> Option<String> {
        self.find(key, host).map(|(text, _)| text.to_owned())
    }

    /// What is set for a host, read by `read`.
    pub(crate) fn get<T, E>(
        &self,
        key: &str,
        host: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        self.find(key, host).map(|(text, _)| read(text)).transpose()
    }
}

impl Section {
    fn is_for(&self, host: &str) -> bool {
        self.hosts.as_ref().is_none_or(|hosts| hosts.is_match(host))
    }
}

fn section(title: String, values: Value, hosts: Option<GlobMatcher>) -> Result<Section> {
    let Value::Table(table) = values else { bail!("'{title}' is no section") };
    let mut values = BTreeMap::new();
    for (name, value) in table {
        let Some(key) = KEYS.iter().find(|key| key.name == name) else {
            let names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
            bail!("[{title}] {name}: there is no such setting; there are {}", names.join(", "));
        };
        let text = text(&value).with_context(|| format!("[{title}] {name}"))?;
        check(key, &text).with_context(|| format!("[{title}] {name} = {text:?}"))?;
        values.insert(key.name, text);
    }
    Ok(Section { title, hosts, values })
}

fn text(value: &Value) -> Result<String> {
    Ok(match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Boolean(yes) => yes.to_string(),
        _ => bail!("must be a text, a number, true or false"),
    })
}

// fuzz: none, the user's own words
fn check(key: &Key, text: &str) -> Result<()> {
    (key.check)(text).map_err(anyhow::Error::msg)
}

/// Where the file is, if there is one.
fn path() -> Option<PathBuf> {
    Some(Folder::Config.of_user().ok()?.join("config.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_particular_section_wins() {
        let settings = Settings::parse(
            "[default]\nrate = \"100m\"\nwindow = 64000000\nudp = true\n\
             [host.\"*.example.org\"]\nrate = \"200m\"\npolicy = \"fixed:150m\"\n\
             [host.\"fast.example.org\"]\nrate = \"1g\"\n",
        )
        .unwrap();
        let rate = |host| settings.find("rate", host).unwrap();
        assert_eq!(rate("fast.example.org"), ("1g", "host.\"fast.example.org\""));
        assert_eq!(rate("slow.example.org"), ("200m", "host.\"*.example.org\""));
        assert_eq!(rate("elsewhere"), ("100m", "default"));
        assert_eq!(settings.find("policy", "fast.example.org").unwrap().0, "fixed:150m");
        assert_eq!(settings.find("window", "x").unwrap().0, "64000000");
        assert_eq!(settings.find("cipher", "x"), None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            ("rate = \"1g\"", "rate"),
            ("[default]\nrat = \"1g\"", "udp-ports"),
            ("[host.x]\nrate = \"fast\"", "[host.\"x\"] rate = \"fast\""),
            ("[default]\nudp-ports = \"9-1\"", "smaller first"),
            ("[default]\ncipher = \"rot13\"", "rot13"),
            ("[default]\npolicy = \"greedy\"", "fixed:RATE"),
            ("[default]\nrate = [1]", "a text, a number"),
            ("[default]\nremote-path = \"a b\"", "letters"),
            ("[default", "1"),
        ];
        for (text, wanted) in cases {
            let Err(error) = Settings::parse(text) else { panic!("{text}") };
            assert!(format!("{error:#}").contains(wanted), "{text}: {error:#}");
        }
    }
}
