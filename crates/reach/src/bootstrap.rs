//! A remote host without hikyaku gets a program from this end, by SFTP.
//!
//! [`Programs`] are the programs that this end may send: static ones for Linux, which run with any C library, this program
//! itself if it is dynamic and the C library there is new enough, or one that the user names. [`Install`] asks the remote
//! host for its processor, writes the program, runs it once to see that it starts and is what was sent, and then gives it its
//! name: below `~/.cache/hikyaku/bin`, in a directory with the name of its hash, or another [`Place`]. This end looks in the
//! first by itself ([`Offer::programs`]), so a program is sent once. [`Offer`] is the user's wish. No program is fetched from
//! anywhere else.

mod consent;
mod elf;
mod glibc;
mod install;
mod offer;
mod place;
mod programs;
mod progress;
mod spare;
mod store;
mod system;
#[cfg(test)]
mod tests;

pub use consent::{Answer, Consent, Hosts, NoConsent};
pub use elf::{Architecture, Linkage};
pub use glibc::Version;
pub use install::{Install, Installed, Missing, NotInstalled, Was, identified, identity};
pub use offer::{Asking, BootstrapArgs, Delivery, Offer};
pub use place::{BadPlace, Place};
pub use programs::{ChosenBy, NoPrograms, Program, Programs};
pub use progress::Progress;
pub use spare::Spare;
pub use store::{KEPT_VERSIONS, NotStored, Sent, remove, sent};
pub use system::system;
