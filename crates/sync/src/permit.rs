//! Whether what is planned to be deleted may be deleted.

use crate::options::{EmptySource, Options};
use crate::plan::Plan;
use anyhow::{Error, Result};
use hikyaku_console::with_remedy;
use hikyaku_units::counted;
use std::io::{self, ErrorKind};

/// Whether the deletions of a plan may be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Permit {
    Granted,
    /// More names than so many would have to be deleted.
    TooMany(u64),
    /// Some files were not copied.
    NotCopied,
    /// No file of the source was found, and some of its directories could not be read.
    Unread,
}

/// Whether the deletions of a plan may be made.
///
/// # Errors
///
/// The source has no file at all, and the user has not said that this is meant.
pub(crate) fn permit(plan: &Plan, options: &Options) -> Result<Permit> {
    let deleted = plan.deletions();
    let Some(deletion) = options.deletion.filter(|_| deleted > 0) else {
        return Ok(Permit::Granted);
    };
    if deletion.empty == EmptySource::Refused && plan.leaves == 0 {
        return if plan.unread > 0 { Ok(Permit::Unread) } else { Err(empty_source(deleted)) };
    }
    let most = deletion.most.filter(|most| deleted > *most);
    Ok(most.map_or(Permit::Granted, Permit::TooMany))
}

fn empty_source(deleted: u64) -> Error {
    let text = format!(
        "the source has no file at all, and {} at the target would be deleted",
        counted(deleted, "name")
    );
    let refused = io::Error::new(ErrorKind::PermissionDenied, text);
    let remedy = "try: --delete-all, if that is meant; is the disk of the source mounted?";
    with_remedy(refused.into(), Some(remedy.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Deletion, Excluded};
    use crate::plan::{Doomed, End, Reason};
    use crate::side::testing::TestSide;

    #[test]
    fn a_source_without_files_deletes_nothing_and_is_no_error_if_it_could_not_be_read() {
        let target = TestSide::new(&["x"]);
        let doomed = || {
            let (path, end, reason) = (b"x".to_vec(), End::Removed, Reason::Extra);
            Doomed { path, meta: target.look(b"x").unwrap(), end, reason }
        };
        let found = |leaves, unread, (most, empty)| {
            let plan = Plan { delete: vec![doomed()], leaves, unread, ..Plan::default() };
            let deletion = Deletion { most, excluded: Excluded::Stay, empty };
            permit(&plan, &Options { deletion: Some(deletion), ..Options::default() }).ok()
        };
        let refused = (None, EmptySource::Refused);
        assert_eq!(found(0, 0, refused), None);
        assert_eq!(found(0, 1, refused), Some(Permit::Unread));
        assert_eq!(found(1, 1, refused), Some(Permit::Granted));
        assert_eq!(found(0, 0, (None, EmptySource::Meant)), Some(Permit::Granted));
        assert_eq!(found(1, 0, (Some(0), EmptySource::Refused)), Some(Permit::TooMany(0)));
    }
}
