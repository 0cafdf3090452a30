//! `hikyaku guc` beside globus-url-copy.

pub(crate) mod guc;
pub(crate) mod plot;
