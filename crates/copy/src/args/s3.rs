//! Options for buckets of S3-compatible services.

use clap::Args;

/// Where a bucket is.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "S3")]
pub(crate) struct S3Args {
    /// Server of the bucket, if it is not Amazon's: MinIO, Ceph, Wasabi and others [default: AWS_ENDPOINT_URL]
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
}

impl S3Args {
    /// The server of a bucket, if the command line names one.
    pub(super) fn endpoint(&self) -> Option<String> {
        self.endpoint.clone()
    }
}
