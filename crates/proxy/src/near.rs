//! The near gateway: it listens, and takes in the flows of programs.

mod entry;
mod listeners;

use crate::args::{Plan, ProxyArgs};
use crate::control::{hear_hello, say_hello};
use crate::limits::{FLOWS_MAX, raise_open_files, workers};
use crate::trouble;
use anyhow::{Context, Result};
use entry::Entry;
use hikyaku_console::{Interrupt, Scope, print, print_error};
use hikyaku_reach::{Connection, Observer, Way};
use hikyaku_units::DataSize;
use listeners::Bound;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The far gateway has so long for its hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);
/// Threads of the runtime have so long to end; one that looks up a name or waits for a process is left behind.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);
/// After an error of `accept`, such as too many open files, the next attempt is made after this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What all flows share.
pub(crate) struct Gateway {
    pub(crate) connection: Connection,
    pub(crate) flows: Semaphore,
    pub(crate) tell: Tell,
}

/// Whether each connection is told of on standard error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tell {
    Nothing,
    Flows,
}

impl Gateway {
    /// Tells of a flow, if that is wanted.
    pub(crate) fn tell(&self, line: impl FnOnce() -> String) {
        if self.tell == Tell::Flows {
            print_error(format_args!("{}\n", line()));
        }
    }
}

/// A near gateway that is to be run.
pub(crate) struct Near<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) way: Way,
    pub(crate) tell: Tell,
    pub(crate) scope: Scope,
}

/// Carries flows until a signal comes or the far side is lost. `memory` is what this process may take.
///
/// # Errors
///
/// A port cannot be listened on, the far side cannot be reached, or is lost.
pub fn run(args: &ProxyArgs, memory: DataSize, interrupt: &Interrupt) -> Result<()> {
    let plan = args.plan()?;
    interrupt.listen().context("cannot listen for Ctrl-C")?;
    let scope = interrupt.scope();
    let tell = if args.verbosity() > 0 { Tell::Flows } else { Tell::Nothing };
    let way = args.way(memory, scope.clone(), tell.observer())?;
    let near = Near { plan: &plan, way, tell, scope };
    let ended = near.run(async |ports: Vec<(SocketAddr, String)>| {
        for (address, label) in ports {
            print(format!("listening on {address} ({label})\n"))?;
        }
        std::future::pending().await
    });
    interrupt.end_by_signal();
    ended
}

impl Tell {
    /// Who is told how the far side is reached.
    pub(crate) fn observer(self) -> Observer {
        match self {
            Self::Flows => Observer::new(|step| print_error(format_args!("{step}\n"))),
            Self::Nothing => Observer::default(),
        }
    }
}

impl Near<'_> {
    /// Carries flows as long as `work` does not end, no signal comes and the far side is there. `work` gets the
    /// addresses that are listened on.
    pub(crate) fn run(
        self,
        work: impl AsyncFnOnce(Vec<(SocketAddr, String)>) -> Result<()>,
    ) -> Result<()> {
        let Self { plan, way, tell, scope } = self;
        raise_open_files();
        // Ports are taken before anything is started: a port that is taken is the most likely mistake.
        let bound = listeners::bind(plan)?;
        let reached = way.open(&plan.destination).map_err(trouble::of_reach)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers())
            .enable_all()
            .build()
            .context("cannot start a thread")?;
        let end = Arc::new(Notify::new());
        let told = end.clone();
        let registration = scope.on_stop(move || told.notify_one());
        if let Some(advice) = &reached.advice {
            print_error(format_args!("hikyaku: {advice}\n"));
        }
        let gateway = Arc::new(Gateway {
            connection: reached.connection.clone(),
            flows: Semaphore::new(FLOWS_MAX as usize),
            tell,
        });
        let ended = runtime.block_on(async {
            tokio::select! {
                () = end.notified() => Ok(()),
                ended = serve(&gateway, bound, work) => {
                    let reason = gateway.connection.close_reason();
                    let host = plan.destination.host.as_str();
                    match (ended, reason) {
                        (Err(_) | Ok(Served::Lost), Some(reason)) => {
                            Err(trouble::of_close(host, &reason, &reached.fate))
                        }
                        (Err(error), None) => Err(error),
                        (Ok(_), _) => Ok(()),
                    }
                }
            }
        });
        // All flows are dropped, and their sockets are reset, before the far side is told.
        runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
        gateway.connection.close(hikyaku_net::code::DONE, "");
        drop((registration, gateway, reached));
        ended
    }
}

/// Why flows are no longer carried.
enum Served {
    /// The work is done.
    Done,
    /// The connection to the far side is over.
    Lost,
}

async fn serve(
    gateway: &Arc<Gateway>,
    bound: Vec<Bound>,
    work: impl AsyncFnOnce(Vec<(SocketAddr, String)>) -> Result<()>,
) -> Result<Served> {
    let (mut send, mut receive) = gateway.connection.open_stream().await?.split();
    say_hello(&mut send).await?;
    let hello = timeout(HELLO_TIMEOUT, hear_hello(&mut receive)).await;
    hello.context("the far side does not say hello")??;
    let (mut listeners, mut ports) = (JoinSet::new(), Vec::new());
    for Bound { listener, entry, label } in bound {
        ports.push((listener.local_addr().context("cannot listen")?, label));
        listener.set_nonblocking(true).context("cannot listen")?;
        let listener = TcpListener::from_std(listener).context("cannot listen")?;
        listeners.spawn(listen(gateway.clone(), listener, entry));
    }
    tokio::select! {
        done = work(ports) => done.map(|()| Served::Done),
        _ = gateway.connection.closed() => Ok(Served::Lost),
    }
}

/// Takes in the flows of one port.
async fn listen(gateway: Arc<Gateway>, listener: TcpListener, entry: Arc<Entry>) {
    // Flows that are left at the end are dropped, which resets their sockets.
    let mut flows = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, program)) => {
                    if crate::socket::prepare(&socket).is_ok() {
                        flows.spawn(entry::carry(gateway.clone(), entry.clone(), socket, program));
                    }
                }
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = flows.join_next(), if !flows.is_empty() => {}
        }
    }
}
