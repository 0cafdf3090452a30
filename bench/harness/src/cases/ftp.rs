//! `hikyaku guc` beside globus-url-copy.

pub(crate) mod plot;
pub(crate) mod tuned;
