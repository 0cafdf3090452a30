//! What is kept of a measurement, and how it is shown.

pub(crate) mod provenance;
pub(crate) mod publish;
pub(crate) mod row;
pub(crate) mod store;
pub(crate) mod table;
