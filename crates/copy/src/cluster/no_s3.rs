//! What a program without the feature `s3` says of buckets.

use super::{Order, Outcome};
use crate::outcome::failed;
use anyhow::Result;
use hikyaku_console::with_remedy;
use hikyaku_stores::S3Path;
use hikyaku_transfer::FailureKind;
use std::path::{Path, PathBuf};

pub(super) fn all(_: &Order<'_>, (sources, _): (&[S3Path], &Path), _: &mut Outcome) -> Result<()> {
    sources.first().map_or(Ok(()), missing)
}

pub(super) fn upload(
    _: &Order<'_>,
    (_, target): (&[PathBuf], &S3Path),
    _: &mut Outcome,
) -> Result<()> {
    missing(target)
}

fn missing(path: &S3Path) -> Result<()> {
    let error =
        failed(FailureKind::Unsupported, format!("{path}: this hikyaku was built without S3"));
    let remedy = "build it with S3: cargo build --release -p hikyaku-cli --features s3";
    Err(with_remedy(error, Some(remedy)))
}
