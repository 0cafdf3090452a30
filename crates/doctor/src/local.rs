//! Checks of this machine alone.

mod cipher;
mod disk;
mod kernel;
mod load;
mod loopback;

pub(crate) use load::Load;

use crate::check::{Check, Id, State};
use hikyaku_udp::{Granted, SocketOptions, Support, UdpSocket};
use hikyaku_units::{DataSize, Rate, counted};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::thread;

/// Measurements of this machine, for the verdict.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Facts {
    /// The encryption rate of one core.
    pub(crate) cipher: Option<Rate>,
    /// The rate of UDP over loopback.
    pub(crate) loopback: Option<Rate>,
    /// The rate at which the disk writes and syncs.
    pub(crate) disk_write: Option<Rate>,
    /// The rate at which the disk reads.
    pub(crate) disk_read: Option<Rate>,
    /// The socket buffers.
    pub(crate) granted: Option<Granted>,
}

/// Runs all checks; `dir` is the directory whose disk is measured.
pub(crate) fn check(dir: Option<&Path>) -> (Vec<Check>, Facts) {
    let mut checks = vec![processor()];
    let mut facts = Facts::default();
    let (ciphers, rate) = cipher::check();
    facts.cipher = rate;
    checks.push(ciphers);
    let (loopback, rate) = loopback::check();
    facts.loopback = rate;
    checks.push(loopback);
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let options = SocketOptions::default();
    match UdpSocket::bind(any, &options) {
        Ok(socket) => {
            let granted = socket.granted();
            facts.granted = Some(granted);
            checks.extend(buffers(&granted, &options));
        }
        Err(error) => {
            checks.push(Check::new(Id::ReceiveBuffer, State::Fail, error.to_string()));
        }
    }
    checks.push(kernel::mtu());
    let (disk, rates) = disk::check(dir);
    (facts.disk_write, facts.disk_read) = rates.unzip();
    checks.push(disk);
    checks.extend(kernel::limits());
    (checks, facts)
}

fn processor() -> Check {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let aes = hikyaku_crypto::preferred_ciphers();
    let has_aes =
        aes.first().is_some_and(|&first| hikyaku_crypto::cipher_name(first) == "aegis128l");
    let check = |state, aes: &str| {
        Check::new(Id::Processor, state, format!("{}, {aes}", counted(cores, "core")))
            .measured(cores as f64, "cores")
    };
    if has_aes {
        check(State::Ok, "with instructions for AES")
    } else {
        check(State::Note, "without instructions for AES: ChaCha20 is used")
    }
}

/// The buffers and offloads that the kernel grants. A small buffer is worth a note: whether it does harm is measured on
/// the path.
fn buffers(granted: &Granted, asked: &SocketOptions) -> [Check; 3] {
    let buffer = |id, granted: DataSize, asked: DataSize| {
        let found = format!("{granted} of the {asked} asked for");
        let state = if granted < asked { State::Note } else { State::Ok };
        Check::new(id, state, found).measured(granted.bytes() as f64, "bytes")
    };
    let names = [("segmentation (GSO)", granted.gso), ("coalescing (GRO)", granted.gro)];
    let missing: Vec<&str> = names
        .into_iter()
        .filter(|(_, support)| *support == Support::Absent)
        .map(|(name, _)| name)
        .collect();
    let offload = if missing.is_empty() {
        Check::ok(Id::Offload, "the kernel segments and coalesces datagrams")
    } else {
        let found =
            format!("the kernel has no {}: each datagram costs more", missing.join(", no "));
        Check::new(Id::Offload, State::Note, found)
    };
    [
        buffer(Id::ReceiveBuffer, granted.recv_buffer, asked.recv_buffer),
        buffer(Id::SendBuffer, granted.send_buffer, asked.send_buffer),
        offload,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_buffer_alone_is_a_note_without_advice() {
        let size = DataSize::from_bytes;
        let granted = |bytes| Granted {
            recv_buffer: size(bytes),
            send_buffer: size(bytes),
            gso: Support::Present,
            gro: Support::Absent,
        };
        let options = SocketOptions::default();
        let [receive, send, offload] = buffers(&granted(212_992), &options);
        for check in [receive, send, offload] {
            assert_eq!((check.state, check.remedy), (State::Note, None), "{:?}", check.id);
        }
        let [receive, ..] = buffers(&granted(16 << 20), &options);
        assert_eq!(receive.state, State::Ok);
    }

    #[test]
    fn this_machine_is_measured() {
        let (checks, facts) = check(Some(&std::env::temp_dir()));
        let failed: Vec<_> = checks.iter().filter(|check| check.state == State::Fail).collect();
        assert!(failed.is_empty(), "{failed:?}");
        for rate in [facts.cipher, facts.loopback, facts.disk_write, facts.disk_read] {
            assert!(rate.unwrap() > Rate::from_bits_per_sec(1_000_000), "{facts:?}");
        }
    }
}
