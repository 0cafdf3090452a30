//! Options of uploads to daemons and into a Gfarm file system.

use crate::args::CopyArgs;
use crate::engine::{Existing, Options};
use anyhow::{Result, ensure};
use hikyaku_fan::Older;

/// What the user wants of files that are there.
pub(super) const fn older(options: &Options) -> Older {
    match options.existing {
        Existing::Replaced => Older::Replaced,
        Existing::Kept => Older::Kept,
        Existing::KeptIfNewer => Older::KeptIfNewer,
    }
}

/// Refuses options that would be taken for granted and have no effect.
pub(super) fn check_options(args: &CopyArgs, options: &Options) -> Result<()> {
    let has_patterns = !options.patterns.exclude.is_empty() || !options.patterns.include.is_empty();
    for (is_given, flag) in [
        (options.rehearsal, "--dry-run"),
        (has_patterns, "--exclude and --include"),
        (!options.files.is_empty(), "--files-from"),
        (options.verify, "--verify"),
        (options.in_place, "--inplace"),
        (args.manifest().is_some(), "--manifest"),
    ] {
        ensure!(!is_given, "{flag} cannot be used for copies to daemons yet");
    }
    if options.keep_attributes && !args.is_quiet() {
        eprintln!("hikyaku: owners and extended attributes are not kept at daemons");
    }
    Ok(())
}
