//! Files that this machine fetches itself and writes where they go: from its own disks, by Gfarm's own protocol, and from
//! buckets.

use super::{Order, Outcome, follow};
use anyhow::{Context, Result};
use hikyaku_job::Opened;
use hikyaku_mover::{
    Direction, Done, Job, Modes, Plan, Pool, Redial, ServerId, Session, Taking, fetch,
};
use hikyaku_store::{Fetcher, Store};
use std::sync::Arc;

/// Files to fetch.
pub(super) struct Fetching<'a> {
    /// Who sends, by their numbers in the plan.
    pub(super) servers: &'a [Arc<dyn Fetcher>],
    /// Those of them that are connections to one machine, of which as many are used as bring more.
    pub(super) pools: &'a [Pool<'a>],
    /// Their names.
    pub(super) names: &'a [String],
    /// Daemons among them.
    pub(super) session: Option<&'a Session>,
    /// What they send, and the names that it gets.
    pub(super) plan: &'a Plan,
    /// Where the files go.
    pub(super) store: Arc<dyn Store>,
    /// In which order the target takes bytes.
    pub(super) taking: Taking,
    /// The journal, if the next run of the same command may continue what this one leaves.
    pub(super) journal: Option<&'a Opened>,
    /// Which way they go, seen from the names.
    pub(super) direction: Direction,
    /// Earlier failures.
    pub(super) done: Done,
    /// Which permission bits they get.
    pub(super) modes: Modes,
    /// Connects again to one that was lost.
    pub(super) redial: Redial<'a>,
    /// The remark about a server that was lost.
    pub(super) after_loss: &'a str,
    /// Remarks for the end of the copy.
    pub(super) remark: &'a (dyn Fn() -> Option<String> + Sync),
}

/// Fetches, and shows how far that is.
pub(super) fn bring(order: &Order<'_>, what: Fetching<'_>, outcome: &mut Outcome) -> Result<()> {
    let watch = outcome.watch(what.names, what.session, what.direction);
    // What goes out is counted as a whole.
    let servers = if what.direction == Direction::In { what.servers.len() } else { 0 };
    let meter = outcome.meter(servers, watch.as_ref());
    if what.plan.is_new_tree {
        meter.set_new_tree();
    }
    meter.add_plan(what.plan);
    let fetched = follow(order, (&meter, watch.as_ref()), outcome, |stop| {
        fetch(&Job {
            pools: what.pools,
            redial: what.redial,
            patience: order.parameters.client.patience,
            dress: what.modes.dress(),
            times: order.plan.stored.times,
            same: order.plan.stored.same,
            taking: what.taking,
            journal: what.journal,
            writing: order.writing(),
            hashes: order.hashes(),
            expected: order.expected(),
            existing: order.existing(),
            pass: order.pass(),
            parameters: order.parameters,
            ..Job::new(what.servers, what.plan, what.store.clone(), (&meter, stop))
        })
    })?;
    let fetched = fetched.context("cannot start a thread")?;
    let name = |server: &ServerId| what.names.get(server.0).map_or("", String::as_str);
    for (server, error) in &fetched.lost {
        outcome.board.remark(&format!("{}: {error}; {}", name(server), what.after_loss));
    }
    if let Some(remark) = (what.remark)() {
        outcome.board.remark(&remark);
    }
    let mut done = what.done;
    done.add_fetched(what.plan, fetched);
    let losses = std::mem::take(&mut done.losses);
    outcome.end(done, what.direction);
    order.note(&losses);
    Ok(())
}
