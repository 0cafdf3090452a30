//! The hosts of a mesh, as typed, and who meets whom when.

use hikyaku_fs::words;
use hikyaku_reach::Destination;
use std::collections::BTreeSet;
use std::fs;
use std::str::FromStr;

/// The hosts of a mesh.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Hosts(pub(crate) Vec<Host>);

/// A host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Host {
    /// Its name in the table.
    pub(crate) name: String,
    /// How ssh reaches it; `None` for this machine.
    pub(crate) login: Option<Destination>,
    /// How the other hosts reach it.
    pub(crate) address: String,
    /// Where hikyaku was sent to for this mesh.
    pub(crate) sent: Option<String>,
}

const HOSTS_MAX: usize = 200;
/// Bytes of a file of hosts.
const FILE_BYTES_MAX: u64 = 1 << 20;

impl FromStr for Hosts {
    type Err = String;
    // fuzz: none, input comes from the local user
    fn from_str(text: &str) -> Result<Self, String> {
        let listed = match text.strip_prefix('@') {
            None => text.to_owned(),
            Some(path) => {
                let error = |error| format!("{path}: {}", words(&error));
                let size = fs::metadata(path).map_err(error)?.len();
                if size > FILE_BYTES_MAX {
                    return Err(format!("{path} is no list of hosts"));
                }
                fs::read_to_string(path).map_err(error)?
            }
        };
        let words = listed.lines().map(|line| line.split('#').next().unwrap_or_default());
        let words =
            words.flat_map(|line| line.split([',', ' ', '\t'])).filter(|word| !word.is_empty());
        let hosts: Vec<Host> = words.map(host).collect::<Result<_, _>>()?;
        let addresses: BTreeSet<_> = hosts.iter().map(|host| (&host.name, &host.address)).collect();
        match hosts.len() {
            0 | 1 => Err("a mesh has two hosts or more".to_owned()),
            count if count > HOSTS_MAX => Err(format!("at most {HOSTS_MAX} hosts")),
            count if count > addresses.len() => Err("a host is named twice".to_owned()),
            _ => Ok(Self(hosts)),
        }
    }
}

/// `[USER@]HOST[=ADDRESS]`; `.` is this machine and needs an address.
fn host(text: &str) -> Result<Host, String> {
    let (login, address) = match text.split_once('=') {
        Some((login, address)) => (login, Some(address)),
        None => (text, None),
    };
    if login == "." {
        let address = address.ok_or("'.' is this machine: give its address, as in .=192.0.2.1")?;
        let address = plain(address)?;
        return Ok(Host { name: text.to_owned(), login: None, address, sent: None });
    }
    let login = Destination::parse(login.as_bytes()).map_err(|error| error.to_string())?;
    let address = plain(address.unwrap_or(&login.host))?;
    Ok(Host { name: login.host.clone(), login: Some(login), address, sent: None })
}

/// An address that no shell finds a meaning in.
fn plain(address: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".:-_%".contains(c);
    match !address.is_empty() && !address.starts_with('-') && address.chars().all(is_plain) {
        true => Ok(address.to_owned()),
        false => Err(format!("'{address}' is no address")),
    }
}

/// Pairs in rounds, in each of which a host has at most one other one: each pair stands in one round. One host keeps its
/// place, and the others move around it.
pub(crate) fn rounds(count: usize) -> Vec<Vec<(usize, usize)>> {
    // Without a partner a host rests.
    let places = count + count % 2;
    let round = |number: usize| {
        let at = |place: usize| match place {
            0 => 0,
            place => (place - 1 + number) % (places - 1) + 1,
        };
        let pairs = (0..places / 2).map(|place| (at(place), at(places - 1 - place)));
        pairs.filter(|(a, b)| *a < count && *b < count).collect()
    };
    (0..places.saturating_sub(1)).map(round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_meets_once_and_no_host_is_in_two_tests() {
        for count in 2..9 {
            let mut met = BTreeSet::new();
            for round in rounds(count) {
                let mut busy = BTreeSet::new();
                for (a, b) in round {
                    assert!(busy.insert(a) && busy.insert(b), "{count}: {a} {b}");
                    assert!(met.insert((a.min(b), a.max(b))), "{count}: {a} {b}");
                }
            }
            assert_eq!(met.len(), count * (count - 1) / 2, "{count}");
        }
    }

    #[test]
    fn hosts_are_logins_with_addresses() {
        let hosts: Hosts = "me@a,b=192.0.2.7,.=2001:db8::1".parse().unwrap();
        let told: Vec<_> = hosts.0.iter().map(|host| (&*host.name, &*host.address)).collect();
        let here = ".=2001:db8::1";
        assert_eq!(told, [("a", "a"), ("b", "192.0.2.7"), (here, "2001:db8::1")]);
        assert!(hosts.0[0].login.is_some() && hosts.0[2].login.is_none());
        for text in ["a", "a,a", "a,.", "a,b=$(reboot)", "a,b=-x", "a,b=x;y", "@/nowhere"] {
            assert!(text.parse::<Hosts>().is_err(), "{text}");
        }
    }
}
