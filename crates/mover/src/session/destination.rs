//! Where a copy goes, and what the sources of one command have in common.

use super::{Arriving, Landing, SessionError, Target};
use crate::census::Claims;
use crate::layout::{Meant, Renamed};
use crate::plan::Plan;
use hikyaku_store::{Store, StorePath};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Where a copy goes.
#[derive(Clone)]
pub enum Destination<'a> {
    /// A path of this machine.
    Here(&'a Path),
    /// A place of a store that was looked at.
    Store(Arc<dyn Store>, &'a Target),
}

impl Destination<'_> {
    /// Where a source lands. It is at the first path and was named by the second one, by a link if they differ.
    ///
    /// # Errors
    ///
    /// The target is not one for these sources, or it cannot be used.
    pub fn landing(
        &self,
        source: (&StorePath, &StorePath),
        arriving: Arriving<'_>,
    ) -> Result<Landing, SessionError> {
        match self {
            Self::Here(path) => Landing::new(source, path, arriving),
            Self::Store(store, target) => {
                Landing::in_store(source, (store.clone(), target), arriving)
            }
        }
    }
}

/// The sources of one command, which may be copied by several calls: no name at the target is made for two of them.
#[derive(Clone, Copy, Debug)]
pub struct Together<'a> {
    /// Sources that other calls copy.
    pub others: usize,
    /// The names that the sources have taken.
    pub claims: &'a Mutex<Claims>,
}

impl Together<'_> {
    /// What the name of a source becomes, one of `sources` of this call.
    pub fn renamed(&self, sources: usize, meant: Meant) -> Renamed {
        Renamed::of(self.others + sources, meant)
    }

    /// Takes the names of a plan ([`Claims::take`]), one of `sources` of this call.
    pub fn claim(&self, sources: usize, origin: &str, plan: &mut Plan) {
        if self.others + sources > 1 {
            let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
            claims.take(origin, plan);
        }
    }
}
