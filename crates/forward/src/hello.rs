//! The first message of a connection, on a stream of its own: the far gateway is ready, and how much it takes.

use crate::fields::{Fields, MessageError, VERSION};
use alloc::vec::Vec;

/// The capabilities of an end. The near gateway sends its own first, and the far gateway answers.
///
/// | field | bytes |
/// |---|---|
/// | version | 1 |
/// | flows at most | 4 |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// Flows that this end carries at once.
    pub flows_max: u32,
}

impl Hello {
    /// The message, without its length.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::from([VERSION]);
        out.extend_from_slice(&self.flows_max.to_be_bytes());
        out
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// It is of another version, or is no such message.
    // fuzz: forward
    pub fn decode(message: &[u8]) -> Result<Self, MessageError> {
        let mut fields = Fields::new(message);
        fields.version()?;
        let flows_max = fields.word()?;
        fields.end()?;
        Ok(Self { flows_max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_decoded_as_it_was_encoded_and_a_cut_one_is_refused() {
        let bytes = Hello { flows_max: 4096 }.encode();
        assert_eq!(Hello::decode(&bytes), Ok(Hello { flows_max: 4096 }));
        assert_eq!(Hello::decode(&bytes[..4]), Err(MessageError::Short));
        assert_eq!(Hello::decode(&[2, 0, 0, 0, 1]), Err(MessageError::Version(2)));
        assert_eq!(Hello::decode(&[1, 0, 0, 0, 1, 0]), Err(MessageError::Long));
    }
}
