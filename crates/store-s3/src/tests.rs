//! Tests against a server in the test with scripted answers, and against servers of other projects.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

mod real;
mod script;

use crate::settings::{Login, Payer, Settings};
use crate::{Conditions, Parents, S3, S3Options};

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
