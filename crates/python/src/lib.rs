//! The extension module of the Python package `hikyaku`: a session with servers (`hikyaku-mover`).
//!
//! The classes that users see are in `python/hikyaku`; this module converts. A call that waits lets the interpreter go
//! (`wait`). The `unsafe` code that a Python module needs is made by PyO3's macros.
#![forbid(unsafe_code)]

mod convert;
mod failure;
mod session;
mod setup;
mod wait;

/// Called by the package `hikyaku` only.
#[pyo3::pymodule]
mod _hikyaku {
    #[pymodule_export]
    use crate::convert::{Done, Entry, HostStatus, Lost};
    #[pymodule_export]
    use crate::session::Session;
}
