//! The kind of a program: its processor, whether it is static, and which C library it needs. Read from the header,
//! the program headers and the version table of elf(5).

use super::glibc::Version;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A processor that hikyaku runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Architecture {
    /// 64-bit x86.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
    /// 64-bit RISC-V.
    Riscv64,
}

/// How a program finds its C library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Linkage {
    /// It contains it, and runs on every Linux of its processor.
    Static,
    /// The dynamic linker of the system loads it, and the GNU C library there must have this version or a later one;
    /// `None` if the program names no version.
    Dynamic(Option<Version>),
}

/// Bytes of the header.
const HEADER_BYTES: usize = 64;
/// Bytes of one program header.
const ENTRY_BYTES: usize = 56;
/// Program headers that are looked at. Linkers make about a dozen.
const ENTRIES_MAX: usize = 128;
/// `PT_INTERP`: names the dynamic linker.
const INTERPRETER: u32 = 3;
/// `ET_EXEC` and `ET_DYN`: a program at a fixed address, and one that is placed anywhere.
const PROGRAM_TYPES: [u16; 2] = [2, 3];
/// Bytes of one section header.
const SECTION_BYTES: usize = 64;
/// Section headers that are read. Linkers make about 40.
const SECTIONS_MAX: usize = 1024;
/// `SHT_GNU_verneed`: the versions of libraries that the program needs.
const NEEDED_VERSIONS: u32 = 0x6fff_fffe;
/// Bytes that are read of a section, and entries of the table of versions.
const TABLE_BYTES_MAX: u64 = 1 << 20;
const VERSIONS_MAX: usize = 4096;

impl Architecture {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::X86_64, Self::Aarch64, Self::Riscv64];

    /// As `uname -m` names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
            Self::Riscv64 => "riscv64",
        }
    }

    /// The one that `uname -m` names so.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    const fn of_machine(number: u16) -> Option<Self> {
        match number {
            62 => Some(Self::X86_64),
            183 => Some(Self::Aarch64),
            243 => Some(Self::Riscv64),
            _ => None,
        }
    }
}

/// The processor and the linkage of a program for Linux; `None` if the file is none that is known here.
///
/// # Errors
///
/// The file cannot be read.
pub(super) fn kind(file: &File) -> io::Result<Option<(Architecture, Linkage)>> {
    let mut header = [0; HEADER_BYTES];
    match file.read_exact_at(&mut header, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let Some((architecture, offset, entries)) = headed(&header) else { return Ok(None) };
    let mut table = vec![0; entries * ENTRY_BYTES];
    match file.read_exact_at(&mut table, offset) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let needs_linker = table.chunks_exact(ENTRY_BYTES).any(|entry| u32_at(entry, 0) == INTERPRETER);
    let linkage = match needs_linker {
        true => Linkage::Dynamic(needed(file, &header)),
        false => Linkage::Static,
    };
    Ok(Some((architecture, linkage)))
}

/// The latest version of the GNU C library that the program names; `None` if it names none, or has no readable table.
fn needed(file: &File, header: &[u8; HEADER_BYTES]) -> Option<Version> {
    let (offset, entries) = (u64_at(header, 40), usize::from(u16_at(header, 60)));
    let is_known = usize::from(u16_at(header, 58)) == SECTION_BYTES && entries <= SECTIONS_MAX;
    let mut sections = vec![0; entries * SECTION_BYTES];
    file.read_exact_at(&mut sections, offset).ok().filter(|()| is_known)?;
    let sections: Vec<_> = sections.chunks_exact(SECTION_BYTES).collect();
    let versions = sections.iter().find(|section| u32_at(section, 4) == NEEDED_VERSIONS)?;
    let names = sections.get(u32_at(versions, 40) as usize)?;
    let (versions, names) = (content(file, versions)?, content(file, names)?);
    // `Verneed`: one of each library, with a chain of `Vernaux`, one of each version. Both give the offset of the next.
    let (mut library, mut all) = (0, Vec::new());
    loop {
        let entry = versions.get(library..)?.get(..16)?;
        let mut version = library + u32_at(entry, 8) as usize;
        loop {
            let named = versions.get(version..)?.get(..16)?;
            let name = names.get(u32_at(named, 8) as usize..)?;
            let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
            all.push(name);
            if all.len() > VERSIONS_MAX {
                return None;
            }
            match u32_at(named, 12) as usize {
                0 => break,
                next => version += next,
            }
        }
        match u32_at(entry, 12) as usize {
            0 => break,
            next => library += next,
        }
    }
    all.into_iter().filter_map(Version::of_symbol).max()
}

/// The bytes of a section.
fn content(file: &File, section: &[u8]) -> Option<Vec<u8>> {
    let (offset, size) = (u64_at(section, 24), u64_at(section, 32));
    let mut bytes = vec![0; usize::try_from(size).ok().filter(|_| size <= TABLE_BYTES_MAX)?];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

/// The processor of a 64-bit little-endian program, and where its program headers are and how many.
fn headed(header: &[u8; HEADER_BYTES]) -> Option<(Architecture, u64, usize)> {
    let is_program = header.starts_with(b"\x7fELF\x02\x01")
        && PROGRAM_TYPES.contains(&u16_at(header, 16))
        && usize::from(u16_at(header, 54)) == ENTRY_BYTES;
    let entries = usize::from(u16_at(header, 56));
    if !is_program || !(1..=ENTRIES_MAX).contains(&entries) {
        return None;
    }
    Some((Architecture::of_machine(u16_at(header, 18))?, u64_at(header, 32), entries))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
