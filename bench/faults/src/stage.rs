//! What the rig starts in place of the program: it waits until it is watched, asks the kernel to
//! stop it at each call that [`TABLE`] names, and becomes the program.

use crate::calls::TABLE;
use anyhow::{Context, Result, bail};
use nix::libc;
use nix::sys::signal::{Signal, raise};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Becomes `command`, watched; comes back only with an error.
pub fn become_watched(command: &[OsString]) -> Result<()> {
    let [program, arguments @ ..] = command else { bail!("no program is named") };
    raise(Signal::SIGSTOP)?;
    let program_of_filter: BpfProgram = filter()?.try_into()?;
    apply_filter(&program_of_filter).context("cannot have calls stopped")?;
    Err(Command::new(program).args(arguments).exec())
        .with_context(|| format!("cannot start {}", program.display()))
}

fn filter() -> Result<SeccompFilter> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        TABLE.iter().map(|row| (row.number, Vec::new())).collect();
    // A program that will not be looked at cannot be watched.
    let hides = [(0, libc::PR_SET_DUMPABLE as u64), (1, 0)].map(|(index, value)| {
        SeccompCondition::new(index, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, value)
    });
    let hides = hides.into_iter().collect::<Result<Vec<_>, _>>()?;
    rules.insert(libc::SYS_prctl, vec![SeccompRule::new(hides)?]);
    Ok(SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Trace(0),
        TargetArch::x86_64,
    )?)
}
