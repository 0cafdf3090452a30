//! Which of the names below a source are copied (`--files-from`).

use anyhow::{Context, Result, ensure};
use hikyaku_console::At;
use hikyaku_fs::{PeerPath, Shown};
use std::io::Read;
use std::path::PathBuf;

/// Which names below the source are copied. Names are paths below a source, as find(1) and rsync(1) write them: with `./`
/// before, or a slash before or behind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Names {
    /// All.
    #[default]
    All,
    /// Those of a list, in which a byte follows each name.
    Listed {
        /// The list.
        list: Vec<u8>,
        /// The byte.
        end: u8,
    },
    /// Those of a list in a file; `-` is standard input.
    InFile {
        /// The file.
        path: PathBuf,
        /// The byte that follows each name.
        end: u8,
    },
}

impl Names {
    /// The names; none if all are copied.
    ///
    /// # Errors
    ///
    /// The file cannot be read, a name is no path below a source, or there are no names.
    pub(crate) fn read(&self) -> Result<Vec<Vec<u8>>> {
        let (path, end) = match self {
            Self::All => return Ok(Vec::new()),
            Self::Listed { list, end } => return parse((list, *end), &"the list"),
            Self::InFile { path, end } => (path, *end),
        };
        let shown = Shown::new(path.as_os_str().as_encoded_bytes());
        let mut bytes = Vec::new();
        let read = match path.as_os_str() == "-" {
            true => std::io::stdin().read_to_end(&mut bytes),
            false => std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)),
        };
        read.at(shown)?;
        parse((&bytes, end), &shown)
    }
}

// fuzz: none, the user's own list, or that of sync
fn parse((bytes, end): (&[u8], u8), shown: &dyn std::fmt::Display) -> Result<Vec<Vec<u8>>> {
    let mut files = Vec::new();
    for line in bytes.split(|&byte| byte == end) {
        let line = if end == 0 { line } else { line.strip_suffix(b"\r").unwrap_or(line) };
        if line.is_empty() {
            continue;
        }
        let names = line.split(|&byte| byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
        let path = names.collect::<Vec<_>>().join(&b'/');
        let path = PeerPath::new(&path).with_context(|| {
            format!("{shown}: {} is not a path below a source", Shown::new(line))
        })?;
        files.push(path.as_bytes().to_vec());
    }
    ensure!(!files.is_empty(), "{shown} names no files");
    Ok(files)
}
