//! What the kernel counts for a device.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What a device has passed and dropped since it was made, seen from its namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStats {
    /// Packets written to the device by us.
    pub rx_packets: u64,
    /// Of these, dropped or refused by the kernel.
    pub rx_dropped: u64,
    /// Packets that the namespace sent into the device.
    pub tx_packets: u64,
    /// Packets that the namespace sent and the full device queue dropped.
    pub tx_dropped: u64,
}

impl DeviceStats {
    /// Reads the line of `device` in an open `/proc/net/dev`. An open one keeps showing the
    /// namespace in which it was opened.
    pub(crate) fn read(table: &File, device: &str) -> io::Result<Self> {
        let mut text = vec![0; 16 * 1024];
        let mut filled = 0;
        loop {
            let n = table.read_at(&mut text[filled..], filled as u64)?;
            filled += n;
            if n == 0 || filled == text.len() {
                break;
            }
        }
        let text = String::from_utf8_lossy(&text[..filled]);
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no device {device}"));
        text.lines().find_map(|line| Self::parse(line, device)).ok_or_else(missing)
    }

    /// The columns are, each way: bytes, packets, errors, dropped and four or more others.
    pub(crate) fn parse(line: &str, device: &str) -> Option<Self> {
        let columns = line.trim().strip_prefix(device)?.strip_prefix(':')?;
        let columns: Vec<u64> =
            columns.split_whitespace().map(|word| word.parse().unwrap_or(0)).collect();
        let column = |index: usize| columns.get(index).copied();
        Some(Self {
            rx_packets: column(1)?,
            rx_dropped: column(2)? + column(3)?,
            tx_packets: column(9)?,
            tx_dropped: column(10)? + column(11)?,
        })
    }
}
