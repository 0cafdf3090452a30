//! A program without buckets.

use super::{Holder, OpenError, Opening};
use crate::location::S3Path;
use hikyaku_reach::dial::Ending;
use hikyaku_store::StorePath;

/// There is none.
#[derive(Clone)]
pub(super) enum Bucket {}

impl Bucket {
    pub(super) fn connect(at: &S3Path, _: &Opening) -> Result<Self, OpenError> {
        Err(OpenError::NoS3(at.to_string()))
    }

    pub(super) const fn holder(&self, _: &StorePath, _: Ending) -> Result<Holder, OpenError> {
        match *self {}
    }

    pub(super) const fn detail(&self) -> String {
        match *self {}
    }

    pub(super) const fn warning(&self) -> Option<String> {
        match *self {}
    }

    pub(super) const fn remark(&self) -> Option<String> {
        match *self {}
    }

    pub(super) const fn stop(&self) {
        match *self {}
    }
}
