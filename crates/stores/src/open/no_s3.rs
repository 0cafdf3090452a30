//! A program without buckets.

use super::{OpenError, Opened, Opening};
use crate::location::S3Path;

pub(super) fn open(at: &S3Path, _: &Opening) -> Result<Opened, OpenError> {
    Err(OpenError::NoS3(at.to_string()))
}
