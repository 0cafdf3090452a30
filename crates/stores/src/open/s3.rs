//! Buckets.

use super::{OpenError, Opened, Opening, one, path_of};
use crate::location::S3Path;
use hikyaku_store::Root;
use hikyaku_store_s3::{S3, S3Options};
use std::sync::Arc;

pub(super) fn open(at: &S3Path, opening: &Opening) -> Result<Opened, OpenError> {
    let path = path_of(&at.path, &at)?;
    let options = S3Options { endpoint: opening.endpoint.clone(), ..S3Options::default() };
    let store = S3::connect(&at.bucket, &options)
        .map_err(|error| OpenError::S3 { location: at.to_string(), error })?;
    let name = format!("s3://{}", at.bucket);
    Ok(one(name, (Arc::new(store), Root::OfAll), (path, at.ending)))
}
