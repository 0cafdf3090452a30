//! `hikyaku get` beside what people use.

pub(crate) mod fair;
pub(crate) mod get;
pub(crate) mod servers;
