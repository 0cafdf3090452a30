//! The error that ends a copy early: the first one that a thread reports.

use crate::error::PairError;
use hikyaku_net::code;
use hikyaku_reach::Connection;
use hikyaku_transfer::FailureKind;
use std::sync::{Mutex, PoisonError};

/// The first error. Its report closes the connections, which ends every wait at all ends.
pub(crate) struct Fault {
    connections: Vec<Connection>,
    cause: Mutex<Option<PairError>>,
}

/// Work stops because another thread has reported a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stopped;

/// First of the codes with which an end closes that cannot continue. The code contains the kind of the failure.
const KINDS: u64 = code::APPLICATION + 0x100;

/// The code with which an end closes for this cause.
// spec: copy-close-1
pub(crate) fn close_code(cause: &PairError) -> u64 {
    KINDS + cause.kind().unwrap_or(FailureKind::Other).number()
}

/// The kind of failure for which the other end has closed with this code.
pub(crate) fn kind_of_close(code: u64) -> Option<FailureKind> {
    FailureKind::from_number(code.checked_sub(KINDS)?)
}

/// Maximum length in bytes of the reason in the close of the connection.
const MOST_REASON: usize = 500;

impl Fault {
    pub(crate) const fn new(connections: Vec<Connection>) -> Self {
        Self { connections, cause: Mutex::new(None) }
    }

    /// Ends the copy.
    pub(crate) fn report(&self, cause: impl Into<PairError>) -> Stopped {
        let cause = cause.into();
        let mut kept = self.cause.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_none() {
            let mut reason = cause.one_line();
            let end =
                (0..=MOST_REASON.min(reason.len())).rev().find(|at| reason.is_char_boundary(*at));
            reason.truncate(end.unwrap_or(0));
            let code = close_code(&cause);
            for connection in &self.connections {
                connection.close(code, &reason);
            }
            *kept = Some(cause);
        }
        Stopped
    }

    /// Whether there is one.
    pub(crate) fn is_there(&self) -> bool {
        self.cause.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The first cause.
    pub(crate) fn take(&self) -> Option<PairError> {
        self.cause.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
