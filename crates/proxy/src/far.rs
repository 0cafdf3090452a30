//! The far gateway: it connects the flows that the near gateway opens.

pub(crate) mod dial;
mod listen;
mod reports;

use crate::control::{Messages, say_hello};
use crate::limits::{
    CONNECT_TIMEOUT, FLOWS_MAX, HEAD_TIMEOUT, PENDING_MAX, raise_open_files, workers,
};
use crate::relay::{Begin, Relay};
use crate::socket::Socket;
use anyhow::{Context, Result};
use bytes::Bytes;
use hikyaku_forward::{AllowList, Answer, Counted, Listen, Open, Permits, Share, Verdict, framed};
use hikyaku_reach::{Arrival, Connection, Stream};
use listen::{LISTENERS_MAX, Listens};
use reports::Reports;
use std::sync::Arc;
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Names that are looked up at once.
const LOOKUPS_MAX: usize = 64;
/// The same of one client of a daemon.
const LOOKUPS_OF_CLIENT_MAX: usize = 8;

/// What all flows share.
struct Gateway {
    connection: Connection,
    /// Flows that may still be connected.
    flows: Semaphore,
    /// Flows that may still wait for their connection.
    pending: Semaphore,
    /// What they wait for.
    reports: Arc<Reports>,
    /// Where they may go.
    targets: Targets,
    /// Where this gateway may listen for the near one.
    listens: Listens,
    /// How many flows the near gateway may have, over all its connections to a daemon.
    share: Option<Share>,
}

/// What a near gateway may ask for.
struct Rights {
    targets: Targets,
    listens: Listens,
    share: Option<Share>,
}

/// Room for a flow, as long as it is held.
struct Room<'a> {
    _flow: SemaphorePermit<'a>,
    _counted: Option<Counted>,
}

impl Gateway {
    /// Room for one flow more.
    ///
    /// # Errors
    ///
    /// There is none: what the program is told.
    fn room(&self) -> Result<Room<'_>, Answer> {
        let refused = |text: &str| Answer::failed(Verdict::OutOfResources, text);
        let flow = self.flows.try_acquire().map_err(|_| {
            refused(&format!("the far gateway carries {FLOWS_MAX} connections already"))
        })?;
        let counted = self.share.as_ref().map(|share| {
            let most = share.most();
            let text = format!("this key has {most} connections already (max-flows=)");
            share.enter().ok_or_else(|| refused(&text))
        });
        Ok(Room { _flow: flow, _counted: counted.transpose()? })
    }
}

/// Where flows may go.
pub(crate) enum Targets {
    /// Wherever the user could go who has logged in to this machine.
    OfUser,
    /// Wherever this machine reaches, without any far gateway: to hosts only.
    Direct,
    /// Where all of these lists allow it.
    Listed(Vec<AllowList>),
}

/// Carries the flows of a near side that has come through ssh. It prints nothing: standard output belongs to ssh.
pub fn attend(arrival: Arrival) -> Result<()> {
    raise_open_files();
    let (connection, stream, _door) = arrival.split();
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers())
        .max_blocking_threads(LOOKUPS_MAX)
        .enable_all()
        .build()
        .context("cannot start a thread")?;
    let rights = Rights { targets: Targets::OfUser, listens: Listens::OfUser, share: None };
    let served = runtime.block_on(serve(connection, stream, rights));
    // A name lookup may still hang.
    runtime.shutdown_background();
    served
}

/// Carries the flows of a client of a daemon, as far as these lists permit it, until the client is gone.
///
/// # Errors
///
/// The system refuses what is needed, or the client is no near gateway.
pub fn attend_client(connection: Connection, permits: Permits) -> Result<()> {
    raise_open_files();
    // The thread of the session moves the bytes of all its flows.
    let runtime = Builder::new_current_thread()
        .max_blocking_threads(LOOKUPS_OF_CLIENT_MAX)
        .enable_all()
        .build()
        .context("cannot start a thread")?;
    let served = runtime.block_on(async {
        let stream = timeout(HEAD_TIMEOUT, connection.accept_stream()).await??;
        let rights = Rights {
            targets: Targets::Listed(permits.targets),
            listens: Listens::Listed(permits.listens),
            share: permits.share,
        };
        serve(connection.clone(), stream, rights).await
    });
    runtime.shutdown_background();
    connection.close(hikyaku_net::code::DONE, "");
    served
}

/// Connects the flows of the near gateway of this process that go direct.
pub(crate) fn attend_here(connection: Connection, stream: Stream) -> Result<()> {
    let runtime = Builder::new_current_thread()
        .max_blocking_threads(LOOKUPS_MAX)
        .enable_all()
        .build()
        .context("cannot start a thread")?;
    let nowhere = Listens::Listed(AllowList::default());
    let rights = Rights { targets: Targets::Direct, listens: nowhere, share: None };
    let served = runtime.block_on(serve(connection, stream, rights));
    runtime.shutdown_background();
    served
}

/// Serves until the near gateway ends its stream or is gone.
async fn serve(connection: Connection, stream: Stream, rights: Rights) -> Result<()> {
    let Rights { targets, listens, share } = rights;
    let (mut send, receive) = stream.split();
    let mut messages = Messages::new(receive);
    timeout(HEAD_TIMEOUT, messages.hello()).await??;
    say_hello(&mut send).await?;
    let reports = Arc::<Reports>::default();
    let gateway = Arc::new(Gateway {
        connection,
        flows: Semaphore::new(FLOWS_MAX as usize),
        pending: Semaphore::new(PENDING_MAX),
        reports: reports.clone(),
        targets,
        listens,
        share,
    });
    let (say, said) = mpsc::channel(LISTENERS_MAX);
    let mut listeners = JoinSet::new();
    // Flows that are left at the end are dropped, which resets their sockets.
    let mut flows = JoinSet::new();
    // A near gateway that does not read them keeps only this task waiting.
    flows.spawn(reports::say(reports, said, send));
    loop {
        tokio::select! {
            stream = gateway.connection.accept_stream() => {
                let Ok(stream) = stream else { break };
                flows.spawn(carry(gateway.clone(), stream));
            }
            Some(_) = flows.join_next(), if !flows.is_empty() => {}
            Some(_) = listeners.join_next(), if !listeners.is_empty() => {}
            // Behind its hello the near gateway asks for listeners. Whatever else comes is the end.
            message = messages.next() => {
                let asked = message.ok().and_then(|message| Listen::decode(&message).ok());
                match asked.filter(|_| listeners.len() < LISTENERS_MAX) {
                    Some(asked) => {
                        listeners.spawn(listen::run(gateway.clone(), asked, say.clone()));
                    }
                    None => break,
                }
            }
        }
    }
    // A listener removes its socket when its task is dropped. The process may end as soon as this function returns.
    listeners.shutdown().await;
    Ok(())
}

/// Connects a flow and relays it.
async fn carry(gateway: Arc<Gateway>, stream: Stream) {
    let (mut send, receive) = stream.split();
    let mut messages = Messages::new(receive);
    // A near gateway that says nothing, or gives up, is told nothing.
    let Ok(Ok(message)) = timeout(HEAD_TIMEOUT, messages.next()).await else { return };
    let (receive, rest) = messages.into_rest();
    let (room, connected) = {
        let connect = connect(&gateway, &message);
        tokio::select! {
            connected = connect => connected,
            // Before the end of the stream this is an error: the near gateway does not wait any more.
            _ = send.delivered() => return,
        }
    };
    let answer = match &connected {
        Ok(socket) => Answer::connected(socket.local_addr()),
        Err(answer) => answer.clone(),
    };
    if send.write_chunk(Bytes::from(framed(&answer.encode()))).await.is_err() {
        return;
    }
    let Ok(socket) = connected else {
        send.finish();
        return;
    };
    let place = gateway.reports.enter(send.id().0);
    let relay = Relay::new(socket, (send, receive), Begin::Bytes(rest), place.meters());
    relay.run().await;
    drop((place, room));
}

/// Connects a flow to its target, as far as there is room. The room is held as long as the flow.
async fn connect<'a>(
    gateway: &'a Gateway,
    message: &[u8],
) -> (Option<Room<'a>>, Result<Socket, Answer>) {
    let open = match Open::decode(message) {
        Ok(open) => open,
        Err(error) => {
            return (None, Err(Answer::failed(Verdict::NotUnderstood, &error.to_string())));
        }
    };
    let room = match gateway.room() {
        Ok(room) => room,
        Err(answer) => return (None, Err(answer)),
    };
    let Ok(_pending) = gateway.pending.try_acquire() else {
        let text = format!("{PENDING_MAX} connections of the far gateway wait for their targets");
        return (None, Err(Answer::failed(Verdict::OutOfResources, &text)));
    };
    let connected = timeout(CONNECT_TIMEOUT, dial::dial(&open, &gateway.targets)).await;
    let seconds = CONNECT_TIMEOUT.as_secs();
    let late = |_| Err(Answer::failed(Verdict::TimedOut, &format!("no answer in {seconds} s")));
    (Some(room), connected.unwrap_or_else(late))
}
