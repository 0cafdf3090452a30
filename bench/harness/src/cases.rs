//! All benches: what is measured. The ids that users type stand in each one's [`Bench`].

mod attack;
mod carry;
mod copy;
mod fair;
mod ftp;
pub(crate) mod ground;
mod many;
mod mount;
mod spine;
mod web;

use crate::bench::Bench;

/// All benches, in the order in which `--list` and `all` take them.
pub(crate) const BENCHES: &[Bench] = &[
    ground::machine::BENCH,
    ground::calibration::BENCH,
    ground::sites::BENCH,
    spine::filling::BENCH,
    spine::beside_others::BENCH,
    spine::start::BENCH,
    spine::queue::BENCH,
    spine::processor::BENCH,
    spine::cores::BENCH,
    spine::ten_gigabits::BENCH,
    spine::target_rates::BENCH,
    spine::simulated::BENCH,
    spine::trouble::BENCH,
    spine::memory::BENCH,
    spine::idle_streams::BENCH,
    copy::large_file::BENCH,
    copy::small_files::BENCH,
    copy::tree::BENCH,
    copy::no_network::BENCH,
    copy::failures::BENCH,
    copy::liars::BENCH,
    copy::sparse_and_empty::BENCH,
    copy::sync_by_sftp::BENCH,
    copy::without_udp::BENCH,
    copy::via_tcp::BENCH,
    carry::downloads::BENCH,
    many::scaling::BENCH,
    many::replicas::BENCH,
    many::placement::BENCH,
    carry::switched::BENCH,
    carry::browser::BENCH,
    mount::reading::BENCH,
    mount::many_sites::BENCH,
    fair::own_flows::EQUAL,
    fair::own_flows::UNEQUAL,
    fair::own_flows::LATE,
    fair::beside_tcp::BENCH,
    fair::bottlenecks::BENCH,
    fair::short_flows::BENCH,
    web::get::BENCH,
    web::fair::BENCH,
    web::servers::BENCH,
    ftp::guc::BENCH,
    attack::forged_packets::BENCH,
    attack::many_clients::BENCH,
];
