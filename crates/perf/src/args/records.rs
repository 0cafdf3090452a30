//! What is kept of a test beside its output.

use clap::Args;
use std::path::PathBuf;

/// What is kept of a test beside its output.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Records (client)")]
pub(crate) struct Records {
    /// Write into this directory what the test looks like, for 'hikyaku report DIR'
    #[arg(long, value_name = "DIR", conflicts_with = "server")]
    pub(crate) log_dir: Option<PathBuf>,
}
