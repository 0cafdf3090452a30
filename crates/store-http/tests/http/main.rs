//! A store over the web server of get's tests.
#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod conformance;
mod connections;
mod lies;
#[allow(dead_code, reason = "the tests of get use all of it")]
#[path = "../../../web-get/tests/get/server.rs"]
mod server;

use hikyaku_http::{Client, Settings, Stop, Url};
use hikyaku_store::{ErrorKind, Open, StorePath};
use hikyaku_store_http::{Conduct, HttpStore, Memory};
use hikyaku_units::RetryPolicy;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// Opens the store of a URL.
fn opened(url: &str) -> (HttpStore, StorePath) {
    opened_by(&client(), url)
}

fn client() -> Arc<Client> {
    let patience = Duration::from_secs(30);
    let settings = Settings {
        user_agent: "test".to_owned(),
        connect_within: patience,
        patience,
        ..Settings::default()
    };
    Arc::new(Client::new(settings).unwrap())
}

fn opened_by(client: &Arc<Client>, url: &str) -> (HttpStore, StorePath) {
    let retry = RetryPolicy::of_web(Duration::from_millis(1));
    let conduct = Conduct { retries: 3, retry, stop: Stop::default(), memory: Memory::Off };
    HttpStore::open(client.clone(), Url::parse(url).unwrap(), conduct).unwrap()
}

fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

/// All bytes of a file by one stream, or why they cannot be read, and the bytes before that.
fn streamed(open: &dyn Open, from: u64) -> (Vec<u8>, Option<ErrorKind>) {
    let mut all = Vec::new();
    let streamed = open.stream(from..u64::MAX, &mut |bytes| {
        all.extend_from_slice(bytes);
        ControlFlow::Continue(())
    });
    (all, streamed.err().map(|error| error.kind))
}

/// Payload: each byte depends on its offset and on the version of the file.
fn payload(version: u64, bytes: usize) -> Vec<u8> {
    let word = |at: u64| {
        let mixed = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(version << 17);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9).to_le_bytes()
    };
    let mut payload: Vec<u8> = (0..bytes.div_ceil(8) as u64).flat_map(word).collect();
    payload.truncate(bytes);
    payload
}
