//! One client and many storage servers.

pub(crate) mod placement;
pub(crate) mod replicas;
pub(crate) mod scaling;
mod site;
