//! Files, directories and pipes of this machine as sources.

use super::direct::{Fetching, bring};
use super::target::TargetEnd;
use super::{Order, Outcome, start};
use anyhow::Result;
use hikyaku_mover::{Choice, Direction, Done, ServerId, Sources, Together};
use hikyaku_store::fetcher;
use std::path::PathBuf;

/// Files that are read at once.
const REQUESTS: u32 = 16;

/// Copies these files and directories.
pub(super) fn copy(
    order: &Order<'_>,
    (sources, choice, together): (&[PathBuf], &Choice<'_>, Together<'_>),
    target: &TargetEnd<'_>,
    outcome: &mut Outcome,
) -> Result<()> {
    let mut done = Done::default();
    let found = Sources::find_with_streams(sources, choice, &mut done.failed);
    let found = found.map_err(start::of_session)?;
    let destination = target.destination()?;
    let (streams, failures) = (order.streams(), &mut done.failed);
    let landed = found
        .land(&destination, (choice, together, &streams), failures)
        .map_err(start::of_session)?;
    let servers = [fetcher(&found.store, order.requests(REQUESTS))];
    let names = match target.place()? {
        Some(place) => vec![place.name.clone()],
        None => vec!["this machine".to_owned()],
    };
    let (later, count) = (outcome.later, landed.len());
    for (number, mut one) in landed.into_iter().enumerate() {
        outcome.later = later + count - 1 - number;
        one.plan.is_from(servers.len());
        let what = Fetching {
            servers: &servers,
            pools: &[],
            names: &names,
            session: None,
            plan: &one.plan,
            store: one.store,
            taking: one.taking,
            journal: one.journal.as_ref(),
            direction: if target.is_here() { Direction::In } else { Direction::Out },
            done: std::mem::take(&mut done),
            modes: order.modes(),
            redial: &|_: ServerId| None,
            after_loss: "it was tried again",
            remark: &|| None,
        };
        bring(order, what, outcome)?;
    }
    Ok(())
}
