//! Requests whose answers a function hears, so that many wait for answers and no thread does.
//!
//! Each function is called by the thread that reads the server's answers and must not wait. It is called exactly once at
//! the end, whether the server answers or the connection is lost.

use crate::client::{Client, Reply_};
use crate::error::RemoteError;
use crate::message::{
    Edit, Holder, Leased, Listed, Lock, Piece, Reply, Report, Request, RequestId,
};
use hikyaku_store::{Found, Space, StorePath};
use hikyaku_transfer::FileHash;
use std::ops::ControlFlow;

/// Entries that a server may tell in answer to one request; more end the connection.
pub const LISTED_MAX: usize = 4_000_000;

/// What is heard of a listing.
#[derive(Debug)]
pub enum Listing {
    /// Some entries of a directory.
    Entries {
        /// The directory that was asked for, or one below it.
        dir: StorePath,
        /// The entries.
        entries: Vec<Listed>,
        /// Whether the directory has been told completely.
        is_last: bool,
    },
    /// A lease of a directory whose entries follow.
    Leased {
        /// The directory.
        dir: StorePath,
        /// The lease.
        leased: Leased,
    },
    /// The request is complete.
    End,
}

impl Client {
    /// The metadata of a name.
    pub fn look_then(
        &self,
        path: &StorePath,
        done: impl FnOnce(Result<Found, RemoteError>) + Send + 'static,
    ) {
        self.once(Request::Look { path: path.as_bytes().to_vec() }, done, |reply| match reply {
            (Reply::Looked(found), _) => Some(found),
            _ => None,
        });
    }

    /// The text of a symbolic link.
    pub fn read_link_then(
        &self,
        path: &StorePath,
        done: impl FnOnce(Result<Vec<u8>, RemoteError>) + Send + 'static,
    ) {
        self.once(
            Request::ReadLink { path: path.as_bytes().to_vec() },
            done,
            |reply| match reply {
                (Reply::Link { text }, _) => Some(text),
                _ => None,
            },
        );
    }

    /// The space of the store.
    pub fn space_then(&self, done: impl FnOnce(Result<Space, RemoteError>) + Send + 'static) {
        self.once(Request::Space, done, |reply| match reply {
            (Reply::Space(space), _) => Some(space),
            _ => None,
        });
    }

    /// The directory in which the paths of this client's user begin. The server must have the feature
    /// [`HOMES`](hikyaku_reach::daemon::HOMES).
    ///
    /// # Errors
    ///
    /// The server does not know it, or the connection has ended.
    // spec: store-feature-11
    pub fn home(&self) -> Result<Vec<u8>, RemoteError> {
        match self.ask(Request::Home)?.next()? {
            (Reply::Link { text }, _) => Ok(text),
            _ => Err(RemoteError::Protocol("another answer than a directory")),
        }
    }

    /// The state of the server, which must have the feature [`REPORTS`](hikyaku_reach::daemon::REPORTS).
    // spec: store-report-1
    pub fn report_then(&self, done: impl FnOnce(Result<Report, RemoteError>) + Send + 'static) {
        self.once(Request::Report, done, |reply| match reply {
            (Reply::Report(report), _) => Some(*report),
            _ => None,
        });
    }

    /// Locks or frees a range of a file. A lock that is waited for is answered when it is had, or given up by the number that
    /// is returned.
    pub fn lock_then(
        &self,
        lock: Lock,
        done: impl FnOnce(Result<(), RemoteError>) + Send + 'static,
    ) -> RequestId {
        self.once(Request::Lock(lock), done, |reply| match reply {
            (Reply::Done, _) => Some(()),
            _ => None,
        })
    }

    /// The lock that keeps an owner from a range: whether it is exclusive, and its first and last byte.
    #[allow(clippy::type_complexity)]
    pub fn lock_of_then(
        &self,
        lock: Lock,
        done: impl FnOnce(Result<Option<(bool, (u64, u64))>, RemoteError>) + Send + 'static,
    ) {
        self.once(Request::LockOf(lock), done, |reply| match reply {
            (Reply::Locked { by }, _) => Some(by),
            _ => None,
        });
    }

    /// A short range of a file, proven by its hash.
    // spec: store-piece-2
    pub fn piece_then(
        &self,
        piece: Piece,
        done: impl FnOnce(Result<Vec<u8>, RemoteError>) + Send + 'static,
    ) {
        let wanted = piece.length;
        self.once(Request::Piece(piece), done, move |reply| match reply {
            (Reply::Piece { length, hash }, bytes)
                if length == wanted && hash == FileHash(*blake3::hash(&bytes).as_bytes()) =>
            {
                Some(bytes)
            }
            _ => None,
        });
    }

    /// The entries of a directory, and of directories below it until about `ahead` entries have been told. `each` is
    /// called until it hears [`Listing::End`] or an error.
    pub fn list_then(
        &self,
        path: &StorePath,
        ahead: u32,
        each: impl FnMut(Result<Listing, RemoteError>) + Send + 'static,
    ) {
        self.listing(Request::List { path: path.as_bytes().to_vec(), ahead }, path, each);
    }

    /// Asks for what is answered with entries.
    pub(crate) fn listing(
        &self,
        request: Request,
        path: &StorePath,
        mut each: impl FnMut(Result<Listing, RemoteError>) + Send + 'static,
    ) {
        let root = path.clone();
        let mut told = 0;
        let on_reply = move |reply: Result<Reply_, RemoteError>| {
            let listing = match reply {
                Ok((Reply::Done, _)) => Ok(Listing::End),
                Ok((Reply::Listed { dir, entries, is_last }, _)) => {
                    told += entries.len();
                    match below(&root, &dir).filter(|_| told <= LISTED_MAX) {
                        Some(dir) => Ok(Listing::Entries { dir, entries, is_last }),
                        None => Err(RemoteError::Protocol("entries that were not asked for")),
                    }
                }
                Ok((Reply::Leased(leased), _)) => match below(&root, &leased.dir) {
                    Some(dir) => Ok(Listing::Leased { dir, leased }),
                    None => Err(RemoteError::Protocol("a lease that was not asked for")),
                },
                Ok(_) => Err(RemoteError::Protocol("another answer than entries")),
                Err(error) => Err(error),
            };
            let goes_on = matches!(listing, Ok(Listing::Entries { .. } | Listing::Leased { .. }));
            each(listing);
            if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        self.ask_then(request, &[], Box::new(on_reply));
    }

    /// Changes the store; `bytes` are those of a [`Edit::Write`], of nothing else. What is heard is the metadata after
    /// it, where the change tells them.
    pub fn edit_then(
        &self,
        edit: Edit,
        bytes: &[u8],
        done: impl FnOnce(Result<Option<Found>, RemoteError>) + Send + 'static,
    ) {
        let read = |reply| match reply {
            (Reply::Looked(found), _) => Some(Some(found)),
            (Reply::Done, _) => Some(None),
            _ => None,
        };
        self.once_with(Request::Edit(edit), bytes, done, read);
    }

    /// Tells the name of this process, and those of processes with its key that have ended: their sessions end.
    pub fn process_then(
        &self,
        (name, ended): (Holder, Vec<Holder>),
        done: impl FnOnce(Result<(), RemoteError>) + Send + 'static,
    ) {
        let read = |reply| matches!(reply, (Reply::Done, _)).then_some(());
        self.once(Request::Process { name, ended }, done, read);
    }

    /// Asks for what has one answer.
    pub(crate) fn once<T>(
        &self,
        request: Request,
        done: impl FnOnce(Result<T, RemoteError>) + Send + 'static,
        read: impl FnMut(Reply_) -> Option<T> + Send + 'static,
    ) -> RequestId {
        self.once_with(request, &[], done, read)
    }

    pub(crate) fn once_with<T>(
        &self,
        request: Request,
        tail: &[u8],
        done: impl FnOnce(Result<T, RemoteError>) + Send + 'static,
        mut read: impl FnMut(Reply_) -> Option<T> + Send + 'static,
    ) -> RequestId {
        let mut done = Some(done);
        let on_reply = move |reply: Result<Reply_, RemoteError>| {
            let other = RemoteError::Protocol("another answer than the one to the request");
            let answer = reply.and_then(|reply| read(reply).ok_or(other));
            if let Some(done) = done.take() {
                done(answer);
            }
            ControlFlow::Break(())
        };
        self.ask_then(request, tail, Box::new(on_reply))
    }
}

/// A path that the server reports, if it is `root` or below it. Without this check a server that is asked for `run7` could
/// name any file of the target directory.
// spec: store-list-2
pub(crate) fn below(root: &StorePath, dir: &[u8]) -> Option<StorePath> {
    let dir = StorePath::new(dir).ok()?;
    let mut names = dir.names();
    root.names().all(|name| names.next() == Some(name)).then(|| dir.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: store-list-2
    #[test]
    fn a_server_is_believed_only_what_it_was_asked_for() {
        let is_within =
            |path: &[u8], root: &[u8]| below(&StorePath::new(root).unwrap(), path).is_some();
        for path in ["run7", "run7/a", "run7/.hidden/b"] {
            assert!(is_within(path.as_bytes(), b"run7"), "{path}");
        }
        let others = ["", "run", "run70", "run70/a", ".ssh/authorized_keys", "a/run7", "run7/../a"];
        for path in others {
            assert!(!is_within(path.as_bytes(), b"run7"), "{path}");
        }
        assert!(is_within(b"anything", b""));
    }
}
