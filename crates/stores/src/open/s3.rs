//! Buckets.

use super::{Directories, Holder, OpenError, Opening, Times};
use crate::location::S3Path;
use hikyaku_reach::dial::Ending;
use hikyaku_store::{Root, StorePath};
use hikyaku_store_s3::{Meant, S3, S3Error, S3Options, Times as S3Times, Walks};
use hikyaku_transfer::Depth;
use hikyaku_units::counted;
use std::sync::Arc;

/// A bucket that is connected.
#[derive(Clone)]
pub(super) struct Bucket {
    name: String,
    store: S3,
    connections: u32,
    depth: Depth,
    times: S3Times,
}

impl Bucket {
    pub(super) fn connect(at: &S3Path, opening: &Opening) -> Result<Self, OpenError> {
        let options = S3Options {
            endpoint: opening.endpoint.clone(),
            uploads: opening.connections,
            silence: opening.silence,
            recorded: opening.recorded.clone(),
            ..S3Options::default()
        };
        let store = S3::connect(&at.bucket, &options)
            .map_err(|error| OpenError::S3 { location: at.to_string(), error })?;
        let (connections, depth, name) =
            (opening.connections, opening.depth, format!("s3://{}", at.bucket));
        let times = match opening.times {
            Times::Written => S3Times::Written,
            Times::Noted => S3Times::Noted,
        };
        Ok(Self { name, store, connections, depth, times })
    }

    /// The store for a path that was written so: a walk of it has the object or the directory that is meant.
    pub(super) fn holder(&self, path: &StorePath, ending: Ending) -> Result<Holder, OpenError> {
        let failed = |error: S3Error| {
            let location = format!("{}/{path}", self.name);
            OpenError::S3 { location, error }
        };
        let meant = match (ending, self.depth) {
            (Ending::Slash | Ending::Contents, _) => Meant::Directory,
            (Ending::Name, Depth::File) => Meant::Object,
            (Ending::Name, Depth::Tree) => self.store.only(path).map_err(failed)?,
        };
        let store = self.store.walking(Walks { meant, times: self.times });
        let mut holder = Holder::new(self.name.clone(), Arc::new(store), Root::OfAll);
        holder.directories = Directories::Implied;
        Ok(holder)
    }

    pub(super) fn detail(&self) -> String {
        format!("{}, up to {}", self.store.url(), counted(self.connections, "connection"))
    }

    pub(super) fn warning(&self) -> Option<String> {
        let is_near = ["http://127.", "http://localhost", "http://[::1]"];
        let url = self.store.url();
        let is_open =
            url.starts_with("http://") && !is_near.iter().any(|near| url.starts_with(near));
        is_open.then(|| format!("{url}: the data are not encrypted on their way"))
    }

    pub(super) fn remark(&self) -> Option<String> {
        let text =
            "the server sends a whole file for each part of it that is asked for, which is slow";
        self.store.ignores_ranges().then(|| format!("{}: {text}", self.store.url()))
    }

    pub(super) fn stop(&self) {
        self.store.stop();
    }
}
