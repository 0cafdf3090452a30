//! `hikyaku lab` as a program of its own.

use clap::Parser;

fn main() -> anyhow::Result<()> {
    hikyaku_console::leave(hikyaku_lab::run(hikyaku_lab::LabArgs::parse())?)
}
