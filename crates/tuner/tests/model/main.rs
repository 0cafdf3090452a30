//! Rules for the number of connections on a model of TCP: what share of the best fixed number they reach on a grid of paths, and
//! how they share a path with others.
//!
//! The figures are those of the model, not of a network; a share shows whether a rule finds the capacity of the path. All is computed
//! from seeds. `cargo test -p hikyaku-tuner --test model -- --ignored --nocapture` prints the grid with more seeds.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod fair;
mod grid;
mod path;
mod transfer;
