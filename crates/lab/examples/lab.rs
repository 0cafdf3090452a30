//! `hikyaku lab` as a program of its own.

use clap::Parser;
use std::process::ExitCode;

fn main() -> anyhow::Result<ExitCode> {
    hikyaku_lab::run(hikyaku_lab::LabArgs::parse()).map(ExitCode::from)
}
