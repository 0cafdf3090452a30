//! The transport under attack.

pub(crate) mod forged_packets;
pub(crate) mod many_clients;
