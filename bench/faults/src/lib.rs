//! Two rigs that judge `hikyaku cp` as a real process.
//!
//! The first lets every kind of call to the kernel fail, one run for each, and looks at what the copy
//! says and leaves. The second records what a copy writes, syncs and renames, and looks at what is
//! left if the power fails at any point of it. Both watch the program with ptrace(2); they know its
//! calls on x86_64 Linux only.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "an inner tool: a name that is plain needs no words")]

mod calls;
mod campaign;
mod crash;
mod director;
mod fault;
mod judge;
mod place;
mod plan;
mod scene;
mod stage;
mod summary;
mod tracee;
mod tracer;
mod tree;
mod unsynced;

pub use campaign::{Outcome, Rig};
pub use crash::sweep::{Effort, Swept, sweep};
pub use place::Scratch;
pub use plan::{Run, plan, sample};
pub use scene::{SCENES, Scene};
pub use stage::become_watched;
pub use summary::Summary;
pub use tracer::End;
