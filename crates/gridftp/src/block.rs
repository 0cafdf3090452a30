//! Headers of extended block mode (GFD.020, section 2): descriptor, count and offset, big-endian.

#[cfg(test)]
mod tests;

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 17;
/// The last block of its connection.
const EOD: u8 = 0x08;
/// Carries, as its offset, how many connections end with an EOD.
const EOF: u8 = 0x40;
/// The connection is closed after this block.
const CLOSE: u8 = 0x04;
/// The sender suspects errors in the data.
const ERRORS: u8 = 0x20;
/// A restart marker. This client does not request any in this mode.
const RESTART: u8 = 0x10;

/// The kind of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    /// Bytes that follow the header, and their offset.
    pub(crate) data: Option<(u64, u64)>,
    /// How many connections end with an EOD.
    pub(crate) connections: Option<u64>,
    /// The state of the connection after the block.
    pub(crate) then: Then,
}

/// The state of a connection after a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    /// More blocks follow.
    More,
    /// The part ends on this connection, which serves the next part.
    Over,
    /// The part ends on this connection, which is closed.
    Closed,
}

/// A header that this client cannot use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BlockError {
    /// The sender suspects errors in its data.
    #[error("the server suspects errors in the data that it sends")]
    Errors,
    /// A kind of block that was not asked for, or fields that contradict each other.
    #[error("the server sends a block that makes no sense")]
    Senseless,
}

impl Block {
    // fuzz: ftp_replies
    pub(crate) fn decode(header: &[u8; HEADER_BYTES]) -> Result<Self, BlockError> {
        let [descriptor, rest @ ..] = header;
        let (count, offset) = rest.split_at(8);
        let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        let (count, offset) = (number(count), number(offset));
        let is = |bit: u8| descriptor & bit != 0;
        if is(ERRORS) {
            return Err(BlockError::Errors);
        }
        if is(RESTART) || is(EOF) && count > 0 || offset.checked_add(count).is_none() {
            return Err(BlockError::Senseless);
        }
        let then = match (is(EOD), is(CLOSE)) {
            (true, false) => Then::Over,
            (_, true) => Then::Closed,
            (false, false) => Then::More,
        };
        let data = (count > 0).then_some((offset, count));
        Ok(Self { data, connections: is(EOF).then_some(offset), then })
    }
}

/// The header of `count` bytes at `offset`.
pub(crate) fn data_header(offset: u64, count: u64) -> [u8; HEADER_BYTES] {
    header(0, count, offset)
}

/// The last header of a connection. One connection of a part also carries their number.
pub(crate) fn end_header(connections: Option<u64>) -> [u8; HEADER_BYTES] {
    match connections {
        None => header(EOD, 0, 0),
        Some(connections) => header(EOD | EOF, 0, connections),
    }
}

fn header(descriptor: u8, count: u64, offset: u64) -> [u8; HEADER_BYTES] {
    let mut header = [descriptor; HEADER_BYTES];
    header[1..9].copy_from_slice(&count.to_be_bytes());
    header[9..].copy_from_slice(&offset.to_be_bytes());
    header
}
