//! A far side without hikyaku gets a program from this end, by SFTP.
//!
//! [`Programs`] are the programs that this end may send: static ones for Linux, which run whatever C library the far
//! side has, or one that the user names. [`Install`] asks the far side what machine it is, puts the program below
//! `~/.cache/hikyaku/bin` under the name of its hash, and runs it once to see that it starts and is what was sent. The
//! near side looks there by itself ([`crate::Way::programs`]), so a program is sent once. Nothing is fetched from
//! anywhere else.

mod asked;
mod consent;
mod elf;
mod install;
mod programs;
mod store;
mod system;
#[cfg(test)]
mod tests;

pub use asked::NoAnswer;
pub use consent::{Answer, Consent, Hosts, NoConsent};
pub use elf::{Architecture, Linkage};
pub use install::{Install, Installed, NotInstalled, Was, identified, identity};
pub use programs::{NoPrograms, Program, Programs};
pub(crate) use store::path;
pub use store::{KEPT_VERSIONS, NotStored, Sent, remove, sent};
pub use system::system;
