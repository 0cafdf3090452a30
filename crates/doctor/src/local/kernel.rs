//! Limits and features of the kernel: packets, files, mounts, congestion controls.

use crate::check::{Check, Id, State};
use hikyaku_fs::words;
use hikyaku_udp::route_mtu;
use rustix::process::{Resource, getrlimit};
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};

/// An address of documentation (RFC 5737): the kernel looks up the default route, and nothing is sent.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Ethernet's. A smaller one means a tunnel or a mobile network; a larger one is used where the whole path has it.
const USUAL_MTU: usize = 1_500;

/// The MTU of the default route.
pub(super) fn mtu() -> Check {
    match route_mtu(SocketAddr::from((ELSEWHERE, 9)), None) {
        Ok(mtu) => {
            let found = format!("the default route has an MTU of {mtu} bytes");
            let state = if mtu < USUAL_MTU { State::Note } else { State::Ok };
            Check::new(Id::Mtu, state, found).measured(mtu as f64, "bytes")
        }
        Err(error) => {
            Check::new(Id::Mtu, State::Note, format!("no default route: {}", words(&error)))
        }
    }
}

/// Limits of this process, and what the kernel has.
pub(super) fn limits() -> Vec<Check> {
    vec![open_files(), file_size(), fuse(), congestion_control()]
}

fn open_files() -> Check {
    let limit = getrlimit(Resource::Nofile);
    match limit.current {
        Some(count) => {
            Check::ok(Id::OpenFiles, format!("{count} at once")).measured(count as f64, "files")
        }
        None => Check::ok(Id::OpenFiles, "no limit"),
    }
}

fn file_size() -> Check {
    match getrlimit(Resource::Fsize).current {
        Some(bytes) => {
            let found = format!("no file may be larger than {bytes} bytes (ulimit -f)");
            Check::new(Id::FileSize, State::Note, found).measured(bytes as f64, "bytes")
        }
        None => Check::ok(Id::FileSize, "no limit"),
    }
}

/// Whether `hikyaku mount` can work.
fn fuse() -> Check {
    let note =
        |found: String, remedy: &str| Check::new(Id::Fuse, State::Note, found).with_remedy(remedy);
    if let Err(error) = File::options().read(true).write(true).open("/dev/fuse") {
        let found = format!("'hikyaku mount' cannot work: /dev/fuse: {}", words(&error));
        return note(found, "modprobe fuse, as root; in a container, pass the device to it");
    }
    let is_root = rustix::process::geteuid().is_root();
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !is_root && !std::env::split_paths(&path).any(|dir| dir.join("fusermount3").is_file()) {
        let found = "'hikyaku mount' needs root: fusermount3 is not installed".to_owned();
        return note(found, "apt install fuse3");
    }
    Check::ok(Id::Fuse, "'hikyaku mount' can work")
}

/// For TCP only: `hikyaku guc`, daemons over TCP, and programs to compare with.
fn congestion_control() -> Check {
    let setting = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
        text.trim().to_owned()
    };
    let (used, known) =
        (setting("tcp_congestion_control"), setting("tcp_available_congestion_control"));
    if used.is_empty() {
        return Check::new(Id::CongestionControl, State::Skip, "the kernel does not tell");
    }
    Check::ok(Id::CongestionControl, format!("TCP uses {used}; the kernel has {known}"))
}
