//! Messages in a stream: a length in two bytes, big-endian, and that number of bytes.

use crate::fields::MessageError;
use alloc::vec::Vec;

/// Bytes of a message at most, without its length.
const MESSAGE_BYTES_MAX: usize = 600;
const LENGTH_BYTES: usize = 2;

/// A message with its length in front.
pub fn framed(message: &[u8]) -> Vec<u8> {
    // The messages of this crate have at most 262 bytes (`Open`), so their lengths fit.
    let mut out = Vec::from((message.len() as u16).to_be_bytes());
    out.extend_from_slice(message);
    out
}

/// Puts a message together from the pieces of a stream. It holds at most 602 bytes.
#[derive(Clone, Debug, Default)]
pub struct Gather {
    held: Vec<u8>,
}

impl Gather {
    /// Takes bytes of `piece` up to the end of the message. Returns how many bytes it took, and the message when it is
    /// complete. After that, the next byte begins another message.
    ///
    /// # Errors
    ///
    /// The length is larger than that of any message.
    // fuzz: forward
    pub fn take(&mut self, piece: &[u8]) -> Result<(usize, Option<Vec<u8>>), MessageError> {
        let mut taken = 0;
        loop {
            let wanted = match self.held.first_chunk::<LENGTH_BYTES>() {
                None => LENGTH_BYTES,
                Some(length) => LENGTH_BYTES + usize::from(u16::from_be_bytes(*length)),
            };
            if wanted > LENGTH_BYTES + MESSAGE_BYTES_MAX {
                return Err(MessageError::TooLong(wanted - LENGTH_BYTES));
            }
            if self.held.len() == wanted && wanted > LENGTH_BYTES {
                let message = self.held.split_off(LENGTH_BYTES);
                self.held.clear();
                return Ok((taken, Some(message)));
            }
            if self.held.len() == LENGTH_BYTES && wanted == LENGTH_BYTES {
                // No message is empty.
                return Err(MessageError::Short);
            }
            let lacks = wanted - self.held.len();
            let more = &piece[taken..(taken + lacks).min(piece.len())];
            if more.is_empty() {
                return Ok((taken, None));
            }
            self.held.extend_from_slice(more);
            taken += more.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_whole_however_it_is_cut_and_what_follows_is_left() {
        let stream = [framed(b"abc"), framed(&[7; 600]), b"data".to_vec()].concat();
        for step in [1, 2, 3, 7, 1000] {
            let (mut gather, mut at, mut found) = (Gather::default(), 0, Vec::new());
            while found.len() < 2 {
                let piece = &stream[at..(at + step).min(stream.len())];
                let (taken, message) = gather.take(piece).unwrap();
                at += taken;
                found.extend(message);
            }
            assert_eq!(found, [b"abc".to_vec(), Vec::from([7; 600])]);
            assert_eq!(&stream[at..], b"data");
        }
    }

    #[test]
    fn a_length_that_no_message_has_is_refused_at_once() {
        assert_eq!(Gather::default().take(&[0x02, 0x59]), Err(MessageError::TooLong(601)));
        assert_eq!(Gather::default().take(&[0xff, 0xff, 1]), Err(MessageError::TooLong(65535)));
        assert_eq!(Gather::default().take(&[0, 0]), Err(MessageError::Short));
    }
}
