//! The control socket of a lab in the background: one JSON line as request, one as answer.

use crate::running::{Change, Running, Status};
use crate::trouble;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

/// A request to a lab.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    Status,
    Set(Vec<Change>),
    Down,
}

/// The answer of a lab.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Status(Status),
    Done,
    Failed(String),
}

/// Read timeout, so that a lab that hangs does not block its clients, nor a client the lab.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends a request to the lab that listens at `socket`.
pub(crate) fn ask(socket: &Path, ask: &Request) -> Result<Answer> {
    // The lab's process is running: either it does not listen yet, or it is about to end.
    let stream = UnixStream::connect(socket)
        .map_err(|error| trouble::of(ErrorKind::ResourceBusy, error))
        .context("cannot reach the lab")?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    let mut line = serde_json::to_string(ask)?;
    line.push('\n');
    (&stream).write_all(line.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => {
            let text = format!("the lab did not answer within {} s", READ_TIMEOUT.as_secs());
            trouble::of(ErrorKind::TimedOut, text)
        }
        _ => anyhow::Error::new(error).context("the lab does not answer"),
    })?;
    if answer.is_empty() {
        return Err(trouble::of(ErrorKind::ConnectionReset, "the lab ended without an answer"));
    }
    match serde_json::from_str(&answer)? {
        Answer::Failed(reason) => bail!(reason),
        answer => Ok(answer),
    }
}

/// Serves requests for `lab` until one tells it to end.
pub(crate) fn serve(lab: &dyn Running, listener: &UnixListener) {
    for stream in listener.incoming().flatten() {
        if matches!(serve_one(lab, &stream), Ok(Request::Down)) {
            return;
        }
    }
}

fn serve_one(lab: &dyn Running, stream: &UnixStream) -> Result<Request> {
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    let ask: Request = serde_json::from_str(&line)?;
    let answer = answer(lab, &ask).unwrap_or_else(|error| Answer::Failed(format!("{error:#}")));
    let mut line = serde_json::to_string(&answer)?;
    line.push('\n');
    let mut stream = stream;
    stream.write_all(line.as_bytes())?;
    Ok(ask)
}

fn answer(lab: &dyn Running, ask: &Request) -> Result<Answer> {
    match ask {
        Request::Status => Ok(Answer::Status(lab.status()?)),
        Request::Set(changes) => lab.change(changes).map(|()| Answer::Done),
        Request::Down => Ok(Answer::Done),
    }
}
