//! What is ordered of a copy from or to servers: the user's choice, and how data travel.

use super::ends::{has_daemons, hosts, ways};
use crate::log::Direction;
use crate::memory;
use crate::plan::{By, CopyPlan};
use crate::table::TABLE;
use anyhow::Result;
use hikyaku_console::{Effect, Key, Scope, Settings, Tone, Way, begun, headline, say};
use hikyaku_fs::Patience;
use hikyaku_mover::{
    Choice, Claims, Expected, Hashes, Loss, Modes, Parameters, Streams, Together, Writing, Written,
};
use hikyaku_reach::dial::{Ending, Via};
use hikyaku_reach::settings::{
    self, CIPHER, POLICY, RATE, RETRY_FOR, TIMEOUT, UDP, UDP_PORTS, WINDOW,
};
use hikyaku_reach::tcp::Pipes;
use hikyaku_session::least;
use hikyaku_stores::{Cookies, Fallback, HostOptions, Location, Opening, Storage, Times};
use hikyaku_transfer::{Existing, Pass};
use hikyaku_units::DataSize;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Connections to a storage at most, if as many are used as bring more.
pub(super) const CONNECTIONS_MAX: u32 = 64;

/// A copy as it was ordered.
pub(super) struct Order<'a> {
    pub(super) plan: &'a CopyPlan,
    /// Ends the copy when it is stopped.
    pub(super) scope: &'a Scope,
    pub(super) parameters: Parameters,
    /// The time in which a lost connection is made again, if the user has set one.
    pub(super) retry_for: Option<Duration>,
    /// The longest silence of a connection, if the user has set one.
    pub(super) silence: Option<Duration>,
    /// Where the files go.
    pub(super) direction: Direction,
    /// What may carry connections to daemons.
    pub(super) via: Via,
    /// The cookies of the user's file, for web servers.
    cookies: Cookies,
    claims: Mutex<Claims>,
    /// The hosts behind ssh that were connected to.
    hosts: Mutex<Vec<Storage>>,
    /// Whether the table of options has noted that metadata are kept in part only.
    is_told: bool,
    /// What was noted of metadata that are not kept.
    noted: Mutex<BTreeSet<Loss>>,
}

impl<'a> Order<'a> {
    pub(super) fn new(plan: &'a CopyPlan, scope: &'a Scope) -> Result<Self> {
        let (settings, hosts, ways) = (settings::of_user()?, hosts(plan), ways(plan)?);
        let mut parameters = plan.transport.daemons;
        let retry_for = plan.transport.retry_for.or(least(&settings, &hosts, &RETRY_FOR)?);
        let silence = plan.transport.way.typed.timeout.or(least(&settings, &hosts, &TIMEOUT)?);
        let client = &mut parameters.client;
        client.patience = retry_for.map_or(client.patience, |time| time.min(client.patience));
        let typed = plan.transport.way.typed.rate;
        client.rate = client.rate.or(typed).or(least(&settings, &hosts, &RATE)?);
        client.window = client.window.or(least(&settings, &hosts, &WINDOW)?);
        if matches!(&plan.target, Location::Servers(servers) if servers.servers.len() == 1) {
            // All that the only server gets is the whole copy.
            client.rate = client.rate.into_iter().chain(parameters.servers.rate).min();
        }
        let (by, udp) = (plan.transport.by, plan.transport.way.typed.udp);
        let mut via = if has_daemons(plan) { by.of_daemon(udp)? } else { Via::default() };
        if by == By::Auto && least(&settings, &hosts, &UDP)? == Some(false) {
            via = Via::Tcp;
        }
        for line in idle_settings(&settings, &hosts, &ways)? {
            say(Tone::Note, line);
        }
        let direction = match &plan.target {
            Location::Local(_) => Direction::In,
            _ => Direction::Out,
        };
        let (claims, hosts) = (Mutex::default(), Mutex::default());
        let in_part = |way: &Way| {
            let mut rows = TABLE.rows.iter().filter(|row| row.id == "times");
            rows.any(|row| matches!(TABLE.effect(row, *way, &[]), Effect::InPart(_)))
        };
        let is_told = ways.iter().any(in_part);
        Ok(Self {
            plan,
            scope,
            parameters,
            retry_for,
            silence,
            direction,
            via,
            cookies: plan.transport.cookies.read()?,
            claims,
            hosts,
            is_told,
            noted: Mutex::default(),
        })
    }

    /// Notes a connection to a host behind ssh, without which the copy cannot go on.
    pub(super) fn depends_on(&self, host: &Storage) {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).push(host.clone());
    }

    /// Whether the connection to a host behind ssh was lost. Then the copy can begin again: it connects to all anew, and names
    /// that it has made are not those of others.
    pub(super) fn has_lost_host(&self) -> bool {
        let hosts = std::mem::take(&mut *self.hosts.lock().unwrap_or_else(PoisonError::into_inner));
        *self.claims.lock().unwrap_or_else(PoisonError::into_inner) = Claims::default();
        hosts.iter().any(Storage::is_lost)
    }

    /// What is copied of a part. A storage adds which of its sources were written as directories.
    pub(super) fn choice(&self) -> Choice<'_> {
        Choice {
            depth: self.plan.options.rules.depth,
            patterns: &self.plan.options.patterns,
            listed: &self.plan.options.files,
            dirs: &[],
            contents: &[],
            named_links: self.plan.options.rules.links,
            links: self.plan.options.rules.links,
            existing: self.plan.options.rules.existing,
            same: self.plan.stored.same,
            times: self.plan.stored.times,
            pass: self.plan.options.rules.pass,
            resume: Some(self.plan.options.rules.resume),
            writing: self.writing(),
            hashes: self.hashes(),
            expected: self.expected(),
        }
    }

    /// How storages of sources are opened.
    pub(super) fn opening(&self) -> Opening {
        let (plan, rules) = (self.plan, &self.plan.options.rules);
        Opening {
            client: None,
            endpoint: plan.transport.endpoint.clone(),
            hosts: HostOptions {
                way: plan.transport.way.clone(),
                by: plan.transport.by.of_host(),
                memory: DataSize::from_bytes(memory::available()),
                scope: self.scope.clone(),
                fallback: Some(by_sftp(plan)),
            },
            connections: self.requests(CONNECTIONS_MAX),
            silence: self.silence,
            family: plan.transport.way.ssh.family,
            recorded: None,
            depth: rules.depth,
            times: if rules.preserve.modes() { Times::Noted } else { Times::Written },
            cookies: self.cookies.clone(),
        }
    }

    /// Requests to a storage at once: the user's number, or else this one.
    pub(super) const fn requests(&self, auto: u32) -> u32 {
        match self.plan.transport.way.pipes {
            Pipes::Fixed(count) => count,
            Pipes::Auto => auto,
        }
    }

    /// How the storage of the target is opened.
    pub(super) fn opening_of_target(&self) -> Opening {
        let connections = self.requests(Opening::CONNECTIONS);
        Opening { connections, recorded: begun(), ..self.opening() }
    }

    /// What happens to files of the same name.
    pub(super) const fn existing(&self) -> Existing {
        self.plan.options.rules.existing
    }

    /// Whether anything is written.
    pub(super) const fn pass(&self) -> Pass {
        self.plan.options.rules.pass
    }

    /// How files are written.
    pub(super) fn writing(&self) -> Writing {
        (&self.plan.options.rules).into()
    }

    /// Whether the user wants a list of the hashes.
    pub(super) const fn hashes(&self) -> Hashes {
        if self.plan.report.manifest.is_some() { Hashes::Listed } else { Hashes::Dropped }
    }

    /// The condition for each file before it gets its name.
    pub(super) fn expected(&self) -> Option<&dyn Expected> {
        self.plan.condition.as_ref().map(|condition| -> &dyn Expected { &*condition.0 })
    }

    /// What the sources of a part have in common with those of the others.
    pub(super) fn together(&self, part: &[Location]) -> Together<'_> {
        Together { others: self.plan.sources.len() - part.len(), claims: &self.claims }
    }

    /// How a target is written that takes bytes in order only: a FIFO is waited for until the copy is stopped.
    pub(super) fn streams(&self) -> Streams {
        let scope = self.scope.clone();
        Streams::Written(Patience::new(move || scope.stop_cause().is_none()))
    }

    /// Notes what the target does not keep, if the user has asked for it and was not told before: each loss once a command.
    pub(super) fn note(&self, losses: &BTreeSet<Loss>) {
        let preserve = self.plan.options.rules.preserve;
        let is_asked = |loss: &Loss| match loss {
            Loss::Times => preserve.times() && !self.is_told,
            Loss::Modes => !self.is_told,
            Loss::SetId | Loss::Links => true,
        };
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        for loss in losses.iter().filter(|loss| is_asked(loss)) {
            if noted.insert(*loss) {
                say(Tone::Note, loss);
            }
        }
    }

    /// Which permission bits new files get.
    pub(super) const fn modes(&self) -> Modes {
        if self.plan.options.rules.preserve.modes() { Modes::Kept } else { Modes::Usual }
    }
}

/// What is told of settings that protect something and have no effect on this way: the options of the same names would be
/// refused, but settings are of many copies.
fn idle_settings(settings: &Settings, hosts: &[String], ways: &[Way]) -> Result<Vec<String>> {
    let set = [
        (POLICY.name, POLICY.flag, is_set(settings, hosts, &POLICY)?),
        (CIPHER.name, CIPHER.flag, is_set(settings, hosts, &CIPHER)?),
        (UDP_PORTS.name, UDP_PORTS.flag, is_set(settings, hosts, &UDP_PORTS)?),
    ];
    let is_idle = |flag: &str| {
        let rows = || TABLE.rows.iter().filter(|row| row.flag == flag);
        let mut effects =
            ways.iter().flat_map(|way| rows().map(|row| TABLE.effect(row, *way, &[])));
        effects.all(|effect| matches!(effect, Effect::Nothing | Effect::Refused))
    };
    let idle = set.into_iter().filter(|(_, flag, is_set)| *is_set && is_idle(flag));
    let named = ways.first().map(|way| TABLE.named(*way)).unwrap_or_default();
    let told = |name| format!("'{name}' of the settings has no effect on {named}");
    Ok(idle.map(|(name, ..)| told(name)).collect())
}

/// Notes options without effect by SFTP where a host has no hikyaku that can be started, or refuses them.
fn by_sftp(plan: &CopyPlan) -> Fallback {
    // The search for hikyaku, and the attempt to install it, have obeyed these options.
    let given = ["remote_path", "bootstrap", "far_binary"]
        .iter()
        .fold(plan.given.clone(), |given, id| given.without(id));
    Arc::new(move |_| {
        let notes = TABLE.check(&given, &[Way::Sftp]).map_err(|refused| {
            // The remedy stays where the user looks for it.
            let text = headline(&refused);
            refused.context(format!("the host has no hikyaku that can be started, and {text}"))
        })?;
        notes.iter().for_each(|note| say(Tone::Note, note));
        Ok(())
    })
}

/// How a target in a store was written.
pub(super) fn written(ending: Ending) -> Written {
    if ending == Ending::Name { Written::AsName } else { Written::AsDirectory }
}

/// Whether the user has set a value for one of the hosts.
fn is_set<T>(settings: &Settings, hosts: &[String], key: &Key<T>) -> Result<bool> {
    let set = hosts.iter().map(|host| settings.get(key, host)).collect::<Result<Vec<_>, _>>()?;
    Ok(set.iter().any(Option::is_some))
}
