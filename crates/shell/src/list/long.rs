//! Long lines of `ls`, as of ls(1): mode, owner, group, size, time and name.

use crate::command::{Long, Owners, Sizes};
use crate::fault::{Done, failed};
use crate::show::Shown;
use hikyaku_console::{mode_text, scaled, time_text};
use hikyaku_sftp::{Attributes, Client};
use std::collections::BTreeMap;

/// Numbers that are asked for at once: the answer fits into a message.
const IDS_MAX: usize = 256;

/// Names of users and groups by their numbers.
#[derive(Default)]
pub(super) struct Owned {
    users: BTreeMap<u32, String>,
    groups: BTreeMap<u32, String>,
}

impl Owned {
    /// Asks the server for the names that are needed.
    pub(super) fn asked<'a>(
        client: &Client,
        items: impl Iterator<Item = &'a Attributes>,
        long: Long,
    ) -> Done<Self> {
        let mut owned = Self::default();
        if long.owners == Owners::Numbered {
            return Ok(owned);
        }
        let (mut users, mut groups): (Vec<u32>, Vec<u32>) =
            items.filter_map(|attributes| attributes.owner).unzip();
        for ids in [&mut users, &mut groups] {
            ids.sort_unstable();
            ids.dedup();
        }
        let what = || "users-groups-by-id".to_owned();
        for ids in users.chunks(IDS_MAX) {
            let [names, _] = client.names_of(ids, &[]).map_err(failed(what()))?;
            add(&mut owned.users, ids, &names);
        }
        for ids in groups.chunks(IDS_MAX) {
            let [_, names] = client.names_of(&[], ids).map_err(failed(what()))?;
            add(&mut owned.groups, ids, &names);
        }
        Ok(owned)
    }
}

fn add(known: &mut BTreeMap<u32, String>, ids: &[u32], names: &[Vec<u8>]) {
    for (id, name) in ids.iter().zip(names).filter(|(_, name)| !name.is_empty()) {
        known.insert(*id, Shown::new(name).to_string());
    }
}

/// The line of a name. The protocol does not tell the number of hard links, so that is `?`.
pub(super) fn long_line(name: &str, attributes: &Attributes, owned: &Owned, long: Long) -> String {
    let (user, group) = attributes.owner.unzip();
    let shown = |id: Option<u32>, names: &BTreeMap<u32, String>| match id {
        None => "?".to_owned(),
        Some(id) => names.get(&id).cloned().unwrap_or_else(|| id.to_string()),
    };
    let (user, group) = (shown(user, &owned.users), shown(group, &owned.groups));
    let size = attributes.size.unwrap_or(0);
    let size = if long.sizes == Sizes::Scaled { scaled(size) } else { size.to_string() };
    let mode = attributes.mode.map_or_else(|| "?---------".to_owned(), mode_text);
    let time = attributes.times.map(|(_, modified)| time_text(i64::from(modified)));
    let time = time.unwrap_or_default();
    format!("{mode}    ? {user:<8} {group:<8} {size:>8} {time:>12} {name}")
}
