//! Daemons, all of which are connected to at once.

use super::{HasAll, Holder, OpenError, Opening};
use anyhow::Result;
use hikyaku_reach::daemon::STORE;
use hikyaku_reach::dial::{Address, Dialled, Servers};
use hikyaku_remote::Client;
use hikyaku_session::{ClientConfig, Connector};
use std::sync::Arc;

pub(super) fn connect(
    servers: &Servers,
    opening: &Opening,
) -> Result<(Vec<Holder>, HasAll), OpenError> {
    let client = opening.client.clone().map_or_else(ClientConfig::of_user, Ok)?;
    let connector = Arc::new(Connector::new(client, servers.servers.len(), STORE)?);
    let hold = |address: &Address, dialled| holder(address, dialled, &connector);
    let all = connector.connect_any(servers, hold).map_err(OpenError::Daemons)?;
    let has_all = if all.iter().all(Option::is_some) { HasAll::Yes } else { HasAll::No };
    Ok((all.into_iter().flatten().collect(), has_all))
}

fn holder(address: &Address, dialled: Dialled, connector: &Arc<Connector>) -> Result<Holder> {
    let client = Client::new(dialled.connection)?.with_features(dialled.features);
    Ok(Holder::of_daemon(address.to_string(), client, connector))
}
