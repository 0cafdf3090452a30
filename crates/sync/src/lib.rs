//! `hikyaku sync`: makes a tree like another one, with rsync's habits.
//!
//! Both trees are listed and compared at this end (`walk`): one of a host behind ssh through a session of `hikyaku sftp`
//! ([`hikyaku_shell`]), which goes over the transport where the far side has hikyaku, and one of another storage through
//! [`hikyaku_stores`]. What differs in content is copied by `hikyaku cp` ([`hikyaku_copy`]), which syncs and resumes. Names,
//! links, modes, times and deletions are operations of the stores (`apply`). Deletion is the last step, and concerns only
//! directories that were listed whole at both ends.
#![forbid(unsafe_code)]

mod apply;
mod args;
mod contents;
mod each;
mod ends;
mod filter;
mod item;
mod line;
mod names;
mod options;
mod permit;
mod plan;
mod print;
mod review;
mod rsh;
mod rsync;
mod rule_args;
mod run;
mod side;
mod table;
mod walk;

pub use args::SyncArgs;
pub use run::run;
pub use table::TABLE;
