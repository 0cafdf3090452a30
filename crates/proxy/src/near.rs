//! The near gateway: it listens, and takes in the flows of programs.

mod backward;
mod direct;
mod entry;
mod listeners;
mod uplink;
mod users;

pub(crate) use uplink::Uplink;

use crate::args::FarWay;
use crate::args::{Action, Place, Plan, ProxyArgs, SwitchArgs};
use crate::background::{self, Part};
use crate::board::{Board, sample, write_back};
use crate::command::Running;
use crate::limits::{ASKING_MAX, FLOWS_MAX, raise_open_files, workers};
use crate::link::Link;
use crate::output;
use crate::page::Page;
use crate::socket::Socket;
use crate::status_socket::{StatusSocket, show, turn};
use crate::switch::{Far, Mode, Route, Switch};
use crate::transparent::{Cgroup, Prepared, Transparent};
use crate::unix::UnixPort;
use anyhow::{Context, Error, Result};
use direct::{Direct, direct};
use entry::Entry;
use hikyaku_console::{Exit, ExitCode, Interrupt, Noise, Scope, Tone, causes, print_error, say};
use hikyaku_forward::{Answer, Open};
use hikyaku_reach::Connection;
use hikyaku_units::DataSize;
use listeners::{Bound, Listener};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::sleep;
use uplink::{Listener as FarListener, Reach};
use users::Users;

/// Threads of the runtime have so long to end; one that looks up a name or waits for a process is left behind.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);
/// After an error of `accept`, such as too many open files, the next attempt is made after this long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// While the gateway drains it is looked so often whether flows of the far gateway's listeners are left.
const DRAIN_LOOK: Duration = Duration::from_millis(100);

/// What all flows share.
pub(crate) struct Gateway {
    pub(crate) uplink: Arc<Uplink>,
    pub(crate) switch: Arc<Switch>,
    direct: Direct,
    pub(crate) flows: Semaphore,
    /// Connections of programs that may still say where they want to go.
    asking: Arc<Semaphore>,
    pub(crate) board: Arc<Board>,
    users: Users,
}

impl Gateway {
    /// How a new flow goes, by which connection, and what is asked there.
    ///
    /// # Errors
    ///
    /// There is no such connection, or the target is not reached that way: what the program is told.
    async fn connect(&self, open: &Open) -> Result<(Route, Connection, Open), Answer> {
        match self.switch.route() {
            Route::Carried => Ok((Route::Carried, self.uplink.connection().await?, open.clone())),
            Route::Direct => {
                let open = direct(open)?;
                Ok((Route::Direct, self.direct.connection().await?, open))
            }
        }
    }

    /// The far gateway is there, or not.
    fn set_far(&self, far: Far) {
        if let Err(error) = self.switch.set_far(far) {
            say(Tone::Error, causes(&error));
        }
    }

    /// Tells of a flow, if that is wanted.
    pub(crate) fn tell(&self, line: impl FnOnce() -> String) {
        if Noise::chosen().verbosity() > 0 {
            print_error(format_args!("{}\n", line()));
        }
    }
}

/// What a gateway that carries flows has.
pub(crate) struct Ready {
    /// The addresses that are listened on, and what each is.
    pub(crate) ports: Vec<(SocketAddr, String)>,
    /// Unix sockets here, and listeners of the far gateway, in words; and what each is.
    pub(crate) others: Vec<(String, String)>,
    /// What is taken in of other hosts, in words.
    pub(crate) taken: Option<String>,
    /// The control group for the command whose connections are taken in.
    pub(crate) cgroup: Option<Arc<Cgroup>>,
    /// The page, if there is an HTTP proxy.
    pub(crate) page: Option<Arc<Page>>,
    pub(crate) board: Arc<Board>,
}

/// A near gateway that is to be run.
pub(crate) struct Near<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) way: FarWay,
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

/// Carries flows until a signal comes, the user drains the gateway or the command of `--for-command` ends. `memory` is what
/// this process may take. Returns the exit of the command.
///
/// # Errors
///
/// A port cannot be listened on, or the far side cannot be reached.
pub fn run(args: &ProxyArgs, memory: DataSize, interrupt: &Interrupt) -> Result<Exit> {
    let turn =
        |mode, which: &SwitchArgs| turn(mode, which.process).map(|()| ExitCode::Success.into());
    match &args.action {
        None => {}
        Some(Action::Status(status)) => {
            show(status.form.form())?;
            return Ok(ExitCode::Success.into());
        }
        Some(Action::On(which)) => return turn(Mode::On, which),
        Some(Action::Off(which)) => return turn(Mode::Off, which),
        Some(Action::Drain(which)) => return turn(Mode::Draining, which),
    }
    let plan = args.plan()?;
    let part = args.background.then(Part::of_this);
    let notes = args.others.check()?;
    for note in notes.iter().filter(|_| part != Some(Part::First)) {
        say(Tone::Note, note);
    }
    if part == Some(Part::First) {
        return background::start();
    }
    interrupt.listen().context("cannot listen for Ctrl-C")?;
    let scope = interrupt.scope();
    let way = args.way(&plan.far, (memory, scope.clone()))?;
    let near = Near { plan: &plan, way, scope: scope.clone(), files: Files::Left };
    let (form, mut command) = (args.output(), None);
    let ended = near.run(async |ready: Ready| match (part, &ready.cgroup) {
        (Some(_), _) => background::leave(&ready).await,
        (None, None) => output::tell(form, &ready).await,
        // Standard output is the command's.
        (None, Some(cgroup)) => {
            let (running, end) = Running::start(args.command(), cgroup, &scope)?;
            command = Some(running);
            Ok(end.await?)
        }
    });
    if ended.is_err() {
        // Without its gateway the command would go on by another way, which nobody has asked for.
        scope.stop();
    }
    let exit = command.map_or(Ok(ExitCode::Success.into()), Running::exit);
    interrupt.end_by_signal();
    ended.and(exit)
}

impl Near<'_> {
    /// Carries flows as long as `work` does not end, no signal comes and the user does not drain the gateway.
    pub(crate) fn run(self, work: impl AsyncFnOnce(Ready) -> Result<()>) -> Result<()> {
        let Self { plan, way, scope, files } = self;
        raise_open_files();
        let users = Users::of(plan.users)?;
        // Ports are taken before anything is started: a port that is taken is the most likely mistake.
        let board = Board::new(plan.far.host().to_owned(), Instant::now());
        let (bound, page) = listeners::bind(plan, &board)?;
        let prepared =
            plan.taken.as_ref().map(|taken| Ok::<_, Error>((Prepared::open(taken)?, taken)));
        let prepared = prepared.transpose()?;
        let link = Link::open(&plan.far, &way)?;
        // A signal that comes while nothing has to be stopped ends the process at once, and would leave the rules of the
        // transparent gateway in the kernel.
        let end = Arc::new(Notify::new());
        let told = end.clone();
        let registration = scope.on_stop(move || told.notify_one());
        // Not before: what is taken in goes to the far gateway only.
        let taken = prepared.map(|(prepared, taken)| prepared.take(taken)).transpose()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers())
            .enable_all()
            .build()
            .context("cannot start a thread")?;
        if let Some(advice) = &link.advice {
            say(Tone::Note, advice);
        }
        let gateway = Arc::new(Gateway {
            uplink: Arc::new(Uplink::new(link, plan.far.host())),
            switch: Switch::new(plan.when_down, taken.as_ref().map(Transparent::rules)),
            direct: Direct::default(),
            flows: Semaphore::new(FLOWS_MAX as usize),
            asking: Arc::new(Semaphore::new(ASKING_MAX)),
            board: board.clone(),
            users,
        });
        let (uplink, switch) = (gateway.uplink.clone(), gateway.switch.clone());
        sample::start(board.clone(), uplink.clone(), switch.clone())
            .context("cannot start a thread")?;
        if files == Files::WrittenBack {
            // Without it downloads are as they are without a gateway.
            let _ = write_back::start(board.clone());
        }
        let socket = StatusSocket::open(board.clone(), switch.clone());
        let reach = Reach { far: plan.far.clone(), way, remote: plan.remote.clone() };
        let ended = runtime.block_on(async {
            tokio::select! {
                () = end.notified() => Ok(()),
                ended = serve(&gateway, &reach, Ways { bound, page, taken }, work) => ended,
            }
        });
        switch.let_go();
        board.end();
        drop(socket);
        // All flows are dropped, and their sockets are reset, before the far side is told.
        runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
        uplink.close();
        drop((registration, gateway));
        ended
    }
}

/// What a gateway takes flows in by.
struct Ways {
    bound: Vec<Bound>,
    page: Option<Arc<Page>>,
    taken: Option<Transparent>,
}

async fn serve(
    gateway: &Arc<Gateway>,
    reach: &Reach,
    Ways { bound, page, taken }: Ways,
    work: impl AsyncFnOnce(Ready) -> Result<()>,
) -> Result<()> {
    let (greeted, remote) = uplink::begin(&gateway.uplink, reach).await?;
    let (mut listeners, mut ports, mut others) = (JoinSet::new(), Vec::new(), Vec::new());
    for Bound { listener, entry, label } in bound {
        let listener = match listener {
            Listener::Tcp(port) => {
                ports.push((port.local_addr().context("cannot listen")?, label));
                port.set_nonblocking(true).context("cannot listen")?;
                Port::Tcp(TcpListener::from_std(port).context("cannot listen")?)
            }
            Listener::Unix(port) => {
                others.push((port.to_string(), label));
                Port::Unix(port.ready().context("cannot listen")?)
            }
        };
        listeners.spawn(listen(gateway.clone(), listener, entry));
    }
    for FarListener { forward, port } in remote {
        let place = match &forward.place {
            Place::Port(listen) => crate::args::Listen { port, ..listen.clone() }.to_string(),
            Place::Socket(path) => path.to_string(),
        };
        others.push((format!("{place} of {}", reach.far.host()), forward.leads.to_string()));
    }
    let label = taken.as_ref().map(Transparent::label);
    let cgroup = taken.as_ref().and_then(Transparent::cgroup);
    // This ends when the gateway drains and its last flow is over.
    let take_in = async {
        let of_hosts = async {
            match taken {
                Some(taken) => taken.serve(gateway.clone()).await,
                None => Ok(()),
            }
        };
        let of_ports = async {
            while listeners.join_next().await.is_some() {}
            Ok(())
        };
        tokio::try_join!(of_hosts, of_ports)?;
        // There may be nothing but listeners of the far gateway.
        gateway.switch.draining().await;
        while gateway.board.has_flows() {
            sleep(DRAIN_LOOK).await;
        }
        Ok::<_, anyhow::Error>(())
    };
    let board = gateway.board.clone();
    let ready = Ready { ports, others, page, taken: label, cgroup, board };
    tokio::select! {
        done = work(ready) => done,
        ended = take_in => ended,
        never = uplink::keep(gateway, reach, greeted) => match never {},
    }
}

/// A port of the runtime.
enum Port {
    Tcp(TcpListener),
    Unix(UnixPort),
}

/// Takes in the flows of one port. When the gateway drains the port is given up, and this ends with the last flow.
async fn listen(gateway: Arc<Gateway>, port: Port, entry: Arc<Entry>) {
    // Flows that are left at the end are dropped, which resets their sockets.
    let (mut port, mut flows) = (Some(port), JoinSet::new());
    while port.is_some() || !flows.is_empty() {
        tokio::select! {
            accepted = accept(&gateway, port.as_ref()) => match accepted {
                Ok(Some(came)) => {
                    // Beyond the bound it is dropped, which resets it.
                    if let Ok(asking) = gateway.asking.clone().try_acquire_owned() {
                        flows.spawn(entry::carry(gateway.clone(), entry.clone(), came, asking));
                    }
                }
                Ok(None) => {}
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = flows.join_next(), if !flows.is_empty() => {}
            () = gateway.switch.draining(), if port.is_some() => port = None,
        }
    }
}

/// The next connection at a port that is not given up, and where its program is. `None` for one that is not admitted.
async fn accept(
    gateway: &Gateway,
    port: Option<&Port>,
) -> io::Result<Option<(Socket, Option<SocketAddr>)>> {
    let (socket, program) = match port {
        None => return std::future::pending().await,
        Some(Port::Unix(port)) => return Ok(Some((port.accept().await?.into(), None))),
        Some(Port::Tcp(port)) => port.accept().await?,
    };
    let is_ready = crate::socket::prepare(&socket).is_ok();
    let is_admitted = gateway.users.admit(program, socket.local_addr());
    if !is_admitted {
        gateway.tell(|| format!("{program}: a program of another user"));
    }
    Ok((is_ready && is_admitted).then(|| (socket.into(), Some(program))))
}
