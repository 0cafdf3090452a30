//! What `hikyaku proxy` prints on standard output: where it listens; with `--json` as a document, and with `--json-lines` as
//! lines, which are followed by its status once a second.

use crate::board::Board;
use crate::near::Ready;
use crate::web::file_address;
use anyhow::Result;
use hikyaku_console::{Document, Form, announce, print};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// The status is printed so often.
const EVERY: Duration = Duration::from_secs(1);

/// Tells where the gateway listens, and then what it does, until the future is dropped.
pub(crate) async fn tell(form: Form, ready: &Ready) -> Result<()> {
    match form {
        Form::Words => tell_listeners(ready)?,
        Form::Document => print(Document::new(Begun::of(ready)).line())?,
        Form::Lines => loop_of_json(ready).await?,
    }
    std::future::pending().await
}

/// The content of the document of a gateway that has begun.
#[derive(Serialize)]
struct Begun<'a> {
    process: u32,
    listeners: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transparent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<String>,
    /// The address of the proxy configuration, for a browser.
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<String>,
}

impl<'a> Begun<'a> {
    fn of(ready: &'a Ready) -> Self {
        Self {
            process: std::process::id(),
            listeners: listeners(ready).collect(),
            transparent: ready.taken.as_deref(),
            page: ready.page.as_ref().map(|page| page.address()),
            configuration: None,
        }
    }
}

/// Prints a line for a person; nothing if a program reads the output.
pub(crate) fn say(form: Form, words: impl FnOnce() -> String) -> Result<()> {
    if form == Form::Words { announce(words()) } else { Ok(()) }
}

/// Prints the address of the gateway of a browser. `words` make the line for a person.
pub(crate) fn begin(
    form: Form,
    ready: &Ready,
    configuration: Option<&Path>,
    words: impl FnOnce() -> String,
) -> Result<()> {
    if form == Form::Words {
        return announce(words());
    }
    let configuration = configuration.map(file_address);
    print(Document::new(Begun { configuration, ..Begun::of(ready) }).line())
}

/// Prints the bytes that the gateway of a browser has carried, for a program.
pub(crate) fn end(form: Form, board: &Board) -> Result<()> {
    match form {
        Form::Words => Ok(()),
        Form::Document | Form::Lines => print(Document::new(board.sums(Instant::now())).line()),
    }
}

/// The addresses and paths that are listened on.
fn listeners(ready: &Ready) -> impl Iterator<Item = Value> {
    let ports = ready.ports.iter();
    let ports = ports.map(|(address, label)| json!({ "address": address, "what": label }));
    let others = ready.others.iter();
    ports.chain(others.map(|(place, label)| json!({ "place": place, "what": label })))
}

/// Tells where the gateway listens.
pub(crate) fn tell_listeners(ready: &Ready) -> Result<()> {
    for (address, label) in &ready.ports {
        announce(format!("listening on {address} ({label})\n"))?;
    }
    for (place, label) in &ready.others {
        announce(format!("listening on {place} ({label})\n"))?;
    }
    if let Some(taken) = &ready.taken {
        announce(format!("taking in {taken}\n"))?;
    }
    match &ready.page {
        Some(page) => announce(format!("connections are shown at {}\n", page.address())),
        None => Ok(()),
    }
}

async fn loop_of_json(ready: &Ready) -> Result<()> {
    for mut listener in listeners(ready) {
        listener["event"] = "listening".into();
        print_line(&listener)?;
    }
    if let Some(taken) = &ready.taken {
        print_line(&json!({ "event": "transparent", "what": taken }))?;
    }
    if let Some(page) = &ready.page {
        print_line(&json!({ "event": "page", "address": page.address() }))?;
    }
    loop {
        let mut status = serde_json::to_value(&*ready.board.look(Instant::now()))?;
        status["event"] = "status".into();
        print_line(&status)?;
        sleep(EVERY).await;
    }
}

fn print_line(value: &Value) -> Result<()> {
    print(format!("{value}\n"))
}
