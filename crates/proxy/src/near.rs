//! The near gateway: it listens, and takes in the flows of programs.

mod entry;
mod listeners;

use crate::args::{Action, AnyUser, Plan, ProxyArgs};
use crate::board::{Board, sample, write_back};
use crate::control::{Messages, say_hello};
use crate::limits::{FLOWS_MAX, raise_open_files, workers};
use crate::link::Link;
use crate::page::Page;
use crate::status_socket::{Format, Socket, show};
use crate::transparent::Transparent;
use crate::trouble;
use anyhow::{Context, Result};
use entry::Entry;
use hikyaku_console::{Interrupt, Scope, print_error};
use hikyaku_forward::Report;
use hikyaku_reach::{Connection, Observer, Way};
use hikyaku_tcp::Diag;
use hikyaku_units::DataSize;
use listeners::Bound;
use rustix::process::geteuid;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
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
    pub(crate) board: Arc<Board>,
    users: Users,
}

/// Whose programs may use the listeners, of those of this machine.
enum Users {
    /// Everybody's.
    Any,
    /// This user's, and root's.
    Own(Mutex<Diag>),
}

impl Users {
    /// As the plan says. Where the kernel does not tell of sockets, everybody's.
    fn of(plan: &Plan) -> Self {
        match (plan.users, Diag::new()) {
            (AnyUser::Refused, Ok(diag)) => Self::Own(Mutex::new(diag)),
            (AnyUser::Refused, Err(_)) | (AnyUser::Allowed, _) => Self::Any,
        }
    }

    /// Whether a program may use a listener. One of another machine has come to a listener that is for other hosts (`-g`).
    fn admit(&self, program: SocketAddr, gateway: io::Result<SocketAddr>) -> bool {
        let (Self::Own(diag), Ok(gateway)) = (self, gateway) else { return true };
        let mut diag = diag.lock().unwrap_or_else(PoisonError::into_inner);
        let theirs = diag.queues(program, gateway).ok().flatten();
        theirs.is_none_or(|socket| [0, geteuid().as_raw()].contains(&socket.uid))
    }
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

/// What a gateway that carries flows has.
pub(crate) struct Ready {
    /// The addresses that are listened on, and what each is.
    pub(crate) ports: Vec<(SocketAddr, String)>,
    /// What is taken in of other hosts, in words.
    pub(crate) taken: Option<String>,
    /// The page, if there is an HTTP proxy.
    pub(crate) page: Option<Arc<Page>>,
    pub(crate) board: Arc<Board>,
}

/// A near gateway that is to be run.
pub(crate) struct Near<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) way: Way,
    pub(crate) tell: Tell,
    pub(crate) scope: Scope,
    pub(crate) files: Files,
}

/// What becomes of the files that programs write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Files {
    /// The kernel writes them to the disk when it wants to.
    Left,
    /// They are written to the disk steadily.
    WrittenBack,
}

/// Carries flows until a signal comes or the far side is lost. `memory` is what this process may take.
///
/// # Errors
///
/// A port cannot be listened on, the far side cannot be reached, or is lost.
pub fn run(args: &ProxyArgs, memory: DataSize, interrupt: &Interrupt) -> Result<()> {
    if let Some(Action::Status(status)) = &args.action {
        return show(if status.json { Format::Json } else { Format::Text });
    }
    let plan = args.plan()?;
    interrupt.listen().context("cannot listen for Ctrl-C")?;
    let scope = interrupt.scope();
    let tell = if args.verbosity() > 0 { Tell::Flows } else { Tell::Nothing };
    let way = args.way(memory, scope.clone(), tell.observer())?;
    let files = Files::Left;
    let near = Near { plan: &plan, way, tell, scope, files };
    let output = args.output();
    let ended = near.run(async |ready: Ready| output.tell(&ready).await);
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
    /// Carries flows as long as `work` does not end, no signal comes and the far side is there.
    pub(crate) fn run(self, work: impl AsyncFnOnce(Ready) -> Result<()>) -> Result<()> {
        let Self { plan, way, tell, scope, files } = self;
        raise_open_files();
        // Ports are taken before anything is started: a port that is taken is the most likely mistake.
        let board = Board::new(plan.far.host().to_owned(), Instant::now());
        let (bound, page) = listeners::bind(plan, &board)?;
        let link = Link::open(&plan.far, &way)?;
        // Not before: what is taken in goes to the far gateway only.
        let taken = plan.taken.as_ref().map(Transparent::open).transpose()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers())
            .enable_all()
            .build()
            .context("cannot start a thread")?;
        let end = Arc::new(Notify::new());
        let told = end.clone();
        let registration = scope.on_stop(move || told.notify_one());
        if let Some(advice) = &link.advice {
            print_error(format_args!("hikyaku: {advice}\n"));
        }
        let gateway = Arc::new(Gateway {
            connection: link.connection.clone(),
            flows: Semaphore::new(FLOWS_MAX as usize),
            tell,
            board: board.clone(),
            users: Users::of(plan),
        });
        sample::start(board.clone(), link.connection.clone()).context("cannot start a thread")?;
        if files == Files::WrittenBack {
            // Without it downloads are as they are without a gateway.
            let _ = write_back::start(board.clone());
        }
        let socket = Socket::open(board.clone());
        let ended = runtime.block_on(async {
            tokio::select! {
                () = end.notified() => Ok(()),
                ended = serve(&gateway, Ways { bound, page, taken }, work) => {
                    let reason = gateway.connection.close_reason();
                    let host = plan.far.host();
                    match (ended, reason) {
                        (Err(_) | Ok(Served::Lost), Some(reason)) => {
                            Err(trouble::of_close(host, &reason, &link.fate))
                        }
                        (Err(error), None) => Err(error),
                        (Ok(_), _) => Ok(()),
                    }
                }
            }
        });
        board.end();
        drop(socket);
        // All flows are dropped, and their sockets are reset, before the far side is told.
        runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
        gateway.connection.close(hikyaku_net::code::DONE, "");
        drop((registration, gateway, link));
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

/// What a gateway takes flows in by.
struct Ways {
    bound: Vec<Bound>,
    page: Option<Arc<Page>>,
    taken: Option<Transparent>,
}

async fn serve(
    gateway: &Arc<Gateway>,
    Ways { bound, page, taken }: Ways,
    work: impl AsyncFnOnce(Ready) -> Result<()>,
) -> Result<Served> {
    let (mut send, receive) = gateway.connection.open_stream().await?.split();
    let mut messages = Messages::new(receive);
    say_hello(&mut send).await?;
    let hello = timeout(HELLO_TIMEOUT, messages.hello()).await;
    hello.context("the far side does not say hello")??;
    let (mut listeners, mut ports) = (JoinSet::new(), Vec::new());
    for Bound { listener, entry, label } in bound {
        ports.push((listener.local_addr().context("cannot listen")?, label));
        listener.set_nonblocking(true).context("cannot listen")?;
        let listener = TcpListener::from_std(listener).context("cannot listen")?;
        listeners.spawn(listen(gateway.clone(), listener, entry));
    }
    let label = taken.as_ref().map(Transparent::label);
    let take_in = async {
        match taken {
            Some(taken) => taken.serve(gateway.clone()).await,
            None => std::future::pending().await,
        }
    };
    let ready = Ready { ports, page, taken: label, board: gateway.board.clone() };
    tokio::select! {
        done = work(ready) => done.map(|()| Served::Done),
        _ = gateway.connection.closed() => Ok(Served::Lost),
        ended = take_in => ended.map(|()| Served::Done),
        never = hear_reports(&gateway.board, messages) => match never {},
    }
}

/// Hears what the far gateway says of its flows. When it says no more, or something else, nothing is known of them.
async fn hear_reports(board: &Board, mut messages: Messages) -> Infallible {
    while let Ok(message) = messages.next().await {
        let Ok(report) = Report::decode(&message) else { break };
        board.hear(&report, Instant::now());
    }
    // The stream stays open: its end would be the end of the session.
    let _messages = messages;
    std::future::pending().await
}

/// Takes in the flows of one port.
async fn listen(gateway: Arc<Gateway>, listener: TcpListener, entry: Arc<Entry>) {
    // Flows that are left at the end are dropped, which resets their sockets.
    let mut flows = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, program)) => {
                    let is_ready = crate::socket::prepare(&socket).is_ok();
                    let is_admitted = gateway.users.admit(program, socket.local_addr());
                    if !is_admitted {
                        gateway.tell(|| format!("{program}: a program of another user"));
                    }
                    if is_ready && is_admitted {
                        flows.spawn(entry::carry(gateway.clone(), entry.clone(), socket, program));
                    }
                }
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = flows.join_next(), if !flows.is_empty() => {}
        }
    }
}
