//! TCP flows of other programs, carried by `hikyaku proxy`.

pub(crate) mod browser;
pub(crate) mod downloads;
mod gateways;
pub(crate) mod switched;
