//! `hikyaku cp` beside what people use.

pub(crate) mod failures;
pub(crate) mod large_file;
pub(crate) mod liars;
pub(crate) mod no_network;
pub(crate) mod small_files;
pub(crate) mod sparse_and_empty;
pub(crate) mod sync_by_sftp;
pub(crate) mod tree;
pub(crate) mod via_tcp;
pub(crate) mod without_udp;
