//! Files that other programs have left unfinished (`-c`): which of their bytes exist.
//!
//! wget and curl write the file under its name from the beginning, browsers under a name of their own. aria2c and axel write parts
//! of it, and note them in a control file.

mod control;

use crate::run::lasting;
use anyhow::{Context, Result};
use hikyaku_console::with_remedy;
use hikyaku_fs::{FilePlace, Kind, Meta, Name, holes};
use std::fs::File;
use std::io::Read;
use std::ops::Range;

/// Octets of a control file at most: a bit for each mebibyte of an exbibyte.
const CONTROL_BYTES_MAX: u64 = 128 << 10;
/// The ends of the names that browsers give to unfinished files.
const BROWSERS: [&[u8]; 2] = [b".part", b".crdownload"];

/// An unfinished file.
#[derive(Debug)]
pub(crate) struct Unfinished {
    /// Its name in the directory of the file that it will be.
    pub(crate) name: Name,
    /// The control file beside it.
    pub(crate) control: Option<Name>,
    pub(crate) file: File,
    /// The bytes that exist, in order.
    pub(crate) parts: Vec<Range<u64>>,
}

impl Unfinished {
    /// The unfinished file of this place, which will have `total` bytes; `None` if there is none.
    ///
    /// # Errors
    ///
    /// The file is of another size than the server's, or cannot be read.
    pub(crate) fn find(place: &FilePlace, total: u64) -> Result<Option<Self>> {
        if place.dir.meta(&place.name)?.is_some_and(|meta| meta.kind != Kind::File) {
            return Ok(None);
        }
        let controls: [(&[u8], Parse); 2] = [(b".aria2", control::aria2), (b".st", control::axel)];
        for (end, parts) in controls {
            let Some(control) = beside(&place.name, end) else { continue };
            let (Some(bytes), Some((file, size))) =
                (content(place, &control)?, open(place, &place.name)?)
            else {
                continue;
            };
            let parts = parts(&bytes, total).ok_or_else(|| {
                let text = format!("{} is not of a file of {total} bytes", control.shown());
                with_remedy(lasting(text), Some(ANEW))
            })?;
            let parts = parts.into_iter().map(|part| part.start..part.end.min(size));
            return Ok(Some(Self::new(&place.name, Some(control), (file, size), parts.collect())));
        }
        let others = BROWSERS.iter().filter_map(|end| beside(&place.name, end));
        for name in std::iter::once(place.name.clone()).chain(others) {
            let Some((file, size)) = open(place, &name)?.filter(|(_, size)| *size > 0) else {
                continue;
            };
            if size > total {
                let text =
                    format!("{} has {size} bytes, and the server's file {total}", name.shown());
                return Err(with_remedy(lasting(text), Some(ANEW)));
            }
            let whole = 0..size;
            return Ok(Some(Self::new(&name, None, (file, size), vec![whole])));
        }
        // A program has made the file, and written nothing.
        let empty = open(place, &place.name)?;
        Ok(empty.map(|opened| Self::new(&place.name, None, opened, Vec::new())))
    }

    /// A file with these parts, less the bytes in holes: they have not been written.
    fn new(
        name: &Name,
        control: Option<Name>,
        (file, size): (File, u64),
        parts: Vec<Range<u64>>,
    ) -> Self {
        let mut written = parts;
        for hole in holes(&file, size) {
            let around = |part: Range<u64>| {
                let (start, end) = (part.start, part.end);
                [start..end.min(hole.start), start.max(hole.end)..end]
            };
            written = written.into_iter().flat_map(around).collect();
        }
        let parts = written.into_iter().filter(|part| part.start < part.end).collect();
        Self { name: name.clone(), control, file, parts }
    }

    /// The number of bytes that exist.
    pub(crate) fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.end - part.start).sum()
    }
}

/// The remedy for a file that cannot be continued.
pub(crate) const ANEW: &str =
    "--force in place of -c to fetch it anew, or -o FILE for another name";

/// Reads a control file of a file of this size. `None`: it is of another file.
type Parse = fn(&[u8], u64) -> Option<Vec<Range<u64>>>;

fn beside(name: &Name, end: &[u8]) -> Option<Name> {
    Name::new(&[name.as_bytes(), end].concat()).ok()
}

/// A regular file of this name, and its size; `None` if there is none.
fn open(place: &FilePlace, name: &Name) -> Result<Option<(File, u64)>> {
    let is_file = place.dir.meta(name)?.is_some_and(|meta| meta.kind == Kind::File);
    if !is_file {
        return Ok(None);
    }
    let file = place.dir.read(&name.clone().into())?;
    let size = Meta::of(&file)?.size;
    Ok(Some((file, size)))
}

fn content(place: &FilePlace, name: &Name) -> Result<Option<Vec<u8>>> {
    let Some((file, _)) = open(place, name)? else { return Ok(None) };
    let mut bytes = Vec::new();
    let read = file.take(CONTROL_BYTES_MAX).read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read {}", name.shown()))?;
    Ok(Some(bytes))
}
