//! Options for copies from and to daemons.

use super::CopyArgs;
use clap::Args;
use hikyaku_mover::{ClientParameters, Parameters, ServerParameters};
use hikyaku_units::{Rate, parse_duration, parse_limit};
use std::time::Duration;

/// How files travel between this machine and daemons.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Daemons ('hikyaku serve')")]
pub(crate) struct ServersArgs {
    /// Each server sends or gets at most this much; --rate is for all of them together
    #[arg(long, value_name = "RATE", value_parser = parse_limit)]
    server_rate: Option<Rate>,
    /// Files that go to one server at once, each on a stream of its own, from 1 to 4 (3)
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(1..=4))]
    streams: Option<u8>,
    /// After each file that was sent to a server, a stream waits so long (0s)
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pause: Option<Duration>,
    /// The second server begins so long after the first, the third one so long after the second (0s)
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    stagger: Option<Duration>,
}

impl CopyArgs {
    /// How data travel between this machine and daemons.
    pub(super) fn parameters(&self) -> Parameters {
        let given = &self.servers;
        let usual = ClientParameters::default();
        Parameters {
            client: ClientParameters {
                rate: self.rate(),
                window: self.transport.window,
                streams: given.streams.map_or(usual.streams, usize::from),
                pause: given.pause.unwrap_or(usual.pause),
                stagger: given.stagger.unwrap_or(usual.stagger),
                ..usual
            },
            servers: ServerParameters { rate: given.server_rate },
        }
    }
}
