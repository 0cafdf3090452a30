//! Windows of pictures, which a function of the server's makes.

use super::Session;
use super::give::{Failed, GIVEN_UP, Gives};
use super::requests::{Teller, store_path};
use super::wanted::WhileWanted;
use crate::message::{Refusal, Reply, Seen, View};
use bytes::Bytes;
use hikyaku_net::blocking::block_on;
use hikyaku_reach::ObjectSender;
use hikyaku_store::{Access, ErrorKind, Open, StoreError};
use hikyaku_transfer::{Geometry, SegmentHash, SegmentIndex};
use std::sync::Arc;
use std::time::Instant;

/// Makes a window of a picture, or says for people why there is none.
pub type Render = Arc<dyn Fn(&dyn Open, &View) -> Result<Rendered, String> + Send + Sync>;

/// A coded window of a picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rendered {
    /// Pixels of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// The coded window, not empty.
    pub bytes: Vec<u8>,
}

/// The picture, or pictures at all, cannot be shown (EOPNOTSUPP).
const NOT_SUPPORTED: ErrorKind = ErrorKind::System(95);

impl Gives {
    /// Makes a window and sends it as an object; returns how many bytes were sent.
    // spec: store-view-1
    pub(super) fn view(
        &self,
        session: &Session,
        view: &View,
        teller: &Teller,
    ) -> Result<u64, Failed> {
        let path = store_path(&view.path)?;
        let error = |kind| StoreError::new("show", &path, kind);
        // spec: store-feature-3
        let Some(render) = &session.render else {
            return Err(error(NOT_SUPPORTED).into());
        };
        let begin = Instant::now();
        let open = session.store.open(&path, Access::Read)?;
        let is_same = || open.found().map(|found| Seen::from(&found) == view.seen);
        if !is_same()? {
            return Err(error(ErrorKind::Changed).into());
        }
        let is_wanted =
            || session.connection.close_reason().is_none() && !self.is_cut(teller.id, 0);
        let file = WhileWanted { inner: &*open, is_wanted: &is_wanted };
        let rendered = render(&file, view);
        if !is_same()? {
            return Err(error(ErrorKind::Changed).into());
        }
        let Rendered { width, height, bytes } = match rendered {
            Ok(rendered) => rendered,
            Err(text) => {
                teller.say(Reply::Refused(Refusal { kind: NOT_SUPPORTED, text }))?;
                return Err(Failed::Unwanted);
            }
        };
        let file = Geometry::new(bytes.len() as u64);
        let file = file.ok_or_else(|| error(ErrorKind::TooLarge))?;
        let micros = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
        teller.say(Reply::Viewed { width, height, bytes: bytes.len() as u64, micros })?;
        let mut object = block_on(session.connection.open_object())?;
        let sent = teller.say(Reply::Giving { object: object.id().0 }).map_err(Failed::from);
        let sent = sent.and_then(|()| self.send_made(file, &bytes.into(), &mut object, teller));
        match sent {
            Ok(_) => object.finish(),
            Err(_) => object.reset(GIVEN_UP),
        }
        sent
    }

    /// Sends bytes that are in memory, each segment with its hash before it, until all are sent or the request is cut.
    fn send_made(
        &self,
        file: Geometry,
        bytes: &Bytes,
        object: &mut ObjectSender,
        teller: &Teller,
    ) -> Result<u64, Failed> {
        let mut sent = 0;
        for index in (0..file.segments() as u32).map(SegmentIndex) {
            if self.is_cut(teller.id, sent) {
                return Ok(block_on(object.cut())?.unwrap_or(sent));
            }
            let range = file.range(index).unwrap_or_default();
            let segment = bytes.slice(range.start as usize..range.end as usize);
            if let Some(hash) = SegmentHash::new(file, index, &segment) {
                teller.say(Reply::Hashes { first: index, hashes: vec![hash] })?;
            }
            sent += segment.len() as u64;
            block_on(object.write_chunk(segment))?;
        }
        Ok(sent)
    }
}
