//! What flows leave to each other.

pub(crate) mod beside_tcp;
pub(crate) mod bottlenecks;
pub(crate) mod own_flows;
pub(crate) mod short_flows;
