//! Several sources of one copy: one that cannot be copied is told, and the others are copied.

use super::Outcome;
use crate::outcome::kind_of_file;
use anyhow::Result;
use hikyaku_console::headline;
use hikyaku_mover::{Failed, Kind};
use hikyaku_transfer::FailureKind;

/// Goes on with the other sources where a failure is about this one alone, which is called `name` and is one of so many.
pub(super) fn beside(
    (sources, name): (usize, &str),
    copied: Result<()>,
    outcome: &mut Outcome,
) -> Result<()> {
    let Err(error) = copied else { return Ok(()) };
    let kind = kind_of_file(&error).filter(|kind| sources > 1 && *kind != FailureKind::Busy);
    let Some(kind) = kind else { return Err(error) };
    let (path, text) = (name.as_bytes().to_vec(), headline(&error));
    let message = outcome.add(&Failed { path, kind: Kind::File(kind), text });
    outcome.tell(message.as_slice());
    Ok(())
}
