//! What calls return, as Python sees it.

use hikyaku_mover::{HostState, Session};
use hikyaku_reach::dial::Carrier;
use hikyaku_store::Kind;
use pyo3::prelude::*;

/// What came of a download or an upload.
#[pyclass(frozen, get_all, module = "hikyaku")]
pub(crate) struct Done {
    /// Files that were transferred and have their names.
    files: u64,
    /// Their bytes.
    bytes: u64,
    /// Files that were not transferred, since the target has them.
    kept: u64,
    /// Servers whose connection was lost.
    lost: Vec<Py<Lost>>,
}

/// A server whose connection was lost, and why. Others did its work.
#[pyclass(frozen, get_all, module = "hikyaku")]
pub(crate) struct Lost {
    /// The server.
    host: String,
    /// Why.
    reason: String,
}

/// A server.
#[pyclass(frozen, get_all, module = "hikyaku")]
pub(crate) struct HostStatus {
    /// Where it listens.
    host: String,
    /// Why it does not answer; `None` if it does.
    error: Option<String>,
    /// What carries the connection: `"udp"` or `"tcp"`.
    carrier: Option<&'static str>,
    /// How often it was connected in this session.
    connections: u32,
    /// Whether this client may write there.
    writable: bool,
    /// The round-trip time, in seconds.
    round_trip: f64,
    /// Bytes that may still be written.
    free: Option<u64>,
    /// Bytes of the disk.
    total: Option<u64>,
    /// Bytes a second in the last transfer.
    rate: Option<f64>,
}

/// A file, directory or link of the servers.
#[pyclass(frozen, get_all, module = "hikyaku")]
pub(crate) struct Entry {
    /// Its name, without the directory.
    name: String,
    /// `"file"`, `"directory"`, `"link"` or `"other"`.
    kind: &'static str,
    /// Bytes of a file.
    size: u64,
    /// When its content was changed last, in seconds since 1970.
    modified: f64,
    /// Permission bits.
    mode: u32,
    /// The servers that have it.
    hosts: Vec<String>,
}

macro_rules! shown {
    ($class:ty, $name:literal, $($field:ident),+) => {
        #[pymethods]
        impl $class {
            fn __repr__(&self) -> String {
                let fields = [$(format!("{}={:?}", stringify!($field), self.$field)),+];
                format!("{}({})", $name, fields.join(", "))
            }
        }
    };
}

shown!(Done, "Done", files, bytes, kept);
shown!(Lost, "Lost", host, reason);
shown!(HostStatus, "HostStatus", host, error, carrier, free, total, rate);
shown!(Entry, "Entry", name, kind, size, hosts);

impl Done {
    pub(crate) fn new(py: Python<'_>, done: &hikyaku_mover::Done) -> PyResult<Self> {
        let lost = done.lost.iter().map(|(address, error)| {
            Py::new(py, Lost { host: address.to_string(), reason: error.to_string() })
        });
        let lost = lost.collect::<PyResult<_>>()?;
        Ok(Self { files: done.files, bytes: done.bytes, kept: done.kept, lost })
    }
}

impl HostStatus {
    pub(crate) fn new(status: hikyaku_mover::HostStatus) -> Self {
        let host = status.address.to_string();
        match status.state {
            HostState::Up(up) => Self {
                host,
                error: None,
                carrier: Some(match up.carrier {
                    Carrier::Udp => "udp",
                    Carrier::Tcp => "tcp",
                }),
                connections: up.connections,
                writable: up.is_writable,
                round_trip: up.round_trip.as_secs_f64(),
                free: up.space.map(|space| space.free),
                total: up.space.map(|space| space.total),
                rate: up.rate.map(|rate| rate.bytes_per_sec()),
            },
            HostState::Away(error) => Self {
                host,
                error: Some(error),
                carrier: None,
                connections: 0,
                writable: false,
                round_trip: 0.0,
                free: None,
                total: None,
                rate: None,
            },
        }
    }
}

impl Entry {
    pub(crate) fn new(session: &Session, name: &[u8], held: &hikyaku_mover::Held) -> Self {
        let found = held.found;
        let met = session.met();
        Self {
            name: String::from_utf8_lossy(name).into_owned(),
            kind: match found.kind {
                Kind::File => "file",
                Kind::Dir => "directory",
                Kind::Link => "link",
                Kind::Special => "other",
            },
            size: found.size,
            modified: found.modified.secs as f64 + f64::from(found.modified.nanos) / 1e9,
            mode: found.mode,
            hosts: held.at.iter().map(|at| met[at.0].address.to_string()).collect(),
        }
    }
}
