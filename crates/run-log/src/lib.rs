//! The log of a run: samples of machines and connections, and begins and ends of files, as JSON lines.
//!
//! A command that was given `--log-dir DIR` has a [`Recorder`], which writes one file in that directory. `docs/reports.md`
//! describes the lines. `hikyaku report` reads them ([`read()`]) and draws them. A [`Probe`] reads the state of this machine from
//! `/proc` and `statvfs`; a daemon answers with it what its clients ask (`hikyaku-remote`).
//!
//! Nothing here starts a thread. A command calls [`Recorder::poll`] in the loop in which it shows its progress.
#![forbid(unsafe_code)]

mod clock;
mod file;
mod line;
mod probe;
mod proc;
mod read;
mod recorder;

pub use file::{LogError, Room};
pub use line::{
    Begin, End, FileLine, FileStage, Flow, Line, Load, Machine, MachineId, Point, Role, millis,
};
pub use probe::{Probe, SharedProbe};
pub use read::{ReadError, Run, logs_in, read};
pub use recorder::{Recorder, SAMPLE_EVERY, host_name};
