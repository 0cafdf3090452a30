//! Tests against a server in the test with scripted answers, and against servers of other projects.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

mod real;
mod script;

use crate::settings::{Login, Payer, Settings};
use crate::{Conditions, Parents, S3, S3Error, S3Options};
use std::net::TcpListener;
use std::time::Duration;

/// A user of a server of this machine.
fn settings(endpoint: &str) -> Settings {
    let (id, secret) = ("id".to_owned(), "secret".to_owned());
    let login = Login::Keys { id, secret, token: None };
    Settings { login, region: None, endpoint: Some(endpoint.to_owned()), pays: Payer::Owner }
}

/// A bucket that is a store in every way.
fn connect(endpoint: &str, bucket: &str, conditions: Conditions) -> S3 {
    let options = S3Options { parents: Parents::Required, conditions, ..S3Options::default() };
    S3::with(bucket, &options, &settings(endpoint)).unwrap()
}

#[test]
fn a_server_that_never_answers_is_given_up_after_the_chosen_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let silence = Some(Duration::from_millis(50));
    let options = S3Options { silence, ..S3Options::default() };
    let error = S3::with("b", &options, &settings(&endpoint)).err().unwrap();
    assert!(matches!(error, S3Error::TimedOut), "{error}");
}
