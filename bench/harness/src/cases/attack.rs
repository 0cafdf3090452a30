//! The transport under attack.

pub(crate) mod forged_packets;
