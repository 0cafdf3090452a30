//! Options for buckets of S3-compatible services.

#[cfg(feature = "s3")]
use super::CopyArgs;
use clap::Args;

/// Where a bucket is.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "S3")]
pub(crate) struct S3Args {
    /// Server of the bucket, if it is not Amazon's: MinIO, Ceph, Wasabi and others [default: AWS_ENDPOINT_URL]
    // Without the feature `s3` it is accepted, so that the error is that of the bucket.
    #[cfg_attr(not(feature = "s3"), allow(dead_code, reason = "read where buckets are"))]
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
}

#[cfg(feature = "s3")]
impl CopyArgs {
    /// The server of a bucket, if the command line names one.
    pub(crate) fn endpoint(&self) -> Option<&str> {
        self.s3.endpoint.as_deref()
    }

    /// Connections to the server of a bucket.
    pub(crate) fn connections(&self) -> u32 {
        match self.transport.pipes {
            Some(hikyaku_reach::tcp::Pipes::Fixed(n)) => n,
            _ => CONNECTIONS,
        }
    }
}

/// Connections to the server of a bucket, unless `--pipes` says otherwise. On a path of 100 ms one carries some 100 to 500
/// Mbit/s, so that sixteen fill a few Gbit/s.
#[cfg(feature = "s3")]
const CONNECTIONS: u32 = 16;
