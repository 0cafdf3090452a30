//! The keys of clients that may come in.

use anyhow::{Context, Result, anyhow};
use hikyaku_crypto::{Fingerprint, NotAPublicKey, PublicKey};
use hikyaku_forward::{AllowList, Pattern};
use hikyaku_remote::Writes;
use hikyaku_store::StorePath;
use hikyaku_units::Rate;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// The file with the keys. It is read again whenever it has changed, so that a key that is removed from it is refused from
/// then on.
#[derive(Debug)]
pub(crate) struct Authorized {
    path: PathBuf,
    state: Mutex<(Option<Stamp>, Keys)>,
}

/// A file's time and size.
type Stamp = (SystemTime, u64);

/// A list of keys: a line each, `OPTIONS ed25519:KEY COMMENT`.
#[derive(Debug, Default)]
struct Keys(BTreeMap<Fingerprint, Permit>);

/// What the holder of a key may do, beyond which nothing that a client asks for goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Permit {
    /// `root=`: the directory that is all that this client sees, below that of the daemon.
    pub(crate) root: Option<StorePath>,
    /// `max-rate=`: what this client is sent at most.
    pub(crate) max_rate: Option<Rate>,
    /// Whether the client may write, if the daemon lets clients write; `ro` refuses it.
    pub(crate) writes: Writes,
    /// `forward=`: of the targets that the daemon allows, this client may reach these only; `no-forward`: none.
    pub(crate) forward: Option<Vec<Pattern>>,
}

impl Default for Permit {
    /// Everything that the daemon allows.
    fn default() -> Self {
        Self { root: None, max_rate: None, writes: Writes::Allowed, forward: None }
    }
}

impl Permit {
    /// The lists of targets, each of which must allow a flow of this client, where the daemon's list is this one. `None`
    /// if nothing is forwarded.
    pub(crate) fn targets(&self, of_daemon: &AllowList) -> Option<Vec<AllowList>> {
        let own = self.forward.iter().map(|own| own.iter().cloned().collect::<AllowList>());
        let lists: Vec<AllowList> = own.chain([of_daemon.clone()]).collect();
        lists.iter().all(|list| !list.is_empty()).then_some(lists)
    }
}

impl Authorized {
    /// Reads a list.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let (stamp, keys) = (stamp(path), Keys::read(path)?);
        Ok(Self { path: path.to_owned(), state: Mutex::new((stamp, keys)) })
    }

    /// What the holder of this key may do; `None` for one that may not come in. If the file was changed and cannot be read any more, the last list
    /// holds, and standard error tells why.
    pub(crate) fn find(&self, key: &Fingerprint) -> Option<Permit> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = stamp(&self.path);
        if now != state.0 {
            match Keys::read(&self.path) {
                Ok(keys) => state.1 = keys,
                Err(error) => eprintln!("hikyaku: {error:#}; the last list of keys holds"),
            }
            state.0 = now;
        }
        state.1.0.get(key).cloned()
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

impl Keys {
    fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)
            .with_context(|| {
                format!("try: put the keys of clients into {}, a line each", path.display())
            })
            .with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).map_err(|(line, error)| anyhow!("{}:{line}: {error}", path.display()))
    }

    // fuzz: none, the administrator's own file
    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut keys = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, permit) = line_of(line).map_err(|error| (number, error))?;
            if keys.insert(key, permit).is_some() {
                return Err((number, "this key is on an earlier line too".to_owned()));
            }
        }
        Ok(Self(keys))
    }
}

fn line_of(line: &str) -> Result<(Fingerprint, Permit), String> {
    let (options, key) = match line.starts_with(KEY) {
        true => ("", line),
        false => split_options(line),
    };
    let key = key.split_whitespace().next().unwrap_or_default();
    let key: PublicKey = key.parse().map_err(|error: NotAPublicKey| error.to_string())?;
    let mut permit = Permit::default();
    for option in split(options, ',').into_iter().filter(|option| !option.is_empty()) {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, value.trim_matches('"')),
            None => (option, ""),
        };
        match name {
            "root" => {
                let path = StorePath::new(value.trim_matches('/').as_bytes());
                permit.root = Some(path.map_err(|error| format!("root={value}: {error}"))?);
            }
            "max-rate" => {
                let rate: Rate =
                    value.parse().map_err(|error| format!("max-rate={value}: {error}"))?;
                permit.max_rate = Some(rate);
            }
            "ro" => permit.writes = Writes::Refused,
            "forward" => {
                let pattern: Pattern =
                    value.parse().map_err(|error| format!("forward={value}: {error}"))?;
                permit.forward.get_or_insert_default().push(pattern);
            }
            "no-forward" => permit.forward = Some(Vec::new()),
            // An option that is not understood may be meant to forbid something.
            _ => {
                return Err(format!(
                    "unknown option '{name}': there are root=, ro, max-rate=, forward= and no-forward"
                ));
            }
        }
    }
    Ok((key.fingerprint(), permit))
}

const KEY: &str = "ed25519:";

/// The options, and what comes behind the blank that ends them.
fn split_options(line: &str) -> (&str, &str) {
    let options = split(line, ' ').first().copied().unwrap_or_default();
    (options, line[options.len()..].trim_start())
}

/// The parts of a text between these characters, other than those between double quotes.
fn split(text: &str, at: char) -> Vec<&str> {
    let mut is_quoted = false;
    text.split(|c| {
        is_quoted ^= c == '"';
        c == at && !is_quoted
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_crypto::Identity;
    use hikyaku_forward::Host;

    fn key() -> (String, Fingerprint) {
        let key = Identity::generate().unwrap().public_key();
        (key.to_string(), key.fingerprint())
    }

    #[test]
    fn a_line_is_options_a_key_and_a_comment() {
        let ((one, one_print), (two, two_print)) = (key(), key());
        let text = format!(
            "# clients\n\n  {one} anna@lab, ro\nroot=\"/runs, of anna/\",ro,max-rate=100mbit {two}\n"
        );
        let keys = Keys::parse(&text).unwrap();
        assert_eq!(keys.0[&one_print], Permit::default());
        let root = StorePath::new(b"runs, of anna").unwrap();
        let max_rate = Some(Rate::from_bits_per_sec(100_000_000));
        assert_eq!(
            keys.0[&two_print],
            Permit { root: Some(root), max_rate, writes: Writes::Refused, forward: None }
        );
        assert_eq!(keys.0.len(), 2);
    }

    #[test]
    fn a_client_reaches_what_both_lists_allow() {
        let (one, print) = key();
        let of_daemon: AllowList = ["*:80".parse().unwrap()].into_iter().collect();
        let may = |options: &str, daemon: &AllowList, host: &str, port| {
            let keys = Keys::parse(&format!("{options} {one}")).unwrap();
            let lists = keys.0[&print].targets(daemon)?;
            let (host, address) = (Host::parse(host).unwrap(), "192.0.2.1".parse().unwrap());
            Some(lists.iter().all(|list| list.permits(&host, address, port)))
        };
        for (options, host, port, wanted) in [
            ("ro", "web", 80, Some(true)),
            ("ro", "web", 81, Some(false)),
            ("forward=web:*", "web", 80, Some(true)),
            ("forward=web:*", "web", 81, Some(false)),
            ("forward=web:*,forward=db:80", "db", 80, Some(true)),
            ("forward=web:*", "db", 80, Some(false)),
            ("no-forward", "web", 80, None),
        ] {
            assert_eq!(may(options, &of_daemon, host, port), wanted, "{options} {host} {port}");
        }
        assert_eq!(may("forward=*:*", &AllowList::default(), "web", 80), None);
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        let key = key().0;
        for (line, words) in [
            ("nonsense".to_owned(), "public key"),
            (format!("root=../up {key}"), "root=../up"),
            (format!("no-write {key}"), "unknown option 'no-write'"),
            (format!("max-rate=fast {key}"), "max-rate=fast"),
            (format!("forward=web {key}"), "forward=web"),
            (format!("{key}\n{key} again"), "earlier line"),
        ] {
            let (number, error) = Keys::parse(&format!("\n{line}")).unwrap_err();
            assert!(error.contains(words), "{error}");
            assert_eq!(number, 1 + line.lines().count());
        }
    }

    #[test]
    fn a_change_of_the_file_counts_at_once() {
        let path = std::env::temp_dir().join(format!("hikyaku-authorized-{}", std::process::id()));
        let ((one, one_print), (two, two_print)) = (key(), key());
        let has = |list: &Authorized| [one_print, two_print].map(|key| list.find(&key).is_some());
        fs::write(&path, format!("{one}\n")).unwrap();
        let list = Authorized::read(&path).unwrap();
        assert_eq!(has(&list), [true, false]);
        fs::write(&path, format!("{two} and a comment\n")).unwrap();
        assert_eq!(has(&list), [false, true]);
        fs::write(&path, "nonsense").unwrap();
        assert_eq!(has(&list), [false, true], "the last list holds");
        fs::remove_file(&path).unwrap();
        assert_eq!(has(&list), [false, true]);
    }
}
