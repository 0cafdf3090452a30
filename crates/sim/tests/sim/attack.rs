//! Attacks by a lying receiver and by an attacker on the path.
//!
//! The ends are honest `hikyaku-proto` connections in virtual time. A lying end is an honest one
//! whose packets are changed as they leave, which is possible because the simulator's keys are
//! public. An attacker on the path sees and changes all packets.
//!
//! `cargo test --release -p hikyaku-sim --test sim attack -- --nocapture` prints the effect of each
//! attack.

mod amplification;
mod forged;
mod hoard;
mod keys;
mod liar;
mod path;
mod receiver;
mod silence;
mod unreported;
