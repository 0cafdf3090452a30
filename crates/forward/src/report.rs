//! Reports of the far gateway about open flows: how long each of them has waited, and for what.

use crate::fields::{Fields, MessageError, VERSION};
use alloc::vec::Vec;
use core::time::Duration;

/// Waiting times of flows. The far gateway sends such messages after its hello.
///
/// | field | bytes |
/// |---|---|
/// | version | 1 |
/// | flows | 16 each: number, 4; for bytes of the server, 4; for the path, 4; for the server to read, 4 |
///
/// Times are in milliseconds, since the flow was connected.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// At most [`Report::FLOWS_MAX`] flows.
    pub flows: Vec<Waited>,
}

/// Waiting times of a flow at the far gateway, since it was connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waited {
    /// The number of the flow's stream.
    pub flow: u32,
    /// For bytes of the server.
    pub server: Duration,
    /// For room in the transport, for bytes of the server.
    pub path: Duration,
    /// For the server to take bytes of the program.
    pub reader: Duration,
}

/// Bytes of a flow.
const FLOW_BYTES: usize = 16;

impl Report {
    /// Flows of a message at most.
    pub const FLOWS_MAX: usize = 37;

    /// The message, without its length. Flows beyond [`Report::FLOWS_MAX`] are left out.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::from([VERSION]);
        for waited in self.flows.iter().take(Self::FLOWS_MAX) {
            out.extend_from_slice(&waited.flow.to_be_bytes());
            for time in [waited.server, waited.path, waited.reader] {
                let millis = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
                out.extend_from_slice(&millis.to_be_bytes());
            }
        }
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
        let rest = message.len() - 1;
        if rest / FLOW_BYTES > Self::FLOWS_MAX {
            return Err(MessageError::Long);
        }
        let mut flows = Vec::new();
        for _ in 0..rest / FLOW_BYTES {
            let flow = fields.word()?;
            let mut time = || fields.word().map(|millis| Duration::from_millis(millis.into()));
            let (server, path, reader) = (time()?, time()?, time()?);
            flows.push(Waited { flow, server, path, reader });
        }
        fields.end()?;
        Ok(Self { flows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waited(flow: u32) -> Waited {
        let time = |millis| Duration::from_millis(millis);
        Waited {
            flow,
            server: time(1),
            path: time(u64::from(u32::MAX)),
            reader: time(u64::from(flow & 7)),
        }
    }

    #[test]
    fn a_message_is_decoded_as_it_was_encoded_and_fits() {
        for count in [0, 1, Report::FLOWS_MAX] {
            let report = Report { flows: (0..count as u32).map(|n| waited(n << 20 | n)).collect() };
            let bytes = report.encode();
            assert_eq!(Report::decode(&bytes), Ok(report));
            assert!(bytes.len() <= 600);
        }
    }

    #[test]
    fn cut_and_longer_messages_are_refused_and_flows_too_many_left_out() {
        let bytes = Report { flows: Vec::from([waited(1), waited(2)]) }.encode();
        for length in 0..bytes.len() {
            let is_whole = (length + FLOW_BYTES - 1).is_multiple_of(FLOW_BYTES);
            assert_eq!(
                Report::decode(&bytes[..length]).is_ok(),
                is_whole && length > 0,
                "{length}"
            );
        }
        assert_eq!(Report::decode(&[2]), Err(MessageError::Version(2)));
        let many = Report { flows: Vec::from([waited(1); 40]) };
        assert_eq!(Report::decode(&many.encode()).unwrap().flows.len(), Report::FLOWS_MAX);
        let long = [&[VERSION][..], &[0; 40 * FLOW_BYTES]].concat();
        assert_eq!(Report::decode(&long), Err(MessageError::Long));
    }
}
