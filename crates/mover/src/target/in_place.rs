//! A file that is written under its own name.

use hikyaku_store::{
    Access, Change, Draft, Finish, Found, Naming, Open, Result, Store, StorePath, SyncScope, Token,
};
use std::sync::Arc;

/// An open file that exists. It keeps what was written, however its writing ends.
pub(super) struct InPlace {
    store: Arc<dyn Store>,
    path: StorePath,
    open: Box<dyn Open>,
}

impl InPlace {
    pub(super) fn open(store: &Arc<dyn Store>, path: &StorePath) -> Result<Self> {
        let open = store.open(path, Access::Update)?;
        Ok(Self { store: store.clone(), path: path.clone(), open })
    }
}

/// The token of a file that is written under its own name.
pub(super) fn token(path: &StorePath) -> Token {
    Token(path.split().map(|(_, name)| name.as_bytes().to_vec()).unwrap_or_default())
}

impl Draft for InPlace {
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<()> {
        self.open.write_at(at, bytes)
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize> {
        self.open.read_at(at, into)
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.open.set_len(length)
    }

    /// Its own name.
    fn token(&self) -> Token {
        token(&self.path)
    }

    fn keep(&self) {}

    fn sync(&self) -> Result<()> {
        self.open.sync(SyncScope::All)
    }

    fn name(self: Box<Self>, _: Naming, finish: &Finish) -> Result<Found> {
        let Finish { mode, modified, owner, attributes, .. } = finish.clone();
        self.store.change(&self.path, &Change { mode, modified, owner, attributes })?;
        self.store.look(&self.path)
    }

    fn discard(self: Box<Self>) {}
}
