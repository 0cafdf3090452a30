//! Files of web servers.

use super::{Holder, OpenError, Opening};
use hikyaku_http::{Client, Proxies, Settings, Stop, Url};
use hikyaku_reach::Family;
use hikyaku_store::{Root, StorePath};
use hikyaku_store_http::{Conduct, HttpStore, Memory};
use hikyaku_units::RetryPolicy;
use std::sync::Arc;
use std::time::Duration;

/// Failed requests in a row without a byte, after the first, before a file fails.
const RETRIES: u32 = 5;
/// The wait before the first of them.
const RETRY_WAIT: Duration = Duration::from_secs(1);
/// Time in which a TCP connection is established.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Time without a byte after which a request fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// How files of web servers are read.
#[derive(Clone)]
pub(super) struct Web {
    stop: Stop,
    silence: Duration,
    family: Option<Family>,
}

impl Web {
    pub(super) fn new(opening: &Opening) -> Self {
        let silence = opening.silence.unwrap_or(PATIENCE);
        Self { stop: Stop::default(), silence, family: opening.family }
    }

    pub(super) fn stop(&self) {
        self.stop.set();
    }

    /// The store of the directory of a URL, and the path of its file. Proxies are those of the environment.
    pub(super) fn open(&self, url: &Url) -> Result<(Holder, StorePath), OpenError> {
        let failed = |error| OpenError::Web { location: url.to_string(), error: Box::new(error) };
        let mut settings = Settings {
            user_agent: concat!("hikyaku/", env!("CARGO_PKG_VERSION")).to_owned(),
            proxies: Proxies::of_environment(),
            connect_within: CONNECT_TIME,
            patience: self.silence,
            ..Settings::default()
        };
        settings.tcp.family = self.family;
        let client = Client::new(settings).map_err(|fault| failed(fault.into()))?;
        let retry = RetryPolicy::of_web(RETRY_WAIT);
        let (stop, memory) = (self.stop.clone(), Memory::of_user());
        let conduct = Conduct { retries: RETRIES, retry, stop, memory };
        let (store, path) = HttpStore::open(client, url.clone(), conduct).map_err(failed)?;
        Ok((Holder::new(url.dir().to_string(), Arc::new(store), Root::OfAll), path))
    }
}
