//! Sections `[cluster.NAME]`: several servers under one name.

use super::Mistake;
use super::hosts::{HOSTS_MAX, expand};
use hikyaku_crypto::Fingerprint;
use std::num::NonZeroU16;
use toml::{Table, Value};

/// Servers that are used together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cluster {
    /// The servers, each once, in the order of the file. There is at least one.
    pub hosts: Vec<String>,
    /// The keys of the servers: each server must have one of them. If there are none, the key that a server has on first
    /// use is remembered.
    pub keys: Vec<Fingerprint>,
    /// The port of all servers, over UDP and TCP; by default that of `hikyaku serve`.
    pub port: Option<NonZeroU16>,
}

/// The settings that such a section may have.
const NAMES: &str = "hosts, keys, port";

impl Cluster {
    /// Reads the section of the cluster `name`.
    pub(super) fn parse(name: &str, values: Value) -> Result<Self, Mistake> {
        let section = format!("cluster.{name}");
        if !is_name(name) {
            let why = "the name of a cluster has letters, digits, '.', '-' and '_' only";
            return Err(Mistake::value(&section, "NAME", Some(name), why));
        }
        let Value::Table(mut table) = values else { return Err(Mistake::NoSection(section)) };
        let hosts = hosts(&section, table.remove("hosts"))?;
        let keys = keys(&section, table.remove("keys"))?;
        let port = port(&section, table.remove("port"))?;
        reject_others(&section, &table)?;
        Ok(Self { hosts, keys, port })
    }
}

fn hosts(section: &str, value: Option<Value>) -> Result<Vec<String>, Mistake> {
    let mut hosts: Vec<String> = Vec::new();
    for text in texts(section, "hosts", value)? {
        let mistake = |why: String| Mistake::value(section, "hosts", Some(&text), why);
        for host in expand(&text).map_err(|error| mistake(error.to_string()))? {
            if hosts.contains(&host) {
                return Err(mistake(format!("{host} is named twice")));
            }
            hosts.push(host);
        }
        if hosts.len() > HOSTS_MAX {
            return Err(mistake(format!("these are more than {HOSTS_MAX} hosts")));
        }
    }
    if hosts.is_empty() {
        let why = "must name the servers, such as [\"s[01-13].example.org\"]";
        return Err(Mistake::value(section, "hosts", None, why));
    }
    Ok(hosts)
}

fn keys(section: &str, value: Option<Value>) -> Result<Vec<Fingerprint>, Mistake> {
    let key = |text: String| {
        text.parse::<Fingerprint>()
            .map_err(|error| Mistake::value(section, "keys", Some(&text), error.to_string()))
    };
    texts(section, "keys", value)?.into_iter().map(key).collect()
}

fn port(section: &str, value: Option<Value>) -> Result<Option<NonZeroU16>, Mistake> {
    let Some(value) = value else { return Ok(None) };
    let number = value.as_integer().and_then(|number| u16::try_from(number).ok());
    let port = number.and_then(NonZeroU16::new);
    let mistake = || Mistake::value(section, "port", None, "must be a number from 1 to 65535");
    port.map(Some).ok_or_else(mistake)
}

/// One text or a list of them.
fn texts(section: &str, name: &str, value: Option<Value>) -> Result<Vec<String>, Mistake> {
    let texts = match value {
        None => Some(Vec::new()),
        Some(Value::String(text)) => Some(vec![text]),
        Some(Value::Array(all)) => {
            all.into_iter().map(|one| one.as_str().map(str::to_owned)).collect()
        }
        Some(_) => None,
    };
    texts.ok_or_else(|| Mistake::value(section, name, None, "must be a text or a list of texts"))
}

fn reject_others(section: &str, left: &Table) -> Result<(), Mistake> {
    match left.keys().next() {
        Some(name) => Err(Mistake::Unknown {
            section: section.to_owned(),
            name: name.clone(),
            known: NAMES.to_owned(),
        }),
        None => Ok(()),
    }
}

/// Whether it can stand before the colon of a path.
fn is_name(name: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(is_fine)
}
