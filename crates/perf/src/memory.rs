//! How much of the machine's memory tests take unless users say otherwise.

use hikyaku_units::DataSize;
use std::fs;

/// Memory that a server takes on a machine of less than 16 GiB, if that is no more than half of it.
const SERVER_BYTES_MIN: u64 = 2 << 30;
/// A server takes this fraction (1/n) of the memory of a larger machine.
const SERVER_DIVISOR: u64 = 8;
/// The largest receive window on a machine of less than 8 GiB: 20 Gbit/s at 200 ms.
const WINDOW_BYTES_MIN: u64 = 512_000_000;
/// The largest receive window takes this fraction (1/n) of the memory of a larger machine.
const WINDOW_DIVISOR: u64 = 16;
/// The largest receive window on any machine. An ordered stream at 10 Gbit/s, 150 ms and 1 % loss waits for packets
/// that were lost twice and needs about 600 MB; with 512 MB it reached 7.6 Gbit/s on 16 processors.
const WINDOW_BYTES_MAX: u64 = 2_000_000_000;

/// What a server takes: an eighth of the machine's memory, but at least 2 GiB, or half of the memory if that is less.
pub(crate) fn of_server() -> DataSize {
    DataSize::from_bytes(server(machine()))
}

/// The largest receive window of one connection: a sixteenth of the machine's memory, 512 MB to 2 GB.
pub(crate) fn of_window() -> DataSize {
    DataSize::from_bytes(window(machine()))
}

fn server(machine: Option<u64>) -> u64 {
    machine
        .map_or(SERVER_BYTES_MIN, |all| (all / SERVER_DIVISOR).max(SERVER_BYTES_MIN.min(all / 2)))
}

fn window(machine: Option<u64>) -> u64 {
    let part = machine.map_or(0, |all| all / WINDOW_DIVISOR);
    part.clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX)
}

/// Bytes of memory that the machine has (proc_meminfo(5)).
fn machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_server_leaves_most_of_the_memory_to_others() {
        let cases = [
            (None, 2 * GIB),
            (Some(GIB), GIB / 2),
            (Some(4 * GIB), 2 * GIB),
            (Some(16 * GIB), 2 * GIB),
            (Some(128 * GIB), 16 * GIB),
        ];
        for (machine, wanted) in cases {
            assert_eq!(server(machine), wanted, "{machine:?}");
        }
    }

    #[test]
    fn a_window_grows_with_the_machine() {
        assert_eq!(window(None), 512_000_000);
        assert_eq!(window(Some(GIB)), 512_000_000);
        assert_eq!(window(Some(16 * GIB)), GIB);
        assert_eq!(window(Some(512 * GIB)), 2_000_000_000);
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(machine().is_some_and(|bytes| bytes > 64 << 20));
    }
}
