//! The kernel's packet counters of network devices.

use crate::netns::in_namespace;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Counters of a device since its creation, from the view of its namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceStats {
    /// Packets received: those that this process wrote to the device.
    pub rx_packets: u64,
    /// Received packets that the kernel dropped or refused.
    pub rx_dropped: u64,
    /// Packets transmitted: those that the namespace sent into the device.
    pub tx_packets: u64,
    /// Transmitted packets that were dropped because the device queue was full.
    pub tx_dropped: u64,
}

/// The counters of all devices of a namespace.
#[derive(Debug)]
pub struct DeviceTable {
    /// `/proc/net/dev`. An open file keeps showing the namespace in which it was opened.
    file: File,
}

impl DeviceTable {
    /// Opens the counters of the namespace at `namespace`.
    pub fn open(namespace: &Path) -> io::Result<Self> {
        in_namespace(namespace, Self::here)
    }

    /// Opens the counters of the calling thread's namespace.
    pub(crate) fn here() -> io::Result<Self> {
        Ok(Self { file: File::open("/proc/thread-self/net/dev")? })
    }

    /// The packets that all devices but `except` have dropped, received and transmitted ones
    /// together.
    pub fn dropped(&self, except: &str) -> io::Result<u64> {
        Ok(Self::dropped_in(&self.text()?, except))
    }

    pub(crate) fn dropped_in(text: &str, except: &str) -> u64 {
        let stats = text.lines().filter_map(|line| {
            let device = line.split_once(':')?.0.trim();
            (device != except).then(|| DeviceStats::parse(line, device))?
        });
        stats.map(|stats| stats.rx_dropped + stats.tx_dropped).sum()
    }

    fn text(&self) -> io::Result<String> {
        let mut text = vec![0; 16 * 1024];
        let mut filled = 0;
        loop {
            let n = self.file.read_at(&mut text[filled..], filled as u64)?;
            filled += n;
            if n == 0 || filled == text.len() {
                break;
            }
        }
        Ok(String::from_utf8_lossy(&text[..filled]).into_owned())
    }
}

impl DeviceStats {
    /// Reads the counters of `device`.
    pub(crate) fn read(table: &DeviceTable, device: &str) -> io::Result<Self> {
        let text = table.text()?;
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no device {device}"));
        text.lines().find_map(|line| Self::parse(line, device)).ok_or_else(missing)
    }

    /// Parses the line of `device` (proc_net_dev(5)). Its columns are, for each direction: bytes,
    /// packets, errors, dropped, and four others.
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
