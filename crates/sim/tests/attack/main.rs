//! Attacks: a receiver that lies, a path that is hostile, and what they come to.
//!
//! The ends are honest `hikyaku-proto` connections in virtual time. Who lies is an honest end whose
//! words are changed as they leave (the simulator's keys are known), who is on the path sees and changes
//! all that passes. The threats are named T01 to T17.
//!
//! `cargo test --release -p hikyaku-sim --test attack -- --nocapture` prints what each came to.

mod amplification;
mod forged;
mod keys;
mod liar;
mod path;
mod receiver;
mod silence;
