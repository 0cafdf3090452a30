//! `hikyaku doctor`: measures this machine and a path, and names what limits a transfer.
//!
//! Each check has a name that does not change (`check::Id`); `docs/doctor.md` explains it under that name. A setting
//! alone is never worse than a note: a check warns if the harm was measured. Remedies are texts for the user, nothing is
//! changed. Only the host that the user names is sent anything.
//!
//! `local` has the checks of this machine, `far` those that need a host, `path` the rates to and from it, measured by
//! `hikyaku perf`; `verdict` decides, and `report` prints.
#![forbid(unsafe_code)]

mod args;
mod check;
mod far;
mod local;
mod report;
mod run;
mod verdict;

pub use args::DoctorArgs;
pub use run::run;
