//! Lists that a user names: a file, a FIFO, or `-` for standard input. One is read whole, or line by line while it comes.

use crate::descriptor::open_descriptor;
use crate::incoming::{Incoming, read_incoming};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Octets that are read at once.
const READ_BYTES: usize = 64 << 10;

/// A list that is read line by line.
#[derive(Debug)]
pub struct Lines {
    file: File,
    /// Bytes that were read.
    bytes: Vec<u8>,
    /// The first byte of the next line.
    begin: usize,
    /// The bytes of that line before this one are searched for its end.
    searched: usize,
    line_bytes_max: usize,
    is_over: bool,
}

/// A step through a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// The next line, without its end (`\n` or `\r\n`).
    Line(Vec<u8>),
    /// The next line has not come whole.
    Awaited,
    /// The list has ended.
    End,
}

/// Reads a list to its end.
///
/// # Errors
///
/// It cannot be opened or read.
pub fn read_list(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn open(path: &Path) -> io::Result<File> {
    if path.as_os_str() == "-" { open_descriptor(0) } else { File::open(path) }
}

impl Lines {
    /// Opens a list whose lines have at most this many bytes.
    ///
    /// # Errors
    ///
    /// It cannot be opened.
    pub fn open(path: &Path, line_bytes_max: usize) -> io::Result<Self> {
        let file = match Incoming::of(path) {
            // A FIFO is opened without a wait for its writer, so that the user can end the wait.
            Some(incoming) => incoming.open().map_err(io::Error::other)?,
            None => open(path)?,
        };
        Ok(Self { file, bytes: Vec::new(), begin: 0, searched: 0, line_bytes_max, is_over: false })
    }

    /// The next line. Waits for it as long as `goes_on` returns true.
    ///
    /// # Errors
    ///
    /// The list cannot be read, or has a longer line than allowed (`InvalidData`).
    pub fn next(&mut self, goes_on: &dyn Fn() -> bool) -> io::Result<Step> {
        loop {
            let end = self.bytes[self.searched..].iter().position(|&byte| byte == b'\n');
            if let Some(end) = end {
                let begin = std::mem::replace(&mut self.begin, self.searched + end + 1);
                self.searched = self.begin;
                return Ok(Step::Line(without_end(&self.bytes[begin..self.begin])));
            }
            // The rest is the beginning of a line.
            self.bytes.drain(..std::mem::take(&mut self.begin));
            self.searched = self.bytes.len();
            if self.is_over {
                self.begin = self.bytes.len();
                return Ok(match without_end(&self.bytes) {
                    _ if self.bytes.is_empty() => Step::End,
                    rest => Step::Line(rest),
                });
            }
            if self.bytes.len() > self.line_bytes_max {
                let text = format!("a line is longer than {} bytes", self.line_bytes_max);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            let mut more = [0; READ_BYTES];
            match read_incoming(&mut self.file, &mut more, goes_on) {
                Ok(0) => self.is_over = true,
                Ok(length) => self.bytes.extend_from_slice(&more[..length]),
                Err(error) if Errno::from_io_error(&error) == Some(Errno::CANCELED) => {
                    return Ok(Step::Awaited);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

fn without_end(line: &[u8]) -> Vec<u8> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line).to_vec()
}

#[cfg(test)]
mod tests;
