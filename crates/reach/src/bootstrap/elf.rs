//! What kind of program a file is: the header and the program headers of elf(5), and nothing else of the file.

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
    /// The dynamic linker of the system loads it, which must be as new as the one that the program was built with.
    Dynamic,
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
    let linkage = if needs_linker { Linkage::Dynamic } else { Linkage::Static };
    Ok(Some((architecture, linkage)))
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
    let offset = u64::from(u32_at(header, 32)) | u64::from(u32_at(header, 36)) << 32;
    Some((Architecture::of_machine(u16_at(header, 18))?, offset, entries))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}
