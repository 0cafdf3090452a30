//! Files of web servers.

use super::{Holder, OpenError, Opening};
use hikyaku_http::{Client, Grants, Proxies, Settings, Stop, Url};
use hikyaku_store::{Root, StorePath};
use hikyaku_store_http::{Conduct, HttpStore, Memory, OpenError as WebOpenError};
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

/// How files of web servers are read. Clones share the connections, and the cookies of answers.
#[derive(Clone)]
pub(super) struct Web {
    client: Arc<Client>,
    stop: Stop,
}

impl Web {
    /// Connects to nothing. Proxies are those of the environment. `url` is the location of errors.
    pub(super) fn new(url: &Url, opening: &Opening) -> Result<Self, OpenError> {
        let mut settings = Settings {
            user_agent: concat!("hikyaku/", env!("CARGO_PKG_VERSION")).to_owned(),
            cookies: opening.cookies.clone(),
            proxies: Proxies::of_environment(),
            connect_within: CONNECT_TIME,
            patience: opening.silence.unwrap_or(PATIENCE),
            grants: Grants::remembering(Arc::new(Memory::of_user())),
            ..Settings::default()
        };
        settings.tcp.family = opening.family;
        let client = Client::new(settings).map_err(|fault| failed(url, fault.into()))?;
        Ok(Self { client: Arc::new(client), stop: Stop::default() })
    }

    pub(super) fn stop(&self) {
        self.stop.set();
    }

    /// The store of the directory of a URL, and the path of its file.
    pub(super) fn open(&self, url: &Url) -> Result<(Holder, StorePath), OpenError> {
        let retry = RetryPolicy::of_web(RETRY_WAIT);
        let (stop, memory) = (self.stop.clone(), Memory::of_user());
        let conduct = Conduct { retries: RETRIES, retry, stop, memory };
        let opened = HttpStore::open(self.client.clone(), url.clone(), conduct);
        let (store, path) = opened.map_err(|error| failed(url, error))?;
        Ok((Holder::new(url.dir().to_string(), Arc::new(store), Root::OfAll), path))
    }
}

fn failed(url: &Url, error: WebOpenError) -> OpenError {
    OpenError::Web { location: url.to_string(), error: Box::new(error) }
}
