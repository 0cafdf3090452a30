//! What came of requests.

use crate::attributes::Attributes;
use crate::client::{Asked, Failed};
use crate::packet::{Response, Status};

/// The answer to a request, or why there is none.
#[must_use = "the response of a request is its only sign of a failure"]
pub struct Answer(pub(crate) Asked<Response>);

/// An open file or directory of the server. It is not closed by itself: see [`crate::Client::close`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Handle(Vec<u8>);

/// Bytes of a handle (section 4 of the draft).
const HANDLE_BYTES_MAX: usize = 256;

impl Answer {
    /// That a request is done which has no other answer.
    ///
    /// # Errors
    ///
    /// See [`Failed`].
    pub fn done(self) -> Asked<()> {
        match self.0? {
            Response::Status(..) => Ok(()),
            _ => Err(Failed::Odd),
        }
    }

    /// The file or directory that was opened.
    ///
    /// # Errors
    ///
    /// See [`Failed`].
    pub fn handle(self) -> Asked<Handle> {
        match self.0? {
            Response::Handle(handle) if handle.len() <= HANDLE_BYTES_MAX => Ok(Handle(handle)),
            _ => Err(Failed::Odd),
        }
    }

    /// Metadata.
    ///
    /// # Errors
    ///
    /// See [`Failed`].
    pub fn attributes(self) -> Asked<Attributes> {
        match self.0? {
            Response::Attributes(attributes) => Ok(attributes),
            _ => Err(Failed::Odd),
        }
    }

    /// The one name that [`crate::Request::RealPath`] or [`crate::Request::ReadLink`] asks for.
    ///
    /// # Errors
    ///
    /// See [`Failed`].
    pub fn name(self) -> Asked<Vec<u8>> {
        match self.0? {
            Response::Names(mut names) if names.len() == 1 => Ok(names.remove(0).name),
            _ => Err(Failed::Odd),
        }
    }

    /// The bytes of a [`crate::Request::Read`] of `length` bytes; none at the end of the file.
    ///
    /// # Errors
    ///
    /// See [`Failed`].
    pub fn data(self, length: usize) -> Asked<Vec<u8>> {
        match self.0 {
            Ok(Response::Data(data)) if data.len() <= length && !data.is_empty() => Ok(data),
            Ok(_) => Err(Failed::Odd),
            Err(Failed::Refused { status: Status::End, .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

impl Handle {
    /// As requests take it.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
