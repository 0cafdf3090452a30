//! Checksums that servers compute (CKSM), and the same of files here.

use crate::session::Session;
use crate::third::Sink;
use anyhow::{Context, Result};
use aws_lc_rs::digest;
use clap::ValueEnum;
use hikyaku_console::At;
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that are read and summed at once.
const PIECE_BYTES: usize = 1 << 20;
/// The modulus of Adler-32 (RFC 1950, section 9).
const ADLER_BASE: u32 = 65_521;
/// So many bytes can be added before the sums must be reduced.
const ADLER_RUN: usize = 5552;

/// How a checksum is computed. MD5 is not among them: nothing here computes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Checksum {
    /// Finds damage on the way; the quickest
    Adler32,
    /// Finds damage
    Sha1,
    /// Finds any change
    Sha256,
    /// Finds any change
    Sha512,
}

/// Supplies the bytes at an offset; all of them.
pub(crate) type Supply<'a> = dyn Fn(u64, &mut [u8]) -> io::Result<()> + 'a;

impl Checksum {
    /// Its name in CKSM.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Adler32 => "ADLER32",
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
            Self::Sha512 => "SHA512",
        }
    }

    /// Of these bytes of a file here, as hexadecimal digits.
    ///
    /// # Errors
    /// They cannot be read.
    pub(crate) fn of(self, range: Range<u64>, supply: &Supply<'_>) -> Result<String> {
        let mut sum = Sum::begin(self);
        let mut bytes = vec![0; PIECE_BYTES];
        let mut at = range.start;
        while at < range.end {
            let length = PIECE_BYTES.min(usize::try_from(range.end - at).unwrap_or(PIECE_BYTES));
            supply(at, &mut bytes[..length]).context("cannot read the file to compare it")?;
            sum.add(&bytes[..length]);
            at += length as u64;
        }
        Ok(sum.hex())
    }
}

/// Two checksums of the same bytes, in hexadecimal digits of either case.
///
/// # Errors
/// They differ.
pub(crate) fn compare(how: Checksum, one: &str, other: &str) -> Result<()> {
    // A server may leave out leading zeros of Adler-32.
    let digits = |text: &str| text.trim_start_matches('0').to_ascii_lowercase();
    if digits(one) == digits(other) {
        return Ok(());
    }
    Err(Differs { how: how.name(), one: one.to_owned(), other: other.to_owned() }.into())
}

/// The copy is not what its source is.
#[derive(Debug, thiserror::Error)]
#[error("the copy differs from its source: {how} {one} and {other}; what was copied is not kept")]
pub(crate) struct Differs {
    how: &'static str,
    one: String,
    other: String,
}

impl Session<'_> {
    /// Compares the part of a file that the server has with the same part here, if the user wants that.
    ///
    /// # Errors
    /// [`Differs`]; or one of the two cannot compute it.
    pub(crate) fn compare(
        &mut self,
        path: &[u8],
        range: Range<u64>,
        supply: &Supply<'_>,
    ) -> Result<()> {
        match self.checksum() {
            Some(how) => self.compare_by(how, path, range, supply),
            None => Ok(()),
        }
    }

    /// Compares them by this checksum.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn compare_by(
        &mut self,
        how: Checksum,
        path: &[u8],
        range: Range<u64>,
        supply: &Supply<'_>,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let length = range.end - range.start;
        let theirs = self.ask(|channel| channel.checksum(how.name(), path, range.start, length))?;
        compare(how, &how.of(range, supply)?, &theirs)
    }

    /// Compares the part of a file that the server has with the same part of a file of this machine.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn compare_here_by(
        &mut self,
        how: Checksum,
        path: &[u8],
        range: Range<u64>,
        here: &Path,
    ) -> Result<()> {
        let file = File::open(here).at(here.display())?;
        let supply = |at: u64, bytes: &mut [u8]| file.read_exact_at(bytes, at);
        self.compare_by(how, path, range, &supply)
    }

    /// Compares a file of the server with that of another one, if the user wants that.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn compare_with(
        &mut self,
        path: &[u8],
        to: (&Sink<'_>, &[u8]),
        range: Range<u64>,
    ) -> Result<()> {
        match self.checksum() {
            Some(how) => self.compare_with_by(how, path, to, range),
            None => Ok(()),
        }
    }

    /// Compares them by this checksum.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn compare_with_by(
        &mut self,
        how: Checksum,
        path: &[u8],
        (sink, there): (&Sink<'_>, &[u8]),
        range: Range<u64>,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let (start, length) = (range.start, range.end - range.start);
        let one = self.ask(|channel| channel.checksum(how.name(), path, start, length))?;
        let other = sink.ask(|channel| channel.checksum(how.name(), there, start, length))?;
        compare(how, &one, &other)
    }
}

/// A checksum that is being computed.
enum Sum {
    Adler32(u32, u32),
    Digest(digest::Context),
}

impl Sum {
    fn begin(how: Checksum) -> Self {
        let algorithm = match how {
            Checksum::Adler32 => return Self::Adler32(1, 0),
            Checksum::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Checksum::Sha256 => &digest::SHA256,
            Checksum::Sha512 => &digest::SHA512,
        };
        Self::Digest(digest::Context::new(algorithm))
    }

    fn add(&mut self, bytes: &[u8]) {
        match self {
            Self::Digest(context) => context.update(bytes),
            Self::Adler32(a, b) => {
                for run in bytes.chunks(ADLER_RUN) {
                    for &byte in run {
                        *a += u32::from(byte);
                        *b += *a;
                    }
                    *a %= ADLER_BASE;
                    *b %= ADLER_BASE;
                }
            }
        }
    }

    fn hex(self) -> String {
        match self {
            Self::Adler32(a, b) => format!("{:08x}", b << 16 | a),
            Self::Digest(context) => {
                let mut text = String::new();
                for byte in context.finish().as_ref() {
                    // Writing to a String does not fail.
                    let _ = write!(text, "{byte:02x}");
                }
                text
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_are_computed() {
        let text = b"Wikipedia";
        let supply = |at: u64, bytes: &mut [u8]| {
            bytes.copy_from_slice(&text[at as usize..at as usize + bytes.len()]);
            Ok(())
        };
        assert_eq!(Checksum::Adler32.of(0..9, &supply).unwrap(), "11e60398");
        assert_eq!(
            Checksum::Sha1.of(0..9, &supply).unwrap(),
            "664add438097fbd4307f814de8e62a10f8905588"
        );
        let many = |_: u64, bytes: &mut [u8]| {
            bytes.fill(255);
            Ok(())
        };
        // Longer than a piece, with the largest sums.
        let mut state = (1_u64, 0_u64);
        for _ in 0..3_000_000 {
            state.0 = (state.0 + 255) % 65_521;
            state.1 = (state.1 + state.0) % 65_521;
        }
        let want = format!("{:08x}", state.1 << 16 | state.0);
        assert_eq!(Checksum::Adler32.of(7..3_000_007, &many).unwrap(), want);
    }

    #[test]
    fn leading_zeros_and_case_make_no_difference() {
        assert!(compare(Checksum::Adler32, "00ab0398", "AB0398").is_ok());
        assert!(compare(Checksum::Adler32, "00ab0398", "00ab0399").is_err());
    }
}
