//! Storages that this machine reads and writes: buckets, GridFTP, FTP and web servers, hosts behind ssh, and Gfarm file
//! systems. A new kind of storage is known to crate `stores` only.

use super::direct::{Fetching, bring};
use super::gfarm::Nodes;
use super::order::{CONNECTIONS_MAX, written};
use super::target::{Place, TargetEnd};
use super::{Order, Outcome, start};
use crate::outcome::failed;
use anyhow::{Context, Error, Result};
use hikyaku_console::{Noise, with_remedy};
use hikyaku_job::in_store;
use hikyaku_mover::{
    Behind, Census, Choice, Direction, Done, Landed, Listed, Modes, Pool, ServerId, SessionError,
    Target, Together, stored_census,
};
use hikyaku_reach::dial::Ending;
use hikyaku_reach::tcp::Pipes;
use hikyaku_store::{
    ConnectionCount, End, ErrorKind, Fetcher, Kind, Last, Led, Store, StoreError, StorePath,
    fetchers,
};
use hikyaku_stores::{Directories, Holder, Location, OpenError, Opened, Opening, Storage};
use std::sync::Arc;

/// A source, and its store.
struct Source {
    holder: Holder,
    path: StorePath,
    ending: Ending,
    /// For people.
    shown: String,
}

/// Copies what a storage has at these locations.
pub(super) fn copy(
    order: &Order<'_>,
    (locations, choice, together): (&[Location], &Choice<'_>, Together<'_>),
    target: &TargetEnd<'_>,
    outcome: &mut Outcome,
) -> Result<()> {
    let first = locations.first().context("no source")?;
    let storage = connect(order, first, &order.opening())?;
    let stopped = storage.clone();
    let _stopped = order.scope.on_stop(move || stopped.stop());
    let count = locations.len() + together.others;
    let mut sources = Vec::new();
    for location in locations {
        match expanded(&storage, location) {
            Ok(found) => sources.extend(found),
            Err(error) => outcome.beside((count, &location.to_string()), Err(error))?,
        }
    }
    let later = outcome.later;
    for (at, source) in sources.iter().enumerate() {
        outcome.later = later + sources.len() - 1 - at;
        let number = sources.len() + together.others;
        let of = (source, sources.len(), choice, together);
        let copied = one(order, &storage, of, target, outcome);
        outcome.beside((number.max(count), &source.shown), copied)?;
    }
    Ok(())
}

/// The sources that a location means: all that match it, if it is a pattern.
fn expanded(storage: &Storage, location: &Location) -> Result<Vec<Source>> {
    let Opened { holders, path, ending, .. } = storage.at(location).map_err(explained)?;
    let holder = holders.into_iter().next().context("the storage has no store")?;
    let matching = in_store(&*holder.store, &path)
        .map_err(|error| of_file(&location.to_string(), error.kind))?;
    let source = |found: StorePath| {
        let shown = match found == path {
            true => location.to_string(),
            false => format!("{}/{found}", holder.name),
        };
        Source { holder: holder.clone(), path: found, ending, shown }
    };
    Ok(matching.into_iter().map(source).collect())
}

/// Copies the files of one source. The number beside the source counts all sources.
fn one(
    order: &Order<'_>,
    storage: &Storage,
    (source, sources, choice, together): (&Source, usize, &Choice<'_>, Together<'_>),
    target: &TargetEnd<'_>,
    outcome: &mut Outcome,
) -> Result<()> {
    let Source { holder, path: named, ending, shown } = source;
    let as_dir = std::slice::from_ref(named);
    let choice = &Choice {
        dirs: if *ending == Ending::Name { &[] } else { as_dir },
        contents: if *ending == Ending::Contents { as_dir } else { &[] },
        ..*choice
    };
    let root =
        holder.resolve(named, choice.last(named)).map_err(|error| of_file(shown, error.kind))?;
    let senders = Senders::find(order, storage, (source, &root, choice))?;
    let (root, streams) = (&root, &order.streams());
    let origin = &*holder.name;
    let listed = Listed { root, named, shown, origin, count: sources };
    let landed =
        Landed::of((listed, senders.found), &target.destination()?, (choice, together, streams))
            .map_err(start::of_session)?;
    let nodes = senders.nodes.as_ref();
    let modes = if holder.store.abilities().modes { order.modes() } else { Modes::Usual };
    let what = Fetching {
        servers: &senders.servers,
        pools: &senders.pools,
        names: &senders.names,
        session: nodes.and_then(Nodes::session),
        plan: &landed.plan,
        store: landed.store,
        taking: landed.taking,
        journal: landed.journal.as_ref(),
        direction: Direction::In,
        done: Done::default(),
        modes,
        // A channel of another storage that failed is tried again as it is.
        redial: &|server: ServerId| nodes?.again(server),
        after_loss: match nodes {
            Some(_) => "the others have taken over",
            None => "it was tried again",
        },
        remark: &|| match nodes {
            Some(nodes) => nodes.metadata_away(),
            None => storage.remark().filter(|_| Noise::chosen() != Noise::Quiet),
        },
    };
    bring(order, what, outcome)
}

/// The channels that send the files of a source.
struct Senders {
    /// The entries of the source.
    found: Census,
    /// The channels, by their numbers in the census.
    servers: Vec<Arc<dyn Fetcher>>,
    /// Those of which a part is used at once.
    pools: Vec<Pool<'static>>,
    /// Their names.
    names: Vec<String>,
    /// The nodes of a Gfarm file system.
    nodes: Option<Nodes>,
}

impl Senders {
    /// Looks at a source, which is at the path without links.
    fn find(
        order: &Order<'_>,
        storage: &Storage,
        (Source { holder, shown, .. }, root, choice): (&Source, &StorePath, &Choice<'_>),
    ) -> Result<Self> {
        let lead = &mut |link: &StorePath| {
            holder.resolve(link, Last::Followed).map_err(|error| error.kind)
        };
        if let Some(gfarm) = storage.gfarm() {
            let (nodes, found) = Nodes::find(order, (gfarm, root, shown), (choice, lead))?;
            let (servers, names) = (nodes.servers(), nodes.names());
            return Ok(Self { found, servers, pools: Vec::new(), names, nodes: Some(nodes) });
        }
        let (servers, pools) =
            order.connections(&holder.store).map_err(|error| of_file(shown, error.kind))?;
        let census = |place: &StorePath| {
            stored_census(&*holder.store, place, servers.len()).map_err(|error| error.kind)
        };
        let mut found = census(root).map_err(|kind| of_file(shown, kind))?;
        found.follow(root, choice, Behind { lead, census: &mut |place| census(place) });
        let channel = |number: usize| format!("{} by connection {}", holder.name, number + 1);
        let names = (0..servers.len()).map(channel).collect();
        Ok(Self { found, servers, pools, names, nodes: None })
    }
}

/// A place in a storage.
pub(super) fn target(order: &Order<'_>, location: &Location) -> Result<Place> {
    let storage = connect(order, location, &order.opening_of_target())?;
    let stopped = storage.clone();
    let stopped = order.scope.on_stop(move || stopped.stop());
    let Opened { holders, path, ending, .. } = storage.at(location).map_err(explained)?;
    let holder = holders.into_iter().next().context("the storage has no store")?;
    let name = location.to_string();
    let is_implied = holder.directories == Directories::Implied;
    let look = |at: &StorePath| match holder.store.look(at) {
        Ok(found) => Ok(vec![Some(found.kind)]),
        Err(error) if error.kind == ErrorKind::NotFound => {
            let is_dir = is_implied && (*at != path || ending != Ending::Name);
            Ok(vec![is_dir.then_some(Kind::Dir)])
        }
        Err(error) => {
            let text = format!("{name}: {}", error.kind);
            Err(SessionError::Refused { kind: error.kind.into(), text })
        }
    };
    let led = match is_implied {
        true => Led { path: path.clone(), end: End::There },
        false => holder.lead(&path, Last::Followed).map_err(|error| of_file(&name, error.kind))?,
    };
    let target = Target::find(&look, &name, (written(ending), led)).map_err(start::of_session)?;
    let target = if is_implied { target.with_implied_dirs() } else { target };
    Ok(Place::new(holder.store.clone(), target, name).stopped_by(stopped))
}

fn connect(order: &Order<'_>, location: &Location, opening: &Opening) -> Result<Storage> {
    let storage = Storage::connect(location, opening).map_err(explained)?;
    if matches!(location, Location::Remote(_)) {
        order.depends_on(&storage);
    }
    storage.announce();
    Ok(storage)
}

/// Why a location cannot be opened.
fn explained(error: OpenError) -> Error {
    match error.kind() {
        Some(kind) => {
            let remedy = error.remedy();
            with_remedy(failed(kind.into(), error.text()), remedy)
        }
        None => error.explained(),
    }
}

/// Why nothing is known of a source or a target.
fn of_file(shown: &str, kind: ErrorKind) -> Error {
    failed(kind.into(), format!("{shown}: {kind}"))
}

/// Channels to a storage, and the pools of those that are one connection each.
type Connections = (Vec<Arc<dyn Fetcher>>, Vec<Pool<'static>>);

impl Order<'_> {
    /// Channels to a storage. If each is one connection, and the user has set no number, as many are used as bring more.
    fn connections(&self, store: &Arc<dyn Store>) -> Result<Connections, StoreError> {
        let mut servers = fetchers(store, self.requests(CONNECTIONS_MAX) as usize)?;
        let is_tuned = |one: &Arc<dyn Fetcher>| one.traits().connections == ConnectionCount::Tuned;
        let pool = match self.plan.transport.way.pipes {
            Pipes::Fixed(_) => Pool::fixed(servers.len()),
            Pipes::Auto => Pool::tuned(servers.len()),
        };
        if servers.iter().all(is_tuned) {
            return Ok((servers, vec![pool]));
        }
        servers.truncate(self.requests(Opening::CONNECTIONS) as usize);
        Ok((servers, Vec::new()))
    }
}
