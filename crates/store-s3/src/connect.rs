//! The store, and how it begins.

use crate::error::S3Error;
use crate::objects::{Condition, Depth, Page};
use crate::parts::OPEN_MAX;
use crate::settings::{Login, Origin, Settings};
use crate::survey::Walks;
use crate::wire::Wire;
use hikyaku_store::{Abilities, Begun, Latency, Left, Note, Writes, left_over};
use object_store::aws::{
    AmazonS3Builder, AwsCredential, AwsCredentialProvider, resolve_bucket_region,
};
use object_store::client::{HttpConnector, ReqwestConnector};
use object_store::{
    BackoffConfig, Certificate, ClientOptions, RetryConfig, StaticCredentialProvider,
};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// A bucket. A clone refers to the same connections.
#[derive(Clone, Debug)]
pub struct S3 {
    pub(crate) inner: Arc<Inner>,
    pub(crate) walks: Walks,
}

#[derive(Debug)]
pub(crate) struct Inner {
    /// Of its own, so that what runs on the runtime does not own the runtime.
    pub(crate) wire: Arc<Wire>,
    pub(crate) parents: Parents,
    pub(crate) abilities: Abilities,
    /// Mebibytes of parts that may be under way to the server, of all drafts together.
    pub(crate) budget: Arc<Semaphore>,
    /// All of that budget. A larger part takes all of it.
    pub(crate) uploads_mib: u32,
    /// Whether the server has answered a range with the whole object.
    pub(crate) ranges_ignored: AtomicBool,
    /// Where uploads are noted.
    recorded: Option<PathBuf>,
    /// Begun with the first one; `None` if the folder cannot be used.
    begun: OnceLock<Option<Arc<Begun>>>,
    /// Last, so that it ends after everything that uses it.
    runtime: Runtime,
}

/// How a store behaves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct S3Options {
    /// The server, if it is not Amazon's. Default: the one of the environment and the user's files.
    pub endpoint: Option<String>,
    /// Default: implied, because each check costs a round trip.
    pub parents: Parents,
    /// Default: unknown, because a trial writes to the bucket.
    pub conditions: Conditions,
    /// Parts of 8 MiB that may be under way to the server at once, 1 to 256. Default: 16. On a path of 100 ms one TCP
    /// connection carries some 100 to 500 Mbit/s, so that sixteen fill a few Gbit/s; their parts take 128 MiB of memory.
    pub uploads: u32,
    /// The folder in which uploads in parts are noted, so that a later process drops those of a killed one. Default: none.
    pub recorded: Option<PathBuf>,
    /// Maximum time without a byte of the server. Default: 60 s until an answer begins, and 30 s in it.
    pub silence: Option<Duration>,
}

/// Whether a file can be written only where its directory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parents {
    /// The directory must be there, as in a file system.
    Required,
    /// A directory is there because a file has its name in front, as other programs for S3 have it.
    Implied,
}

/// Whether the server honours the conditions of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conditions {
    /// It is tried at the beginning with an object of a name of its own, because some servers ignore `If-None-Match` and
    /// replace the object.
    Tried,
    /// Not known: a name that is taken cannot be refused.
    Unknown,
}

impl Default for S3Options {
    fn default() -> Self {
        Self {
            endpoint: None,
            parents: Parents::Implied,
            conditions: Conditions::Unknown,
            uploads: 16,
            recorded: None,
            silence: None,
        }
    }
}

/// The size of a part, in mebibytes, unless the file needs larger ones.
pub(crate) const PART_MIB: u32 = 8;
/// A server is connected to within this.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Idle connections that are kept.
const IDLE_MAX: usize = 256;
/// Maximum time for the removal of uploads of killed processes.
const LEFT_TIME: Duration = Duration::from_secs(5);
/// Of the machine that gives credentials.
const CREDENTIAL_RETRY_TIME: Duration = Duration::from_secs(10);
/// The region without a setting, and for servers that have none.
const USUAL_REGION: &str = "us-east-1";

impl S3 {
    /// Finds the user's credentials, and checks that the bucket exists.
    ///
    /// # Errors
    ///
    /// There are no credentials, the server cannot be reached, or it does not know the user or the bucket. A user who may
    /// not list the bucket is no error here.
    pub fn connect(bucket: &str, options: &S3Options) -> Result<Self, S3Error> {
        let variable = |name: &str| std::env::var(name).ok();
        let file = |path: &PathBuf| match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        };
        let origin = Origin { variable: &variable, file: &file };
        let settings = Settings::find(bucket, options.endpoint.as_deref(), &origin)?;
        Self::with(bucket, options, &settings)
    }

    pub(crate) fn with(
        bucket: &str,
        options: &S3Options,
        settings: &Settings,
    ) -> Result<Self, S3Error> {
        let mut inner = Inner::new(bucket, options, settings)?;
        let wire = inner.wire.clone();
        let abilities = inner.wait(async {
            let page = Page { prefix: "", depth: Depth::Names, room: 1, after: None };
            match wire.list(&page).await {
                // The right to read objects does not include the right to list them.
                Err(S3Error::Refused { status: 403, code, .. }) if code == "AccessDenied" => {}
                Err(error) => return Err(error),
                Ok(_) => {}
            }
            let mut abilities = Abilities {
                writes: Writes::Window {
                    bytes: (OPEN_MAX as u64 - 1) * (u64::from(PART_MIB) << 20),
                },
                latency: Latency::RoundTrip,
                ..Abilities::default()
            };
            if options.conditions == Conditions::Tried {
                abilities.name_if_absent = heeds_conditions(&wire).await?;
            }
            Ok(abilities)
        })?;
        inner.abilities = abilities;
        if let Some(folder) = &inner.recorded {
            left_over(folder, |place| place == inner.place(), |_, what| inner.drop_left(what));
        }
        Ok(Self { inner: Arc::new(inner), walks: Walks::default() })
    }

    /// Connects without a request to the server.
    #[cfg(test)]
    pub(crate) fn unasked(
        bucket: &str,
        options: &S3Options,
        settings: &Settings,
    ) -> Result<Self, S3Error> {
        let inner = Arc::new(Inner::new(bucket, options, settings)?);
        Ok(Self { inner, walks: Walks::default() })
    }

    /// This bucket with other walks.
    #[must_use]
    pub fn walking(&self, walks: Walks) -> Self {
        Self { inner: self.inner.clone(), walks }
    }

    /// The URL of the bucket at its server.
    pub fn url(&self) -> &str {
        &self.inner.wire.base
    }

    /// Ends every request, and those to come: the user has stopped it. Drafts still drop their parts.
    pub fn stop(&self) {
        self.inner.wire.stopped.close();
    }

    /// Whether the server has answered a range of an object with all of it. Then each part costs the whole object.
    pub fn ignores_ranges(&self) -> bool {
        self.inner.ranges_ignored.load(std::sync::atomic::Ordering::Relaxed)
    }
}

impl Inner {
    /// Requests that may be under way at once.
    pub(crate) const fn requests_max(&self) -> usize {
        (self.uploads_mib / PART_MIB) as usize
    }

    fn new(bucket: &str, options: &S3Options, settings: &Settings) -> Result<Self, S3Error> {
        // TLS and signatures of 10 Gbit/s take some four cores.
        let threads = available_parallelism().map_or(2, |all| all.get().clamp(2, 4));
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("s3")
            .enable_all()
            .build()
            .map_err(|error| S3Error::Here(format!("cannot start threads: {error}")))?;
        let wire = Wire { silence: options.silence, ..runtime.block_on(wire(bucket, settings))? };
        let uploads_mib = options.uploads.clamp(1, 256) * PART_MIB;
        Ok(Self {
            wire: Arc::new(wire),
            parents: options.parents,
            abilities: Abilities::default(),
            budget: Arc::new(Semaphore::new(uploads_mib as usize)),
            uploads_mib,
            ranges_ignored: AtomicBool::new(false),
            recorded: options.recorded.clone(),
            begun: OnceLock::new(),
            runtime,
        })
    }

    /// The name of the bucket in records.
    fn place(&self) -> &[u8] {
        self.wire.base.as_bytes()
    }

    /// Notes an upload.
    pub(crate) fn note(&self, (key, upload): (&str, &str)) -> Option<Note> {
        let folder = self.recorded.as_ref()?;
        let begun = self.begun.get_or_init(|| Begun::new(folder, self.place()).ok());
        begun.as_ref()?.note(format!("{upload} {key}").as_bytes())
    }

    /// Drops the upload of a killed process.
    fn drop_left(&self, what: &[u8]) -> Left {
        let noted = str::from_utf8(what).ok().and_then(|what| what.split_once(' '));
        let Some((upload, key)) = noted else { return Left::Removed };
        let aborted = self.wire.abort((key, upload));
        match self.wait(async { timeout(LEFT_TIME, aborted).await }) {
            Ok(Ok(())) => Left::Removed,
            // Another process has dropped it.
            Ok(Err(error)) if error.is_not_found() => Left::Removed,
            Ok(Err(_)) | Err(_) => Left::Stays,
        }
    }

    /// Waits for something of the runtime. Any thread may wait that is not one of it.
    pub(crate) fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(what)
    }

    /// Starts something on the runtime.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        what: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.runtime.spawn(what)
    }
}

async fn wire(bucket: &str, settings: &Settings) -> Result<Wire, S3Error> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if bucket.is_empty() || !bucket.chars().all(is_name) || bucket.starts_with('.') {
        let why = "a bucket's name has letters, digits, '.', '-' and '_' only".to_owned();
        return Err(S3Error::Setting { place: format!("s3://{bucket}"), why });
    }
    let options = client_options(settings)?;
    let region = match (&settings.region, &settings.endpoint) {
        (Some(region), _) => region.clone(),
        (None, Some(_)) => USUAL_REGION.to_owned(),
        // Without a setting the answer to the first request has the region.
        (None, None) => {
            let told = resolve_bucket_region(bucket, &options).await;
            told.unwrap_or_else(|_| USUAL_REGION.to_owned())
        }
    };
    let base = match &settings.endpoint {
        Some(endpoint) => format!("{endpoint}/{bucket}"),
        None => format!("https://s3.{region}.amazonaws.com/{bucket}"),
    };
    let here = |error: object_store::Error| S3Error::Here(error.to_string());
    let credentials: Option<AwsCredentialProvider> = match &settings.login {
        Login::Anonymous => None,
        Login::Keys { id, secret, token } => {
            let (key_id, secret_key, token) = (id.clone(), secret.clone(), token.clone());
            let credential = AwsCredential { key_id, secret_key, token };
            Some(Arc::new(StaticCredentialProvider::new(credential)))
        }
        Login::Machine => {
            let retry = RetryConfig {
                backoff: BackoffConfig::default(),
                max_retries: 2,
                retry_timeout: CREDENTIAL_RETRY_TIME,
            };
            let builder = AmazonS3Builder::from_env()
                .with_bucket_name(bucket)
                .with_region(&region)
                .with_retry(retry);
            let provider = builder.build().map_err(here)?.credentials().clone();
            // Checked here, so that a machine without credentials fails at once and not at the first file.
            let found = provider.get_credential().await;
            found.map_err(|_| S3Error::NoCredentials(bucket.to_owned()))?;
            Some(provider)
        }
    };
    let client = ReqwestConnector::default().connect(&options).map_err(here)?;
    let (pays, stopped) = (settings.pays, Semaphore::new(0));
    Ok(Wire { client, credentials, region, base, pays, stopped, silence: None })
}

fn client_options(settings: &Settings) -> Result<ClientOptions, S3Error> {
    let is_plain = settings.endpoint.as_ref().is_some_and(|url| url.starts_with("http://"));
    // The times of requests are limited in `wire`, by their sizes. A connection of HTTP/2 would carry all of them over
    // one window.
    let mut options = ClientOptions::new()
        .with_allow_http(is_plain)
        .with_http1_only()
        .with_timeout_disabled()
        .with_connect_timeout(CONNECT_TIME)
        .with_pool_max_idle_per_host(IDLE_MAX);
    if let Ok(path) = std::env::var("AWS_CA_BUNDLE") {
        let wrong = |why: String| S3Error::Setting { place: format!("AWS_CA_BUNDLE: {path}"), why };
        let pem = std::fs::read(&path).map_err(|error| wrong(error.to_string()))?;
        let all = Certificate::from_pem_bundle(&pem).map_err(|error| wrong(error.to_string()))?;
        for certificate in all {
            options = options.with_root_certificate(certificate);
        }
    }
    Ok(options)
}

/// Creates an object that must not be there, twice.
async fn heeds_conditions(wire: &Wire) -> Result<bool, S3Error> {
    let key = format!(".hikyaku-probe-{:016x}", fastrand::u64(..));
    let create = || wire.put(&key, bytes::Bytes::new(), None, &Condition::Absent);
    let first = create().await;
    let second = create().await;
    // Nothing of the trial stays, as far as that can be had.
    let _ = wire.delete(&key).await;
    match (first, second) {
        (Ok(_), Err(S3Error::Refused { status: 412 | 409 | 304, .. })) => Ok(true),
        // A server that knows no conditions refuses the header or ignores it.
        (Ok(_), Ok(_)) | (Err(S3Error::Refused { status: 400 | 501, .. }), _) => Ok(false),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}
