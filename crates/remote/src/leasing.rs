//! Leases, at the client: what it may rely on, and changes that it decides on itself.

use crate::calls::Listing;
use crate::client::{Client, Lanes, Reply_};
use crate::error::RemoteError;
use crate::message::{Attempt, Edit, Extent, Holder, Lease, Leased, Reply, Request};
use hikyaku_store::{Found, StorePath};
use std::ops::ControlFlow;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// What a change under a lease has led to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decided {
    /// The path is there, with these metadata.
    There(Found),
    /// A directory was made, and the client has a lease for writing of it.
    Leased(Leased),
    /// The change was made.
    Done,
}

impl Client {
    /// Names the holder of the leases of this connection. `each` hears the number of each lease that the server wants back,
    /// until the connection ends.
    pub fn hear_recalls(
        &self,
        holder: Holder,
        mut each: impl FnMut(Result<u64, RemoteError>) + Send + 'static,
    ) {
        let on_reply = move |reply: Result<Reply_, RemoteError>| match reply {
            Ok((Reply::Recall { lease }, _)) => {
                each(Ok(lease));
                ControlFlow::Continue(())
            }
            Ok(_) => {
                each(Err(RemoteError::Protocol("another answer than a lease")));
                ControlFlow::Break(())
            }
            Err(error) => {
                each(Err(error));
                ControlFlow::Break(())
            }
        };
        self.ask_then(Request::Lease(Lease::Hear { holder }), &[], Box::new(on_reply));
    }

    /// Tells the server that this client is there.
    pub fn renew_then(&self, done: impl FnOnce(Result<(), RemoteError>) + Send + 'static) {
        self.once(Request::Lease(Lease::Renew), done, |reply| match reply {
            (Reply::Done, _) => Some(()),
            _ => None,
        });
    }

    /// Gives a lease back.
    pub fn give_back(&self, lease: u64) {
        // If the connection has ended, the leases end as well.
        let _ = self.say(Request::Lease(Lease::GiveBack { lease }));
    }

    /// The entries of a directory as [`Client::list_then`] tells them, each directory after its lease, if there is one.
    pub fn take_then(
        &self,
        path: &StorePath,
        (extent, ahead): (Extent, u32),
        each: impl FnMut(Result<Listing, RemoteError>) + Send + 'static,
    ) {
        let request = Request::Lease(Lease::Take { path: path.as_bytes().to_vec(), extent, ahead });
        self.listing(request, path, each);
    }

    /// Makes a change under leases for writing, of which `bytes` are those of a [`Edit::Write`]. Changes are made in the order
    /// of these calls.
    pub fn held_then(
        &self,
        (edit, attempt): (Edit, Attempt),
        bytes: &[u8],
        done: impl FnOnce(Result<Decided, RemoteError>) + Send + 'static,
    ) {
        let read = |reply| match reply {
            (Reply::Looked(found), _) => Some(Decided::There(found)),
            (Reply::Leased(leased), _) => Some(Decided::Leased(leased)),
            (Reply::Done, _) => Some(Decided::Done),
            _ => None,
        };
        self.once_with(Request::Held { edit, attempt }, bytes, done, read);
    }

    /// Whether it may ask for leases.
    pub const fn has_leases(&self) -> bool {
        self.lanes.is_some()
    }

    /// Opens the streams that leases need, if they are not open: a client without leases has no use for them.
    ///
    /// # Errors
    ///
    /// The connection has ended, or the machine has no room for another thread.
    pub fn with_leases(mut self) -> Result<Self, RemoteError> {
        let [recalls, notes, held] = [(), (), ()].map(|()| self.lane());
        let lanes = Lanes { recalls: recalls?, notes: notes?, held: held? };
        self.lanes = Some(Arc::new(lanes));
        Ok(self)
    }
}
