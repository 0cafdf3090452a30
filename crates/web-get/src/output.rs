//! Destinations that take a file in order: standard output, another open descriptor, a FIFO or a device.

use anyhow::{Context, Result};
use hikyaku_fs::{
    Device, Dir, Draft, Name, Patience, Stream, Target, descriptor_number, open_descriptor,
};
use hikyaku_http::Stop;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// The number of standard output.
const STANDARD_OUTPUT: u32 = 1;

/// An output that the user named.
#[derive(Debug)]
pub(crate) enum Output {
    /// A descriptor of this process.
    Descriptor(u32),
    /// A FIFO or a device, and its name.
    Device(Device, Name),
}

impl Output {
    /// The output that a path names; `None` if it is that of a file.
    ///
    /// # Errors
    /// The path cannot be looked at, or is that of a socket.
    pub(crate) fn of(path: &Path) -> Result<Option<Self>> {
        let number = match path.as_os_str().as_bytes() {
            b"-" => Some(STANDARD_OUTPUT),
            _ => descriptor_number(path),
        };
        if let Some(number) = number {
            return Ok(Some(Self::Descriptor(number)));
        }
        Ok(match Target::of(path)? {
            Target::Dir | Target::Name(_) => None,
            Target::Stream(device) => {
                let name = path.file_name().unwrap_or_default();
                Some(Self::Device(device, Name::new(name.as_bytes())?))
            }
        })
    }

    /// Whether it is where events for programs go.
    pub(crate) const fn is_standard(&self) -> bool {
        matches!(self, Self::Descriptor(STANDARD_OUTPUT))
    }

    /// Opens it. A FIFO is waited for until it has a reader.
    ///
    /// # Errors
    /// It cannot be opened, or `stop` was set meanwhile.
    pub(crate) fn open(&self, stop: &Stop) -> Result<Draft> {
        let (stream, name) = match self {
            Self::Descriptor(number) => {
                let name = match *number {
                    STANDARD_OUTPUT => "standard output".to_owned(),
                    number => format!("descriptor {number}"),
                };
                let file = open_descriptor(*number).with_context(|| format!("cannot open {name}"));
                (Stream::of(file?), Name::new(name.as_bytes())?)
            }
            Self::Device(device, name) => {
                let stop = stop.clone();
                (device.open(Patience::new(move || !stop.is_set()))?, name.clone())
            }
        };
        Ok(Draft::stream(stream, Arc::new(Dir::open(Path::new("."))?), name))
    }
}
