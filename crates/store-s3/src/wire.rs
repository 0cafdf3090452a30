//! Requests: signed, sent, and tried again.

use crate::error::S3Error;
use crate::key::{Slash, encoded};
use crate::reply::refusal;
use crate::settings::Payer;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use http::{HeaderMap, Method, StatusCode};
use object_store::aws::{AwsAuthorizer, AwsCredentialProvider};
use object_store::client::{
    HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody,
};
use std::pin::pin;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Sends requests for one bucket.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) client: HttpClient,
    /// `None` for requests without a signature.
    pub(crate) credentials: Option<AwsCredentialProvider>,
    pub(crate) region: String,
    /// The URL of the bucket, without a slash at its end.
    pub(crate) base: String,
    pub(crate) pays: Payer,
    /// Closed when nothing more is wanted. It has no permits.
    pub(crate) stopped: Semaphore,
    /// Maximum time without a byte of the server, if the user has chosen it.
    pub(crate) silence: Option<Duration>,
}

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    method: Method,
    key: String,
    query: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

/// Maximum number of attempts of a request.
const TRIES: u32 = 5;
/// The wait before the second try; doubled for each further one.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// Maximum time for the answer of a server, without the time in which the body of the request is sent.
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// A connection that carries less than this is given up.
const SLOWEST_BYTES_PER_SEC: u64 = 16 << 10;
/// Maximum time without a byte of a body.
const SILENCE: Duration = Duration::from_secs(30);
/// Bytes of an answer that is read as a whole: a page of a listing has 1,000 keys of 1,024 bytes, encoded.
const REPLY_BYTES_MAX: usize = 16 << 20;

impl Ask {
    /// A request for the object `key`, or for the bucket if it is empty.
    pub(crate) fn new(method: Method, key: &str) -> Self {
        let (query, headers) = (Vec::new(), Vec::new());
        Self { method, key: key.to_owned(), query, headers, body: Bytes::new() }
    }

    pub(crate) fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn body(self, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self }
    }
}

impl Wire {
    /// Sends a request, again if its failure may pass. The answer is one of success.
    pub(crate) async fn send(&self, ask: &Ask) -> Result<HttpResponse, S3Error> {
        self.or_stopped(self.send_again(ask)).await
    }

    /// The outcome of `work`, unless the user stops everything before.
    pub(crate) async fn or_stopped<T>(
        &self,
        work: impl Future<Output = Result<T, S3Error>>,
    ) -> Result<T, S3Error> {
        match select(pin!(work), pin!(self.stopped.acquire())).await {
            Either::Left((done, _)) => done,
            Either::Right(_) => Err(S3Error::Stopped),
        }
    }

    /// Sends a request, also if the user has stopped everything.
    pub(crate) async fn send_again(&self, ask: &Ask) -> Result<HttpResponse, S3Error> {
        let mut wait = FIRST_WAIT;
        for _ in 1..TRIES {
            match self.send_once(ask).await {
                Err(error) if error.may_pass() => {}
                answered => return answered,
            }
            // Clients that failed together do not come back together.
            sleep(wait.mul_f64(fastrand::f64() + 0.5)).await;
            wait *= 2;
        }
        self.send_once(ask).await
    }

    async fn send_once(&self, ask: &Ask) -> Result<HttpResponse, S3Error> {
        let request = self.signed(ask).await?;
        let sending = Duration::from_secs(ask.body.len() as u64 / SLOWEST_BYTES_PER_SEC);
        let answered = timeout(self.answer_time() + sending, self.client.execute(request)).await;
        let response = answered.map_err(|_| S3Error::TimedOut)?.map_err(|error| of_http(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        // Of an error without a readable body the status is enough.
        let body = self.whole(body).await.unwrap_or_default();
        let refusal = refusal(&String::from_utf8_lossy(&body));
        let in_header = head.headers.get("x-amz-bucket-region").and_then(|it| it.to_str().ok());
        let elsewhere = refusal.region.or_else(|| in_header.map(str::to_owned));
        let is_of_region =
            matches!(head.status, StatusCode::MOVED_PERMANENTLY | StatusCode::BAD_REQUEST)
                || head.status == StatusCode::TEMPORARY_REDIRECT;
        Err(S3Error::Refused {
            status: head.status.as_u16(),
            code: refusal.code,
            message: refusal.message,
            region: elsewhere.filter(|region| is_of_region && *region != self.region),
        })
    }

    async fn signed(&self, ask: &Ask) -> Result<HttpRequest, S3Error> {
        let mut url = format!("{}/{}", self.base, encoded(&ask.key, Slash::Kept));
        for (number, (name, value)) in ask.query.iter().enumerate() {
            url.push(if number == 0 { '?' } else { '&' });
            url.push_str(name);
            url.push('=');
            url.push_str(&encoded(value, Slash::Encoded));
        }
        let mut request = http::Request::builder().method(ask.method.clone()).uri(url);
        for (name, value) in &ask.headers {
            request = request.header(*name, value);
        }
        if matches!(ask.method, Method::PUT | Method::POST) {
            request = request.header("content-length", ask.body.len());
        }
        let body = HttpRequestBody::from(ask.body.clone());
        let request = request.body(body).map_err(|error| S3Error::Here(error.to_string()));
        let mut request = request?;
        if let Some(credentials) = &self.credentials {
            let found = timeout(self.answer_time(), credentials.get_credential()).await;
            let found = found.map_err(|_| S3Error::TimedOut)?;
            let credential = found.map_err(|error| S3Error::Setting {
                place: "credentials".to_owned(),
                why: causes(&error),
            })?;
            let authorizer = AwsAuthorizer::new(&credential, "s3", &self.region)
                .with_request_payer(self.pays == Payer::Requester);
            let signed = authorizer.try_authorize(&mut request, None);
            signed.map_err(|error| S3Error::Here(error.to_string()))?;
        }
        Ok(request)
    }

    /// Sends a request and reads its answer as text.
    pub(crate) async fn text(&self, ask: &Ask) -> Result<(HeaderMap, String), S3Error> {
        let (head, body) = self.send(ask).await?.into_parts();
        let body = self.or_stopped(self.whole(body)).await?;
        let text = String::from_utf8(body).map_err(|_| S3Error::Broken("an answer is no text"))?;
        Ok((head.headers, text))
    }

    fn answer_time(&self) -> Duration {
        self.silence.unwrap_or(ANSWER_TIME)
    }

    /// The next bytes of a body; `None` at its end.
    pub(crate) async fn next(&self, body: &mut Body) -> Result<Option<Bytes>, S3Error> {
        match timeout(self.silence.unwrap_or(SILENCE), body.next()).await {
            Err(_) => Err(S3Error::TimedOut),
            Ok(None) => Ok(None),
            Ok(Some(Ok(bytes))) => Ok(Some(bytes)),
            Ok(Some(Err(error))) => Err(of_http(&error)),
        }
    }

    async fn whole(&self, body: HttpResponseBody) -> Result<Vec<u8>, S3Error> {
        let (mut stream, mut all) = (body.bytes_stream(), Vec::new());
        while let Some(bytes) = self.next(&mut stream).await? {
            if all.len() + bytes.len() > REPLY_BYTES_MAX {
                return Err(S3Error::Broken("an answer is too long"));
            }
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }
}

/// The bytes of an answer as they come.
pub(crate) type Body = futures_util::stream::BoxStream<'static, Result<Bytes, HttpError>>;

fn of_http(error: &HttpError) -> S3Error {
    match error.kind() {
        HttpErrorKind::Timeout => S3Error::TimedOut,
        _ => S3Error::Unreachable(causes(error)),
    }
}

/// The innermost cause is the most exact one: the others are layers of the HTTP client.
fn causes(error: &dyn std::error::Error) -> String {
    let mut last = error.source();
    while let Some(deeper) = last.and_then(|error| error.source()) {
        last = Some(deeper);
    }
    last.map_or_else(|| error.to_string(), ToString::to_string)
}
