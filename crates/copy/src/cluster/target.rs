//! The target of a copy with storages. It is opened when the first source has been found.

use super::start::Connected;
use super::{Order, daemons, stored};
use crate::run::check_target;
use anyhow::{Context, Result};
use hikyaku_console::Registration;
use hikyaku_mover::{Destination, Target};
use hikyaku_store::Store;
use hikyaku_stores::Location;
use std::cell::OnceCell;
use std::sync::Arc;

/// The target of a command.
pub(super) struct TargetEnd<'a> {
    order: &'a Order<'a>,
    opened: OnceCell<Place>,
}

/// A place of a store that was looked at.
pub(super) struct Place {
    pub(super) store: Arc<dyn Store>,
    pub(super) target: Target,
    /// As the user wrote it.
    pub(super) name: String,
    /// Ends what the store waits for when the copy is stopped.
    _stopped: Option<Registration>,
    /// The connections to daemons.
    _session: Option<Connected>,
}

impl Place {
    /// A place that its user calls `name`.
    pub(super) fn new(store: Arc<dyn Store>, target: Target, name: String) -> Self {
        Self { store, target, name, _stopped: None, _session: None }
    }

    /// This place; `stopped` ends the waits of its store.
    pub(super) fn stopped_by(self, stopped: Registration) -> Self {
        Self { _stopped: Some(stopped), ..self }
    }

    /// This place, with the connections that its store uses.
    pub(super) fn over(self, session: Connected) -> Self {
        Self { _session: Some(session), ..self }
    }
}

impl<'a> TargetEnd<'a> {
    /// A target that is not opened yet.
    pub(super) fn new(order: &'a Order<'a>) -> Result<Self> {
        if let Location::Local(path) = &order.plan.target {
            check_target(path)?;
        }
        Ok(Self { order, opened: OnceCell::new() })
    }

    /// The place of a store; `None` for a path of this machine.
    pub(super) fn place(&self) -> Result<Option<&Place>> {
        let opened = match (self.opened.get(), &self.order.plan.target) {
            (Some(place), _) => return Ok(Some(place)),
            (None, Location::Local(_)) => return Ok(None),
            (None, Location::Servers(servers)) => daemons::target(self.order, servers)?,
            (None, location) => stored::target(self.order, location)?,
        };
        Ok(Some(self.opened.get_or_init(|| opened)))
    }

    /// Where sources go.
    pub(super) fn destination(&self) -> Result<Destination<'_>> {
        if let Location::Local(path) = &self.order.plan.target {
            return Ok(Destination::Here(path));
        }
        let place = self.place()?.context("the target has no store")?;
        Ok(Destination::Store(place.store.clone(), &place.target))
    }

    /// Whether it is a path of this machine.
    pub(super) const fn is_here(&self) -> bool {
        matches!(self.order.plan.target, Location::Local(_))
    }
}
