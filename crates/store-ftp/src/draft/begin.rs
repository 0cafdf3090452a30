//! Drafts that begin: beside their name, under it, or where an earlier process has left them.

use super::{FtpDraft, Place, State, There, Under};
use crate::convert::{kind, reason};
use crate::ftp::Ftp;
use hikyaku_fs::{Name, Token as Partial};
use hikyaku_store::{Doing, ErrorKind, Kind, Make, Result, Token};
use std::sync::Mutex;

impl FtpDraft {
    pub(crate) fn new(ftp: &Ftp, doing: Doing<'_>, make: &Make) -> Result<Self> {
        let path = doing.path();
        let Some((dir, name)) = path.split() else { return doing.fail(ErrorKind::IsDir) };
        let token = doing.or(Partial::random())?;
        let partial = doing.or(token.partial(&name))?;
        let token = Token(partial.as_bytes().to_vec());
        let partial = doing.or(dir.join(&partial).map_err(|_| ErrorKind::BadName))?;
        let full = ftp.full(&partial);
        // A name that the server cannot have is refused before anything is written.
        let checked = ftp.with_retries(|channel| channel.check_name(&ftp.full(path)));
        doing.or(checked.map_err(|error| ftp.refused(path, error)))?;
        ftp.drafts().insert(full.clone());
        let state = State { note: ftp.note(&full), ..State::default() };
        Ok(Self {
            ftp: ftp.clone(),
            path: path.clone(),
            token,
            partial: full,
            under: Under::Temporary,
            size: make.size,
            state: Mutex::new(state),
        })
    }

    /// The file under its own name, which is emptied if it is longer than the new one. It keeps its mode.
    pub(crate) fn anew(ftp: &Ftp, doing: Doing<'_>, make: &Make) -> Result<Self> {
        let path = doing.path();
        let Some((_, name)) = path.split() else { return doing.fail(ErrorKind::IsDir) };
        let full = ftp.full(path);
        let there = ftp.with_retries(|channel| channel.facts(&full));
        let there = doing.or(there.map_err(|error| ftp.refused(path, error)))?;
        match there.as_ref().map(kind) {
            None | Some(Kind::File) => {}
            Some(Kind::Dir) => return doing.fail(ErrorKind::IsDir),
            // A server writes through a link.
            Some(Kind::Link | Kind::Special)
                if there.as_ref().is_some_and(|facts| facts.link.is_some()) => {}
            Some(Kind::Link | Kind::Special) => return doing.fail(ErrorKind::SPECIAL),
        }
        let length = there.map_or(0, |facts| facts.size.unwrap_or(u64::MAX));
        if length > make.size.unwrap_or(0) {
            let emptied = ftp.with_retries(|channel| channel.empty(&full));
            doing.or(emptied.map_err(|error| ftp.refused(path, error)))?;
        }
        Ok(Self {
            ftp: ftp.clone(),
            path: path.clone(),
            token: Token(name.as_bytes().to_vec()),
            partial: full,
            under: Under::Own,
            size: make.size,
            state: Mutex::default(),
        })
    }

    /// The draft of this token, of which the server has some bytes.
    pub(crate) fn take_up(ftp: &Ftp, doing: Doing<'_>, token: &Token) -> Result<Self> {
        let path = doing.path();
        let partial = path.split().and_then(|(dir, name)| {
            let partial = Name::new(&token.0).ok()?;
            Partial::is_partial_of(&partial, &name).then(|| dir.join(&partial).ok())?
        });
        let Some(partial) = partial else { return doing.fail(ErrorKind::NotFound) };
        let full = ftp.full(&partial);
        if !ftp.drafts().insert(full.clone()) {
            return doing.fail(ErrorKind::Busy);
        }
        let length = match ftp.with_retries(|channel| channel.facts(&full)) {
            Ok(Some(facts)) if kind(&facts) == Kind::File => Ok(facts.size.unwrap_or(0)),
            Ok(_) => Err(ErrorKind::NotFound),
            Err(error) => Err(reason(&error)),
        };
        let length = doing.or(length.inspect_err(|_| {
            ftp.drafts().remove(&full);
        }))?;
        let (place, there) = (Place::Server, There::Part);
        let state = Mutex::new(State { place, there, length, ..State::default() });
        let (ftp, path, token) = (ftp.clone(), path.clone(), token.clone());
        // It is longer than its part at the server.
        let (under, size) = (Under::Temporary, Some(u64::MAX));
        Ok(Self { ftp, path, token, partial: full, under, size, state })
    }
}
