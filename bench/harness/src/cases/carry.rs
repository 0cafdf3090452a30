//! TCP flows of other programs, carried by `hikyaku proxy`.

pub(crate) mod downloads;
