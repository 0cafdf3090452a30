//! Where a request ends: the bytes of a program behind it are not for the server.

/// How far a request goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    /// It has no end but that of the connection.
    Everything,
    /// So many bytes are to come.
    Length(u64),
    /// Chunks (RFC 9112, section 7.1).
    Chunks(Chunks),
    /// Nothing, until the server switches to another protocol (RFC 9110, section 7.8); then everything.
    Switched,
}

/// Where in a chunked body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Chunks {
    /// In the line with the size of the next chunk, of which these bytes have come.
    Size(Vec<u8>),
    /// In a chunk, of which so many bytes are to come, its CRLF included.
    Data(u64),
    /// In the line of a trailer, of which so many bytes have come; in all trailers, so many.
    Trailer { line: Vec<u8>, total: usize },
    /// Behind the body.
    Over,
}

/// The chunks make no sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BadChunks;

/// Bytes of a line with a size and its extensions at most.
const SIZE_LINE_BYTES_MAX: usize = 1024;
/// Bytes of all trailers at most.
const TRAILER_BYTES_MAX: usize = 64 << 10;

impl Body {
    pub(crate) const fn chunked() -> Self {
        Self::Chunks(Chunks::Size(Vec::new()))
    }

    /// How many of these bytes belong to the request. The next call takes those that come after them.
    // fuzz: forward
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<usize, BadChunks> {
        match self {
            Self::Everything => Ok(bytes.len()),
            Self::Switched => Ok(0),
            Self::Length(left) => {
                let length = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= length as u64;
                Ok(length)
            }
            Self::Chunks(chunks) => {
                let mut taken = 0;
                while taken < bytes.len() && *chunks != Chunks::Over {
                    taken += chunks.take(&bytes[taken..])?;
                }
                Ok(taken)
            }
        }
    }
}

impl Chunks {
    /// Takes at least one of these bytes, of which there is one.
    fn take(&mut self, bytes: &[u8]) -> Result<usize, BadChunks> {
        match self {
            Self::Over => Ok(0),
            Self::Data(left) => {
                let length = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= length as u64;
                if *left == 0 {
                    *self = Self::Size(Vec::new());
                }
                Ok(length)
            }
            Self::Size(line) => {
                let (length, is_whole) = add_line(line, bytes);
                if line.len() > SIZE_LINE_BYTES_MAX {
                    return Err(BadChunks);
                }
                if is_whole {
                    *self = match size(line)? {
                        0 => Self::Trailer { line: Vec::new(), total: 0 },
                        size => Self::Data(size.checked_add(2).ok_or(BadChunks)?),
                    };
                }
                Ok(length)
            }
            Self::Trailer { line, total } => {
                let (length, is_whole) = add_line(line, bytes);
                *total += length;
                if *total > TRAILER_BYTES_MAX {
                    return Err(BadChunks);
                }
                if is_whole {
                    match line.strip_suffix(b"\r\n") {
                        Some([]) => *self = Self::Over,
                        Some(_) => line.clear(),
                        None => return Err(BadChunks),
                    }
                }
                Ok(length)
            }
        }
    }
}

/// Adds bytes up to the end of the line. Returns how many, and whether the line is whole.
fn add_line(line: &mut Vec<u8>, bytes: &[u8]) -> (usize, bool) {
    let end = bytes.iter().position(|&byte| byte == b'\n').map(|at| at + 1);
    let length = end.unwrap_or(bytes.len());
    line.extend_from_slice(&bytes[..length]);
    (length, end.is_some())
}

/// The size in a line of a chunk. Only CRLF ends it: a server that accepts less could see another body.
fn size(line: &[u8]) -> Result<u64, BadChunks> {
    let line = line.strip_suffix(b"\r\n").filter(|line| !line.contains(&b'\r'));
    let line = line.ok_or(BadChunks)?;
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(digits).ok().filter(|_| is_number);
    text.and_then(|text| u64::from_str_radix(text, 16).ok()).ok_or(BadChunks)
}
