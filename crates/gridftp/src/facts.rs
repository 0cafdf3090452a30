//! Facts of files (MLST and MLSD, RFC 3659, section 7): `Type=file;Size=5;Modify=20260102030405; name`.

use crate::times;
use hikyaku_fs::{Name, PathError, unescaped};

#[cfg(test)]
mod tests;

/// The kind of a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// The listed directory itself, or the one above it.
    Listed,
    /// A symbolic link. Servers that follow links report the kind of the target, and its path.
    Link,
    /// A device, a FIFO, a socket, or what this client does not know.
    Other,
}

/// The metadata of a file, as a server sends them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// The kind of the file.
    pub kind: Kind,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// When it was changed, as the server spells it: digits, UTC.
    pub modified: Option<String>,
    /// The identity of the file on this server, independent of its name.
    pub unique: Option<String>,
    /// Its permission bits, if the server has such.
    pub mode: Option<u32>,
    /// The target of a symbolic link. The other facts are then those of the target.
    pub link: Option<Vec<u8>>,
}

impl Facts {
    /// Facts of which only the kind is known.
    pub(crate) const fn of(kind: Kind) -> Self {
        Self { kind, size: None, modified: None, unique: None, mode: None, link: None }
    }

    /// The modification time: seconds since 1970, and nanoseconds. `None` if the server does not send it.
    // fuzz: ftp_replies
    pub fn time(&self) -> Option<(i64, u32)> {
        times::parse(self.modified.as_ref()?)
    }

    /// Whether `now` has the facts of the same file with the same contents, as far as the server's facts show it: a file that
    /// was changed twice within a second, and has its old size, looks unchanged.
    // fuzz: none, what `ftp_replies` has read is compared
    pub fn is_unchanged(&self, now: &Self) -> bool {
        let is_same = |a: &Option<String>, b: &Option<String>| a.is_none() || b.is_none() || a == b;
        (self.kind, self.size) == (now.kind, now.size)
            && is_same(&self.modified, &now.modified)
            && is_same(&self.unique, &now.unique)
    }
}

/// An entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Its name, or why it cannot be used.
    pub name: Result<Name, EntryError>,
    /// The facts that the server sent.
    pub facts: Facts,
}

/// Why an entry of a listing cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EntryError {
    /// Its name.
    #[error(transparent)]
    Name(#[from] PathError),
    /// Its line, which is shown, has no known form.
    #[error("a line of no known form: {0}")]
    Line(String),
}

/// Reads a line of facts. Returns them and the name, as it came. `None` if the line has no facts.
// fuzz: ftp_replies
pub(crate) fn parse(line: &[u8]) -> Option<(Facts, &[u8])> {
    let space = line.iter().position(|&byte| byte == b' ')?;
    let (facts, name) = (str::from_utf8(&line[..space]).ok()?, &line[space + 1..]);
    if !facts.is_empty() && !facts.ends_with(';') {
        return None;
    }
    let mut found = Facts::of(Kind::Other);
    for fact in facts.split_terminator(';') {
        let (key, value) = fact.split_once('=')?;
        match key.to_ascii_lowercase().as_str() {
            "type" => found.kind = kind(value),
            "size" => found.size = Some(value.parse().ok()?),
            "modify" if value.bytes().all(|b| b.is_ascii_digit() || b == b'.') => {
                found.modified = Some(value.to_owned());
            }
            "unique" => found.unique = Some(value.to_owned()),
            "unix.mode" => found.mode = u32::from_str_radix(value, 8).ok().map(|mode| mode & 0o777),
            "unix.slink" => found.link = absolute(value.as_bytes()),
            _ => {}
        }
    }
    Some((found, name))
}

/// Reads the lines of a listing, without the listed directory itself.
// fuzz: ftp_replies
pub(crate) fn listing(text: &[u8]) -> Option<Vec<Listed>> {
    let lines = text.split(|&byte| byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let mut entries = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let (facts, name) = parse(line)?;
        if facts.kind != Kind::Listed {
            entries.push(Listed { name: Name::new(name).map_err(EntryError::Name), facts });
        }
    }
    Some(entries)
}

/// An absolute path whose odd bytes are escaped. `None` if it is another one or badly written.
fn absolute(text: &[u8]) -> Option<Vec<u8>> {
    unescaped(text).filter(|path| path.starts_with(b"/"))
}

fn kind(value: &str) -> Kind {
    match value.to_ascii_lowercase().as_str() {
        "file" => Kind::File,
        "dir" => Kind::Directory,
        "cdir" | "pdir" => Kind::Listed,
        link if link.starts_with("os.unix=slink") => Kind::Link,
        _ => Kind::Other,
    }
}
