//! `hikyaku serve`: a daemon, or the far side of one session that ssh has started.

use anyhow::{Context, Result};
use clap::Args;
use hikyaku_console::{ExitCode, Interrupt};
use hikyaku_reach::{Arrival, NoStart, ServeError, Service};
use hikyaku_serve::DaemonArgs;
use hikyaku_units::DataSize;

const EXAMPLES: &str = "\
Examples:
  hikyaku serve --root /data               clients read files below /data
  hikyaku serve --root /data --writable    they change files, too
  hikyaku serve --allow web:80             they connect to port 80 of web";

/// Options of `hikyaku serve`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Serve one session through standard input and output; `hikyaku cp` starts this through ssh
    #[arg(long, conflicts_with = "serve")]
    stdio: bool,
    /// Serve all files that this user may use to one client, whose key is the first line of standard input, until that ends;
    /// 'hikyaku cp --start-servers' starts this through ssh
    #[arg(long, conflicts_with_all = ["serve", "stdio"])]
    for_session: bool,
    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

/// What attends a near side.
type Attend = fn(Arrival) -> Result<()>;

/// The services of this program.
const SERVICES: [(Service, Attend); 5] = [
    (hikyaku_pair::SERVICE, |arrival| Ok(hikyaku_pair::attend(arrival)?)),
    (hikyaku_perf::SERVICE, hikyaku_perf::attend),
    (hikyaku_proxy::SERVICE, hikyaku_proxy::attend),
    (hikyaku_shell::SERVICE, hikyaku_shell::attend),
    (hikyaku_serve::FILES, hikyaku_serve::attend),
];

/// What this process may take.
pub(crate) fn available_memory() -> DataSize {
    DataSize::from_bytes(hikyaku_copy::available_memory())
}

/// Serves until the session or the daemon ends.
pub(crate) fn run(args: &ServeArgs, interrupt: &Interrupt) -> Result<ExitCode> {
    if args.for_session {
        hikyaku_serve::run_for_session(hikyaku_proxy::attend_client, available_memory())?;
        return Ok(ExitCode::Success);
    }
    if !args.stdio {
        let (attend, memory) = (hikyaku_proxy::attend_client, available_memory());
        hikyaku_serve::run(&args.daemon, attend, memory, interrupt)?;
        return Ok(ExitCode::Success);
    }
    let memory = available_memory();
    let services = SERVICES.map(|(service, _)| service);
    let arrival = match hikyaku_reach::serve(&services, memory) {
        // Its user has ended it and hears what that means from it. A word of this end would come through ssh beside that.
        Err(ServeError::Start(NoStart::Nothing) | ServeError::Gone) => {
            return Ok(ExitCode::Failed);
        }
        arrival => arrival?,
    };
    let attend = SERVICES.into_iter().find(|(service, _)| *service == arrival.service);
    let (_, attend) = attend.context("a service that is not offered was chosen")?;
    attend(arrival).map(|()| ExitCode::Success)
}
