//! What a session begins with, from the words of a Python program.

use crate::failure::of_session;
use hikyaku_mover::{ClientParameters, Parameters, ServerParameters, Setup, named};
use hikyaku_net::Fingerprint;
use hikyaku_reach::dial::Via;
use hikyaku_units::{DataSize, Rate, parse_limit};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::time::Duration;

/// The arguments of `Session`.
pub(crate) struct Words {
    pub(crate) hosts: Vec<String>,
    pub(crate) log_dir: Option<PathBuf>,
    pub(crate) keys: Vec<String>,
    pub(crate) rate: Option<String>,
    pub(crate) server_rate: Option<String>,
    pub(crate) window: Option<u64>,
    pub(crate) streams: usize,
    pub(crate) pause: f64,
    pub(crate) stagger: f64,
    pub(crate) tcp: bool,
}

impl Words {
    pub(crate) fn setup(self, py: Python<'_>) -> PyResult<Setup> {
        let mut servers = named(&self.hosts).map_err(|error| of_session(py, &error))?;
        for key in &self.keys {
            servers.keys.push(key.parse::<Fingerprint>().map_err(|error| value(key, &error))?);
        }
        let mut setup = Setup::of_user(&servers).map_err(|error| of_session(py, &error))?;
        setup.log_dir = self.log_dir;
        setup.client.via = if self.tcp { Via::Tcp } else { Via::Auto };
        setup.parameters = Parameters {
            client: ClientParameters {
                rate: rate(self.rate.as_deref())?,
                window: self.window.map(DataSize::from_bytes),
                streams: self.streams,
                pause: time(self.pause)?,
                stagger: time(self.stagger)?,
                ..ClientParameters::USUAL
            },
            servers: ServerParameters { rate: rate(self.server_rate.as_deref())? },
        };
        Ok(setup)
    }
}

fn rate(text: Option<&str>) -> PyResult<Option<Rate>> {
    let parse = |text: &str| parse_limit(text).map_err(|error| value(text, &error));
    text.map(parse).transpose()
}

fn time(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|error| value(&seconds.to_string(), &error))
}

fn value(text: &str, error: &dyn std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("'{text}': {error}"))
}
