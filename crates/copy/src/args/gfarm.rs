//! Options for files of a Gfarm file system.

use clap::Args;
use hikyaku_reach::dial::PORT;

/// How files of a Gfarm file system come.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Gfarm")]
pub(crate) struct GfarmArgs {
    /// Let the daemons on the nodes send the files ('hikyaku serve --gfarm' on each), encrypted and by this transport;
    /// nodes without one send them by Gfarm's own protocol
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    gfarm_daemons: Option<Option<u16>>,
}

impl GfarmArgs {
    /// The port of the daemons; `None` if they are not to be asked.
    pub(super) fn daemons(&self) -> Option<u16> {
        self.gfarm_daemons.map(|port| port.unwrap_or(PORT))
    }
}
