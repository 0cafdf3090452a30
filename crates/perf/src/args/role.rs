//! The end that this process is, with its settings: what the arguments mean when they are taken together.

use super::{Common, DEFAULT_PORT, PerfArgs, Records, ThroughSsh, values};
use crate::compete::{Group, Kind as CompetitorKind};
use crate::mesh::MeshArgs;
use crate::output::Format;
use crate::plan::{Direction, Plan, StartUp};
use anyhow::Result;
use hikyaku_console::misuse;
use hikyaku_crypto::Fingerprint;
use hikyaku_units::{DataSize, Rate};
use std::path::PathBuf;
use values::Peer;

/// Which end this process is.
#[derive(Debug)]
pub(crate) enum Role {
    Client(Box<ClientArgs>),
    Server(Box<ServerArgs>),
    Mesh(Box<Mesh>),
}

/// A mesh, and how its results are printed.
#[derive(Debug)]
pub(crate) struct Mesh {
    pub(crate) mesh: MeshArgs,
    pub(crate) format: Format,
    pub(crate) logfile: Option<PathBuf>,
}

/// When a server ends beside its tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lifetime {
    UntilSignal,
    /// It ends as well when standard input does.
    WhileInput,
}

#[derive(Clone, Debug)]
pub(crate) struct ClientArgs {
    pub(crate) common: Common,
    pub(crate) host: String,
    pub(crate) ways: Ways,
    pub(crate) plan: Plan,
    pub(crate) start_up: StartUp,
    pub(crate) pin: Option<Fingerprint>,
    /// Set where the server is started through ssh.
    pub(crate) ssh: Option<Box<ThroughSsh>>,
    pub(crate) records: Records,
}

/// Directions in which data flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ways {
    /// One direction, given by the plan.
    One,
    /// Both directions at once, each by the same plan.
    Both,
}

#[derive(Debug)]
pub(crate) struct ServerArgs {
    pub(crate) common: Common,
    pub(crate) tests: Tests,
    pub(crate) rules: Rules,
    pub(crate) lifetime: Lifetime,
    pub(crate) log_dir: Option<PathBuf>,
}

/// Limits by which a server accepts or refuses tests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) competitors: Competitors,
    pub(crate) stalls: Stalls,
    pub(crate) tests: u32,
    /// Longest test, in seconds.
    pub(crate) time: Option<f64>,
    pub(crate) rate: Option<Rate>,
    pub(crate) memory: Option<DataSize>,
}

/// Whether a client may ask the server's receiving application to pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stalls {
    Allowed,
    Refused,
}

/// Whether a server runs competing flows for its clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Competitors {
    Allowed,
    Refused,
}

/// How many tests a server runs before it exits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tests {
    One,
    Any,
}

impl PerfArgs {
    /// The role that these arguments select. Fails if options contradict each other.
    pub(crate) fn role(self) -> Result<Role> {
        let mut common = self.common();
        if let Some(hosts) = self.records.mesh.clone() {
            let mesh = self.mesh(hosts);
            let mesh = Mesh { mesh, format: common.format, logfile: common.logfile };
            return Ok(Role::Mesh(Box::new(mesh)));
        }
        let Some(peer) = self.client.clone().or_else(|| self.peer.clone()) else {
            let tests = if self.one_off { Tests::One } else { Tests::Any };
            let rules = self.rules();
            if let Some(rate) = rules.rate {
                common.limit_window_to_rate(rate);
            }
            let lifetime = match self.while_stdin {
                true => Lifetime::WhileInput,
                false => Lifetime::UntilSignal,
            };
            let log_dir = self.records.log_dir;
            let server = ServerArgs { common, tests, rules, lifetime, log_dir };
            return Ok(Role::Server(Box::new(server)));
        };
        let (host, port, ssh) = match peer {
            Peer::Listening { host, port } => {
                self.refuse_without_ssh(&host)?;
                (host, port, None)
            }
            Peer::Ssh(destination) => {
                self.refuse_with_ssh(&destination.host)?;
                (destination.host.clone(), None, Some(Box::new(self.through_ssh(destination))))
            }
        };
        common.port = values::one_port(port, self.port)?.unwrap_or(DEFAULT_PORT);
        let plan = self.load.plan();
        plan.check()?;
        let ways = if self.load.bidir { Ways::Both } else { Ways::One };
        // Through ssh, transport options are set at both ends.
        if ways == Ways::One && ssh.is_none() {
            self.transport.check(plan.direction)?;
        }
        self.check_competitors(&plan)?;
        let leaves_out = self.records.sweep.is_some() && self.load.omit.is_none();
        let start_up = if leaves_out { StartUp::LeftOut } else { StartUp::Counted };
        let (pin, records) = (self.load.peer_key, self.records);
        let client = ClientArgs { common, host, ways, plan, start_up, pin, ssh, records };
        Ok(Role::Client(Box::new(client)))
    }

    fn rules(&self) -> Rules {
        let limits = &self.limits;
        let stalls = if limits.allow_stall { Stalls::Allowed } else { Stalls::Refused };
        let competitors = if self.no_compete { Competitors::Refused } else { Competitors::Allowed };
        Rules {
            competitors,
            stalls,
            tests: limits.max_tests,
            time: limits.max_time,
            rate: limits.max_rate,
            memory: limits.max_memory,
        }
    }

    /// Refuses competing flows that cannot run with the other options.
    fn check_competitors(&self, plan: &Plan) -> Result<()> {
        let Some(compete) = &plan.compete else { return Ok(()) };
        let device = self.bind.as_ref().and_then(|local| local.device.as_ref());
        if device.is_some() && compete.count(CompetitorKind::Tcp) > 0 {
            let text = "--compete tcp cannot bind to an interface";
            return Err(misuse(text, "-B without %DEV"));
        }
        let has_policy =
            |group: &Group| group.kind == CompetitorKind::Hikyaku && group.manner.is_some();
        if plan.direction == Direction::Download && compete.groups.iter().any(has_policy) {
            return Err(values::misplaced("--policy", "sends, and so do the competing flows"));
        }
        Ok(())
    }
}
