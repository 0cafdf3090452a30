//! A server of a session as the target of files that are not of this machine.

use super::{Session, SessionError, Target};
use crate::kind::Kind;
use crate::layout::Written;
use hikyaku_remote::RemoteStore;
use hikyaku_store::{Last, Store, StorePath};
use hikyaku_transfer::FailureKind;
use std::sync::Arc;

impl Session {
    /// A place on the server: its store, and the metadata of the path.
    ///
    /// # Errors
    ///
    /// There are several servers, the server takes no uploads, or the place cannot be a target.
    pub fn place(
        &self,
        named: &StorePath,
        written: Written,
    ) -> Result<(Arc<dyn Store>, Target), SessionError> {
        self.check_uploads()?;
        let (clients, shown) = (self.clients(), self.shown(named));
        let [client] = &clients[..] else {
            let text = format!("{shown}: files that are not of this machine go to one server");
            return Err(SessionError::refused(Kind::File(FailureKind::Unsupported), text));
        };
        let look = |path: &StorePath| self.kinds(&clients, path, &shown);
        let led = self.led(&clients, (named, &shown), Last::Followed)?;
        let target = Target::find(&look, &shown, (written, led))?;
        Ok((Arc::new(RemoteStore::new(client.clone())), target))
    }
}
