//! What benches stand on: the ground that they measure on, who carries the data, and what is read of it.

pub(crate) mod contender;
pub(crate) mod context;
pub(crate) mod copier;
pub(crate) mod costs;
pub(crate) mod crowd;
pub(crate) mod download;
pub(crate) mod downloader;
pub(crate) mod files;
pub(crate) mod goodput;
pub(crate) mod ground;
pub(crate) mod home;
pub(crate) mod line;
pub(crate) mod link;
pub(crate) mod odd_web;
pub(crate) mod others;
mod peers;
pub(crate) mod ramdisk;
pub(crate) mod short_flows;
pub(crate) mod ssh;
pub(crate) mod sysctl;
pub(crate) mod together;
pub(crate) mod transfer;
pub(crate) mod trial;
pub(crate) mod veth;
pub(crate) mod web;
