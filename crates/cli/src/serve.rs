//! `hikyaku serve`: the far side of other commands of this program.

use anyhow::{Context, Result};
use clap::Args;
use hikyaku_reach::{Arrival, Service};
use hikyaku_units::DataSize;
use std::process::ExitCode;

/// The far side of a session; `hikyaku cp` and `hikyaku perf` start it through ssh
#[derive(Clone, Debug, Args)]
pub(crate) struct ServeArgs {
    /// Talk to the near side through standard input and output
    #[arg(long, required = true)]
    stdio: bool,
}

/// What attends a near side.
type Attend = fn(Arrival) -> Result<()>;

/// The services of this program.
const SERVICES: [(Service, Attend); 2] =
    [(hikyaku_copy::SERVICE, hikyaku_copy::attend), (hikyaku_perf::SERVICE, hikyaku_perf::attend)];

/// Serves one session.
pub(crate) fn run(_: &ServeArgs) -> Result<ExitCode> {
    let memory = DataSize::from_bytes(hikyaku_copy::available_memory());
    let services = SERVICES.map(|(service, _)| service);
    let arrival = hikyaku_reach::serve(&services, memory)?;
    let attend = SERVICES.into_iter().find(|(service, _)| *service == arrival.service);
    let (_, attend) = attend.context("a service that is not offered was chosen")?;
    attend(arrival).map(|()| ExitCode::SUCCESS)
}
