//! Daemons, all of which are connected to at once.

use super::{HasAll, Holder, OpenError, Opened, Opening, path_of};
use anyhow::Result;
use hikyaku_reach::daemon::STORE;
use hikyaku_reach::dial::{Address, Dialled, Servers};
use hikyaku_remote::{Client, RemoteStore};
use hikyaku_session::{ClientConfig, Connector};
use hikyaku_store::Root;
use std::sync::Arc;

pub(super) fn open(servers: &Servers, opening: &Opening) -> Result<Opened, OpenError> {
    let path = path_of(&servers.path, servers)?;
    let client = opening.client.clone().map_or_else(ClientConfig::of_user, Ok)?;
    let connector = Arc::new(Connector::new(client, servers.servers.len(), STORE)?);
    let hold = |address: &Address, dialled| holder(address, dialled, &connector);
    let all = connector.connect_any(servers, hold).map_err(OpenError::Daemons)?;
    let has_all = if all.iter().all(Option::is_some) { HasAll::Yes } else { HasAll::No };
    let holders = all.into_iter().flatten().collect();
    Ok(Opened { holders, path, ending: servers.ending, has_all })
}

fn holder(address: &Address, dialled: Dialled, connector: &Arc<Connector>) -> Result<Holder> {
    let client = Client::new(dialled.connection)?.with_features(dialled.features);
    let store = Arc::new(RemoteStore::new(client));
    let holder = Holder::new(address.to_string(), store, Root::Somewhere);
    Ok(Holder { _connector: Some(connector.clone()), ..holder })
}
