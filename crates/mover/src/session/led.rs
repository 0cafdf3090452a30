//! Where a path leads that the user has named: servers follow no symbolic links.

use super::{Session, SessionError};
use hikyaku_job::{in_store, is_pattern};
use hikyaku_remote::{Client, RemoteError, RemoteStore};
use hikyaku_store::{
    End, ErrorKind, Kind as FileKind, Last, Led, Root, Step, Store, StorePath, lead,
};
use hikyaku_transfer::FailureKind;
use std::collections::BTreeSet;

impl Session {
    /// The paths that the user means by this one: everything on any server that matches it, if it is a pattern that is no name.
    ///
    /// # Errors
    ///
    /// No server answers, or too many paths match.
    pub fn matching(&self, named: &StorePath) -> Result<Vec<StorePath>, SessionError> {
        if !is_pattern(named.as_bytes()) || self.look(named).is_ok() {
            return Ok(vec![named.clone()]);
        }
        let asked = self.each(|client| {
            in_store(&RemoteStore::new(client.clone()), named)
                .map_err(|error| RemoteError::Refused { kind: error.kind, text: error.to_string() })
        });
        let (found, failed): (Vec<_>, Vec<_>) =
            asked.into_iter().map(|(_, answer)| answer).partition(Result::is_ok);
        let mut all: BTreeSet<StorePath> = found.into_iter().flatten().flatten().collect();
        // Servers where nothing matches report the pattern itself.
        if all.len() > 1 {
            all.remove(named);
        }
        match all.is_empty() {
            true => Err(self.failure(named, failed.into_iter().filter_map(Result::err))),
            false => Ok(all.into_iter().collect()),
        }
    }

    /// The path without links, and whether a server has something there. `shown` is the path as the user wrote it.
    pub(super) fn led(
        &self,
        clients: &[Client],
        (named, shown): (&StorePath, &str),
        last: Last,
    ) -> Result<Led, SessionError> {
        // Mostly there is no link, which costs one question.
        match self.kinds(clients, named, shown) {
            Ok(kinds) => {
                let mut found = kinds.iter().flatten().peekable();
                let end = if found.peek().is_some() { End::There } else { End::Nothing };
                if last == Last::Kept || found.all(|kind| *kind != FileKind::Link) {
                    return Ok(Led { path: named.clone(), end });
                }
            }
            Err(error) if !may_be_link(&error) => return Err(error),
            Err(_) => {}
        }
        let look = |at: &StorePath| self.step(clients, at, shown);
        let led = lead(named, (Root::Somewhere, last), look)?;
        match led.end {
            End::Away => {
                let text =
                    format!("{shown}: its link leads out of what the server offers, or to itself");
                Err(SessionError::refused(ErrorKind::Link, text))
            }
            End::There | End::Nothing | End::Dangling => Ok(led),
        }
    }

    /// What the servers have of a name: the link of the first that has one.
    fn step(&self, clients: &[Client], at: &StorePath, shown: &str) -> Result<Step, SessionError> {
        let kinds = self.kinds(clients, at, shown)?;
        let mut found = kinds.into_iter().flatten().peekable();
        if found.peek().is_none() {
            return Ok(Step::Nothing);
        }
        if found.all(|kind| kind != FileKind::Link) {
            return Ok(Step::Other);
        }
        for client in clients {
            let is_link = client.look(at).is_ok_and(|found| found.kind == FileKind::Link);
            let store = RemoteStore::new(client.clone());
            if let Some(Ok(text)) = is_link.then(|| store.read_link(at)) {
                return Ok(Step::Link(text));
            }
        }
        let text = format!("{shown}: {}", ErrorKind::Link);
        Err(SessionError::refused(ErrorKind::Link, text))
    }
}

/// The place to which a link of the servers leads, by the first server that has one.
pub(super) fn behind_link(clients: &[Client], link: &StorePath) -> Result<StorePath, ErrorKind> {
    let mut why = ErrorKind::NotFound;
    for client in clients {
        match RemoteStore::new(client.clone()).follow(link) {
            Ok((place, _)) => return Ok(place),
            Err(error) if why == ErrorKind::NotFound => why = error.kind,
            Err(_) => {}
        }
    }
    Err(why)
}

/// Whether a link on the way may be why a path cannot be looked at.
fn may_be_link(error: &SessionError) -> bool {
    let kind = error.kind().map(crate::kind::Kind::as_file);
    matches!(kind, Some(FailureKind::Link | FailureKind::NotDirectory))
}
