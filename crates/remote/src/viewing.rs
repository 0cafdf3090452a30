//! Windows of pictures on their way in.

use crate::client::Client;
use crate::error::RemoteError;
use crate::incoming::Incoming;
use crate::message::{Reply, Request, View};
use hikyaku_transfer::{Geometry, Layout};
use std::time::Duration;

/// A coded window of a picture whose bytes are to come.
pub struct Viewing {
    /// Pixels of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// The time that the server took to make it.
    pub made_in: Duration,
    incoming: Incoming,
    bytes: u64,
}

/// Bytes that a coded window may have beyond four for each pixel.
const HEAD_BYTES_MAX: u64 = 64 << 10;

impl Client {
    /// Asks for a window of a picture, and waits until the server has made it. The server must have the feature
    /// [`IMAGES`](hikyaku_reach::daemon::IMAGES).
    ///
    /// # Errors
    ///
    /// The server cannot show the picture, it has changed, or the connection has ended.
    // spec: store-view-2
    pub fn view(&self, view: View) -> Result<Viewing, RemoteError> {
        let [.., wide, high] = view.region;
        let most = u64::from(wide.div_ceil(view.step.max(1)))
            .saturating_mul(high.div_ceil(view.step.max(1)).into())
            .saturating_mul(4)
            .saturating_add(HEAD_BYTES_MAX);
        let pending = self.ask(Request::View(view))?;
        let (Reply::Viewed { width, height, bytes, micros }, _) = pending.next()? else {
            return Err(RemoteError::Protocol("another answer than a window"));
        };
        let file = Geometry::new(bytes).filter(|_| bytes <= most);
        let whole = file.and_then(|file| Layout::new(file, &[(0, bytes)]).map(|all| (file, all)));
        let (file, layout) =
            whole.ok_or(RemoteError::Protocol("a window larger than its pixels"))?;
        let incoming = Incoming::new(pending, file, layout);
        let made_in = Duration::from_micros(micros);
        Ok(Viewing { width, height, made_in, incoming, bytes })
    }
}

impl Viewing {
    /// The coded window, once it is here.
    ///
    /// # Errors
    ///
    /// The bytes came damaged, or the connection has ended.
    pub fn receive(self) -> Result<Vec<u8>, RemoteError> {
        let mut bytes = vec![0; self.bytes as usize];
        let outcome = self.incoming.receive(
            |_| {},
            |segment| {
                let from = segment.offset as usize;
                bytes[from..from + segment.bytes.len()].copy_from_slice(segment.bytes);
            },
        )?;
        match outcome.missing.is_empty() && outcome.damaged.is_empty() {
            true => Ok(bytes),
            false => Err(RemoteError::Protocol("a damaged window")),
        }
    }
}
