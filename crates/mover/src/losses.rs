//! Properties of the sources that their copies do not have, because the target has no such property.

use crate::dress::{Dress, Times};
use crate::plan::Plan;
use hikyaku_store::Abilities;
use std::fmt;

/// A property that is not kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Loss {
    /// Modification times.
    Times,
    /// Permission bits.
    Modes,
    /// Set-user-id and set-group-id bits. A copy with them would grant the rights of the user who writes it.
    SetId,
    /// Symbolic links.
    Links,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Times => "the target does not keep modification times",
            Self::Modes => "the target does not keep permission bits",
            Self::SetId => "set-user-id and set-group-id bits are not kept",
            Self::Links => "the target has no symbolic links: those of the sources are left out",
        })
    }
}

/// The bits.
const SET_ID: u32 = 0o6000;

/// What a target with these abilities does not keep of a plan.
pub(crate) fn of(plan: &Plan, (dress, times): (Dress, Times), target: &Abilities) -> Vec<Loss> {
    let is_kept = dress == Dress::Kept;
    let has_files = !plan.files.is_empty();
    let modes =
        || plan.files.iter().map(|file| file.mode).chain(plan.dirs.iter().map(|dir| dir.1.mode));
    let all = [
        (Loss::Times, has_files && times == Times::Kept && !target.times),
        (Loss::Modes, has_files && is_kept && !target.modes),
        (Loss::SetId, is_kept && target.modes && modes().any(|mode| mode & SET_ID != 0)),
        (Loss::Links, !plan.links.is_empty() && !target.links),
    ];
    all.into_iter().filter(|(_, is_lost)| *is_lost).map(|(loss, _)| loss).collect()
}
