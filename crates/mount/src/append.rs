//! Appending through a handle of a file that another host has changed since.
//!
//! Reads through such a handle fail, so that bytes of two contents are not mixed. Appended bytes still go to the end of the
//! file, wherever the other host has moved it.

use crate::core::{Access, Core, Standing, State, errno};
use crate::nodes::Seen;
use crate::write::Where;
use bytes::Bytes;
use fuser::Errno;
use hikyaku_store::ErrorKind;
use std::sync::Arc;

impl State {
    /// Whether a handle that a program may write through has a node with another content than its file.
    pub(crate) fn writes_outdated(&self, handle: u64) -> bool {
        let open = self.handles.get(&handle);
        let open = open.filter(|open| open.access == Access::Write && open.error.is_none());
        open.and_then(|open| self.nodes.at(open.number)).is_some_and(|node| node.is_stale)
    }
}

impl Core {
    /// Asks what the file is, and appends if it is still the same one.
    pub(crate) fn append_anew(
        self: &Arc<Self>,
        handle: u64,
        (to, bytes): (Where, Bytes),
        done: impl FnOnce(Result<u32, Errno>) + Send + 'static,
    ) {
        let state = self.state();
        let number = state.handles.get(&handle).map(|open| open.number);
        let path = number.and_then(|number| Some(state.nodes.at(number)?.path.clone()));
        drop(state);
        let (Some(number), Some(path)) = (number, path) else { return done(Err(Errno::ESTALE)) };
        let asked = path.clone();
        let note = move |state: &mut State, seen: Result<Seen, ErrorKind>| {
            if state.nodes.at(number).is_some_and(|node| node.path != path) {
                return Ok(Asked::AtOldPath);
            }
            let seen = match (state.note_seen(&path, seen.clone()), seen) {
                (Ok(_), Ok(seen)) => seen,
                (Err(ErrorKind::NotFound), _) => return Err(Errno::ESTALE),
                (Err(kind), _) | (_, Err(kind)) => return Err(errno(kind)),
            };
            state.succeed((number, &path), seen).ok_or(Errno::ESTALE)?;
            if let Some(open) = state.handles.get_mut(&handle) {
                // The kernel keeps no pages of what is read through it.
                open.standing = Standing::Present;
            }
            Ok(Asked::AtItsPath)
        };
        let core = self.clone();
        self.look(asked, note, move |found| match found {
            Ok(Asked::AtItsPath) => core.write(handle, (to, bytes), done),
            Ok(Asked::AtOldPath) => core.append_anew(handle, (to, bytes), done),
            Err(errno) => done(Err(errno)),
        });
    }
}

/// The path for which a server was asked.
enum Asked {
    AtItsPath,
    /// The file was given another name meanwhile.
    AtOldPath,
}
