//! Records on disk: one file a cell, whole or not there.

use crate::record::row::CellResult;
use anyhow::{Context, Result};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// Where a cell of a bench is kept.
pub(crate) fn cell_path(out: &Path, bench: &str, cell: &str) -> PathBuf {
    out.join(bench).join(format!("{cell}.json"))
}

/// A cell kept earlier, if it is there and whole.
pub(crate) fn read_cell(path: &Path) -> Option<CellResult> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Writes beside the target, then renames: an interrupted run leaves no half record.
pub(crate) fn write(path: &Path, record: &impl Serialize) -> Result<()> {
    let write = || -> Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let draft = path.with_extension("json.part");
        fs::write(&draft, serde_json::to_string_pretty(record)? + "\n")?;
        Ok(fs::rename(&draft, path)?)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::row::{Cell, Row};

    #[test]
    fn a_cell_comes_back_as_it_was() {
        let folder = std::env::temp_dir().join(format!("bench-store-{}", std::process::id()));
        let path = cell_path(&folder, "b", "c");
        assert_eq!(read_cell(&path), None);
        let runs = vec![Row::new().with("rate", 1.5, "Gbit/s")];
        let result = CellResult::new(&Cell::new("c").with("rtt", "1ms"), runs, "abc");
        write(&path, &result).unwrap();
        assert_eq!(read_cell(&path), Some(result));
        fs::write(&path, "{\"cell\":").unwrap();
        assert_eq!(read_cell(&path), None);
        fs::remove_dir_all(&folder).unwrap();
    }
}
