//! What `hikyaku proxy` prints on standard output: where it listens, and with `--json` its status once a second.

use crate::near::Ready;
use crate::status_socket::Format;
use anyhow::Result;
use hikyaku_console::{announce, print};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// The status is printed so often.
const EVERY: Duration = Duration::from_secs(1);

impl Format {
    /// Tells where the gateway listens, and then what it does, until the future is dropped.
    pub(crate) async fn tell(self, ready: &Ready) -> Result<()> {
        match self {
            Self::Text => tell_listeners(ready)?,
            Self::Json => loop_of_json(ready).await?,
        }
        std::future::pending().await
    }
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
    for (address, label) in &ready.ports {
        print_line(&json!({ "event": "listening", "address": address, "what": label }))?;
    }
    for (place, label) in &ready.others {
        print_line(&json!({ "event": "listening", "place": place, "what": label }))?;
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
