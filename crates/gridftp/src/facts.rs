//! Facts of files (MLST and MLSD, RFC 3659, section 7): `Type=file;Size=5;Modify=20260102030405; name`.

use hikyaku_fs::{Name, PathError};

#[cfg(test)]
mod tests;

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// The listed directory itself, or the one above it.
    Listed,
    /// A symbolic link, a device, or what this client does not know.
    Other,
}

/// What a server tells of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// What it is.
    pub kind: Kind,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// When it was changed, as the server spells it: digits, UTC.
    pub modified: Option<String>,
}

/// An entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Its name, or why it cannot be used.
    pub name: Result<Name, PathError>,
    /// What the server tells of it.
    pub facts: Facts,
}

/// Reads a line of facts. Returns them and the name, as it came. `None` if the line has no facts.
// fuzz: ftp_replies
pub(crate) fn parse(line: &[u8]) -> Option<(Facts, &[u8])> {
    let space = line.iter().position(|&byte| byte == b' ')?;
    let (facts, name) = (str::from_utf8(&line[..space]).ok()?, &line[space + 1..]);
    if !facts.is_empty() && !facts.ends_with(';') {
        return None;
    }
    let mut found = Facts { kind: Kind::Other, size: None, modified: None };
    for fact in facts.split_terminator(';') {
        let (key, value) = fact.split_once('=')?;
        match key.to_ascii_lowercase().as_str() {
            "type" => found.kind = kind(value),
            "size" => found.size = Some(value.parse().ok()?),
            "modify" if value.bytes().all(|b| b.is_ascii_digit() || b == b'.') => {
                found.modified = Some(value.to_owned());
            }
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
            entries.push(Listed { name: Name::new(name), facts });
        }
    }
    Some(entries)
}

fn kind(value: &str) -> Kind {
    match value.to_ascii_lowercase().as_str() {
        "file" => Kind::File,
        "dir" => Kind::Directory,
        "cdir" | "pdir" => Kind::Listed,
        _ => Kind::Other,
    }
}
