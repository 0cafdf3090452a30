//! The errors for buckets in a program without the feature `s3`.

use super::target::{Place, TargetEnd};
use super::{Order, Outcome};
use crate::outcome::failed;
use anyhow::{Error, Result};
use hikyaku_console::with_remedy;
use hikyaku_fan::{Choice, Together};
use hikyaku_stores::S3Path;
use hikyaku_transfer::FailureKind;

pub(super) fn copy(
    _: &Order<'_>,
    (sources, ..): (&[S3Path], &Choice<'_>, Together<'_>),
    _: &TargetEnd<'_>,
    _: &mut Outcome,
) -> Result<()> {
    sources.first().map_or(Ok(()), |path| Err(missing(path)))
}

pub(super) fn target(_: &Order<'_>, path: &S3Path) -> Result<Place> {
    Err(missing(path))
}

fn missing(path: &S3Path) -> Error {
    let error =
        failed(FailureKind::Unsupported, format!("{path}: this hikyaku was built without S3"));
    let remedy = "build it with S3: cargo build --release -p hikyaku-cli --features s3";
    with_remedy(error, Some(remedy))
}
