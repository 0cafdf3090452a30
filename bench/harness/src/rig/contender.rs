//! Who carries data in a trial: our own `perf`, or a program of another transport.

use crate::rig::context::Ctx;
use crate::rig::home::Home;
use crate::rig::line::{End, Line};
use crate::rig::transfer::Transfer;
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::rc::Rc;

/// A pair of programs that move bytes from memory to memory.
pub(crate) struct Contender {
    name: String,
    kind: Kind,
    seconds: f64,
    is_pinned: bool,
    home: Rc<Home>,
}

enum Kind {
    Perf(Perf),
    /// One of the programs under `bench/peers`, with more options.
    Peer {
        program: PathBuf,
        options: String,
    },
    /// Known bytes over our own transport, checked.
    Exact {
        program: PathBuf,
    },
    /// TCP, with more options for the client.
    Iperf3 {
        options: String,
    },
    /// Sealing and sockets alone, with more options for the sender.
    Rawloop {
        program: PathBuf,
        options: String,
    },
}

/// Settings of `hikyaku perf` beyond time and address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Perf {
    /// Where the program is.
    pub(crate) program: PathBuf,
    /// Options of the client.
    pub(crate) client: String,
    /// Options of the server.
    pub(crate) server: String,
    /// Options of both ends.
    pub(crate) both: String,
    /// Whether both ends run as nobody.
    pub(crate) as_nobody: bool,
}

impl Contender {
    fn new(name: impl Into<String>, kind: Kind, seconds: f64) -> Result<Self> {
        let home = Rc::new(Home::new()?);
        Ok(Self { name: name.into(), kind, seconds, is_pinned: false, home })
    }

    /// `hikyaku perf` for so many seconds, as it is without options, reporting every 0.2 s.
    pub(crate) fn perf(ctx: &Ctx, seconds: f64) -> Result<Self> {
        let program = ctx.hikyaku()?.to_path_buf();
        Self::perf_with(Perf { program, ..Perf::default() }, seconds)
    }

    /// `hikyaku perf` with more options.
    pub(crate) fn perf_with(perf: Perf, seconds: f64) -> Result<Self> {
        let mut contender = Self::new("hikyaku", Kind::Perf(perf.clone()), seconds)?;
        if perf.as_nobody {
            let program = contender.home.give_to_nobody(&perf.program)?;
            contender.kind = Kind::Perf(Perf { program, ..perf });
        }
        Ok(contender)
    }

    /// A program under `bench/peers`.
    pub(crate) fn peer(ctx: &Ctx, program: &str, options: &str, seconds: f64) -> Result<Self> {
        let kind = Kind::Peer { program: ctx.peer(program)?, options: options.to_owned() };
        Self::new(program, kind, seconds)
    }

    /// Bytes that are checked at the receiver.
    pub(crate) fn exact(ctx: &Ctx, seconds: f64) -> Result<Self> {
        let program = ctx.exact()?.to_path_buf();
        Self::new("exact", Kind::Exact { program }, seconds)
    }

    /// iperf3 over TCP.
    pub(crate) fn iperf3(options: &str, seconds: f64) -> Result<Self> {
        Self::new("iperf3", Kind::Iperf3 { options: options.to_owned() }, seconds)
    }

    /// The raw loop.
    pub(crate) fn rawloop(ctx: &Ctx, options: &str, seconds: f64) -> Result<Self> {
        let program = ctx.rawloop()?.to_path_buf();
        Self::new("rawloop", Kind::Rawloop { program, options: options.to_owned() }, seconds)
    }

    /// The client on the first processor, the server on the second.
    pub(crate) fn pinned(self) -> Self {
        Self { is_pinned: true, ..self }
    }

    /// With what the other one has learned and kept.
    pub(crate) fn at_home_of(self, other: &Self) -> Self {
        Self { home: Rc::clone(&other.home), ..self }
    }

    /// Who it is.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What to run at the server's end.
    pub(crate) fn server(&self, address: &str) -> Line {
        let line = match &self.kind {
            Kind::Perf(perf) => {
                let line = Line::new(&perf.program).words("perf -s -1").words(&perf.server);
                let line = line.words(&perf.both);
                if perf.as_nobody { line.unprivileged() } else { line }
            }
            Kind::Peer { program, options } => self.peer_line(program, "server", address, options),
            Kind::Exact { program } => self.exact_line(program, "server", address),
            Kind::Iperf3 { .. } => Line::new("iperf3").words("-s -1 -J -i 0.5"),
            Kind::Rawloop { program, .. } => {
                Line::new(program).words("recv --bind").arg(format!("{address}:{RAW_PORT}"))
            }
        };
        self.settled(line, End::Server)
    }

    /// What to run at the client's end.
    pub(crate) fn client(&self, address: &str) -> Line {
        let seconds = self.seconds.to_string();
        let line = match &self.kind {
            Kind::Perf(perf) => {
                let line = Line::new(&perf.program).words("perf -J -i 0.2 -c").arg(address);
                let line = line.args(["-t", &seconds]).words(&perf.both).words(&perf.client);
                if perf.as_nobody { line.unprivileged() } else { line }
            }
            Kind::Peer { program, options } => self.peer_line(program, "client", address, options),
            Kind::Exact { program } => self.exact_line(program, "client", address),
            Kind::Iperf3 { options } => {
                let line = Line::new("iperf3").words("-J -i 0.5 -c").arg(address);
                line.args(["-t", &seconds]).words(options)
            }
            Kind::Rawloop { program, options } => {
                let line = Line::new(program).words("send --to");
                let line = line.arg(format!("{address}:{RAW_PORT}"));
                line.args(["--seconds", &seconds]).words(options)
            }
        };
        self.settled(line, End::Client)
    }

    fn exact_line(&self, program: &PathBuf, role: &str, address: &str) -> Line {
        let line = Line::new(program).arg(role).arg("--address");
        let line = line.arg(format!("{address}:{PEER_PORT}"));
        line.arg("--seconds").arg(self.seconds.to_string())
    }

    fn peer_line(&self, program: &PathBuf, role: &str, address: &str, options: &str) -> Line {
        let line = Line::new(program).arg(role).arg("--address");
        let line = line.arg(format!("{address}:{PEER_PORT}"));
        let line = line.arg("--seconds").arg(self.seconds.to_string()).words(options);
        let takes_certificate = !program.ends_with("peer-udt");
        let certificate = self.home.of(End::Server).join("certificate.pem");
        if takes_certificate { line.arg("--certificate").arg(certificate) } else { line }
    }

    fn settled(&self, line: Line, end: End) -> Line {
        let line = self.home.of_line(line, end);
        match (self.is_pinned, end) {
            (false, _) => line,
            (true, End::Client) => line.pinned(0),
            (true, End::Server) => line.pinned(1),
        }
    }

    /// What was achieved, from what both ends printed.
    pub(crate) fn read(&self, client: &str, server: &str) -> Result<Transfer> {
        match &self.kind {
            Kind::Perf(_) => Transfer::of_perf(client),
            Kind::Peer { .. } | Kind::Exact { .. } => Transfer::of_peer(server),
            Kind::Iperf3 { .. } => Transfer::of_iperf3(client, server),
            Kind::Rawloop { .. } => Transfer::of_rawloop(server),
        }
        .with_context(|| format!("{} gave no figure", self.name))
    }
}

const PEER_PORT: u16 = 5300;
const RAW_PORT: u16 = 5301;
