//! The control socket of a lab that runs in the background: one JSON line asks, one answers.

use crate::lab::Lab;
use crate::report::Report;
use anyhow::{Context, Result, bail};
use hikyaku_link::Setting;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

/// What can be asked of a lab.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    Status,
    /// Keys and values.
    Set(Vec<(String, String)>),
    Down,
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Status(Box<Report>),
    Done,
    Failed(String),
}

/// A lab that hangs does not hang whoever asks it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks the lab that listens at `socket`.
pub(crate) fn ask(socket: &Path, ask: &Ask) -> Result<Answer> {
    let stream = UnixStream::connect(socket).context("cannot reach the lab")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_string(ask)?;
    line.push('\n');
    (&stream).write_all(line.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer).context("the lab does not answer")?;
    match serde_json::from_str(&answer)? {
        Answer::Failed(reason) => bail!(reason),
        answer => Ok(answer),
    }
}

/// Serves requests for `lab` until one ends it.
pub(crate) fn serve(lab: &Lab, listener: &UnixListener) {
    for stream in listener.incoming().flatten() {
        if matches!(serve_one(lab, &stream), Ok(Ask::Down)) {
            return;
        }
    }
}

fn serve_one(lab: &Lab, stream: &UnixStream) -> Result<Ask> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    let ask: Ask = serde_json::from_str(&line)?;
    let answer = answer(lab, &ask).unwrap_or_else(|error| Answer::Failed(format!("{error:#}")));
    let mut line = serde_json::to_string(&answer)?;
    line.push('\n');
    let mut stream = stream;
    stream.write_all(line.as_bytes())?;
    Ok(ask)
}

fn answer(lab: &Lab, ask: &Ask) -> Result<Answer> {
    match ask {
        Ask::Status => Ok(Answer::Status(Box::new(lab.report()?))),
        Ask::Set(pairs) => {
            let settings: Result<Vec<_>, _> =
                pairs.iter().map(|(key, value)| Setting::parse(key, value)).collect();
            lab.set(settings?)?;
            Ok(Answer::Done)
        }
        Ask::Down => Ok(Answer::Done),
    }
}
