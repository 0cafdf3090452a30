//! Transfers with files that this machine reads and writes without daemons between: by Gfarm's own protocol, and in buckets.

use super::{Order, Outcome, follow};
use anyhow::{Context, Result};
use hikyaku_fan::{
    DepositJob, Direction, Done, Job, Landing, Meter, Modes, Plan, ServerId, Session, Sources,
    Watch, deposit, fetch,
};
use hikyaku_store::{Fetcher, Store};
use std::sync::Arc;
use std::time::Duration;

/// Files whose servers are all gone are waited for so long: a server is tried again after 5 and 15 s.
const GONE_MAX: Duration = Duration::from_secs(20);

/// What is fetched.
pub(super) struct Fetching<'a> {
    /// Who sends, by their numbers in the plan.
    pub(super) servers: &'a [Arc<dyn Fetcher>],
    /// Their names.
    pub(super) names: &'a [String],
    /// Daemons among them.
    pub(super) session: Option<&'a Session>,
    /// What they send, and the names that it gets.
    pub(super) plan: &'a Plan,
    /// Where the files go.
    pub(super) landing: &'a Landing,
    /// Which permission bits they get.
    pub(super) modes: Modes,
    /// Connects again to one that was lost.
    pub(super) redial: &'a (dyn Fn(ServerId) -> Option<Arc<dyn Fetcher>> + Sync),
    /// What is told of one that was lost.
    pub(super) after_loss: &'a str,
    /// What else is told when all has come.
    pub(super) remark: &'a (dyn Fn() -> Option<String> + Sync),
}

/// Fetches, and shows how far that is.
pub(super) fn down(order: &Order<'_>, what: &Fetching<'_>, outcome: &mut Outcome) -> Result<()> {
    let watch = outcome.watch(what.names, what.session, Direction::In);
    let meter = Meter::new(what.servers.len()).heard_by(watch.as_ref().map(Watch::on_file));
    if what.plan.is_new_tree {
        meter.set_new_tree();
    }
    meter.add_found(what.plan.files.len(), what.plan.bytes());
    meter.set_found();
    let (fetched, mut shown) = follow(order, (&meter, watch.as_ref()), outcome, |stop| {
        fetch(&Job {
            servers: what.servers,
            redial: what.redial,
            plan: what.plan,
            store: what.landing.store.clone(),
            patience: GONE_MAX,
            dress: what.modes.dress(),
            taking: what.landing.taking,
            existing: order.choice().existing,
            pass: order.choice().pass,
            parameters: order.parameters,
            meter: &meter,
            stop,
        })
    })?;
    let fetched = fetched.context("cannot start a thread")?;
    for (server, error) in &fetched.lost {
        shown.board.remark(&format!("{}: {error}; {}", what.names[server.0], what.after_loss));
    }
    if let Some(remark) = (what.remark)() {
        shown.board.remark(&remark);
    }
    let mut done = Done::default();
    done.add_fetched(what.plan, fetched);
    shown.end(&done, Direction::In, outcome)
}

/// Writes what is planned of these sources into a store that is called `name`, and shows how far that is. `done` has what
/// failed before.
pub(super) fn up(
    order: &Order<'_>,
    (store, name): (&dyn Store, &String),
    (sources, plan): (&Sources, &Plan),
    mut done: Done,
    outcome: &mut Outcome,
) -> Result<()> {
    let watch = outcome.watch(std::slice::from_ref(name), None, Direction::Out);
    let meter = Meter::new(0).heard_by(watch.as_ref().map(Watch::on_file));
    if plan.is_new_tree {
        meter.set_new_tree();
    }
    meter.add_found(plan.files.len(), plan.bytes());
    meter.set_found();
    let (uploaded, display) = follow(order, (&meter, watch.as_ref()), outcome, |stop| {
        deposit(&DepositJob {
            store,
            source: &*sources.store,
            plan,
            existing: order.choice().existing,
            pass: order.choice().pass,
            dress: order.modes().dress(),
            rate: order.parameters.client.rate,
            meter: &meter,
            stop,
        })
    })?;
    done.add_uploaded(plan, uploaded.context("cannot start a thread")?);
    display.end(&done, Direction::Out, outcome)
}
