//! An observer of the packets of both ends, which checks protocol rules.

use crate::duo::{Overheard, index, other, overhear};
use hikyaku_proto::{Config, Connection, ConnectionId, Side};
use hikyaku_wire::{Frame, PacketKind, SHORT_HEADER_LEN, ShortHeader, TAG_LEN, is_long};
use std::collections::{BTreeMap, BTreeSet};

/// Checks all packets that both ends send.
pub(crate) struct Watch {
    seen: [BTreeSet<u64>; 2],
    told: [Announced; 2],
    highest: [BTreeMap<u32, u64>; 2],
    /// UDP payload bytes received from and sent to a client whose address is not validated.
    unproven: Option<(u64, u64)>,
    pub(crate) packets: u64,
}

/// The flow-control limits that an end has announced.
struct Announced {
    data: u64,
    streams: BTreeMap<u32, u64>,
    each: u64,
}

impl Watch {
    pub(crate) fn new(configs: [&Config; 2]) -> Self {
        let told = configs.map(|config| {
            let params = Connection::local_params(config, ConnectionId(0), ConnectionId(0));
            Announced {
                data: params.max_data,
                streams: BTreeMap::new(),
                each: params.max_stream_data,
            }
        });
        Self {
            seen: Default::default(),
            told,
            highest: Default::default(),
            unproven: Some((0, 0)),
            packets: 0,
        }
    }

    /// Records that a packet arrives at `to` unchanged.
    pub(crate) fn arrives(&mut self, to: Side, packet: &[u8]) {
        if let (Side::Server, Some((came, _))) = (to, &mut self.unproven) {
            *came += packet.len() as u64;
            // All packets but Initial ones are under keys that only the address's host has.
            if packet.first() != Some(&0x80) {
                self.unproven = None;
            }
        }
    }

    /// Checks a packet that `from` sends.
    pub(crate) fn leaves(&mut self, from: Side, packet: &[u8]) -> Result<(), String> {
        self.packets += 1;
        if let (Side::Server, Some((came, went))) = (from, &mut self.unproven) {
            *went += packet.len() as u64;
            if *went > 3 * *came {
                return Err(format!("{went} bytes for {came} before proof"));
            }
        }
        if is_long(packet) {
            return Ok(());
        }
        let header = ShortHeader::decode(packet).map_err(|error| error.to_string())?;
        if packet.len() < SHORT_HEADER_LEN + TAG_LEN {
            return Err("a packet without a seal".to_owned());
        }
        if !self.seen[index(from)].insert(header.packet_number) {
            return Err(format!("{from:?} used number {} twice", header.packet_number));
        }
        match overhear(packet) {
            Some(Overheard::Control(frames)) => {
                frames.iter().try_for_each(|frame| self.says(from, frame))
            }
            Some(Overheard::Data { trailer, len }) => {
                self.extends(from, trailer.stream, trailer.offset + len)
            }
            None if header.kind == PacketKind::Data => Err("a packet without a trailer".to_owned()),
            None => Ok(()),
        }
    }

    fn says(&mut self, from: Side, frame: &Frame) -> Result<(), String> {
        let told = &mut self.told[index(from)];
        match *frame {
            Frame::MaxData(limit) => told.data = told.data.max(limit),
            Frame::MaxStreamData { stream, limit } => {
                let each = told.each;
                let known = told.streams.entry(stream.0).or_insert(each);
                *known = limit.max(*known);
            }
            Frame::Fin { stream, size }
            | Frame::ResetAt { stream, size, .. }
            | Frame::Reset { stream, size, .. } => {
                let known = self.highest[index(from)].get(&stream.0).copied().unwrap_or(0);
                if size != known {
                    return Err(format!("{stream:?} of {known} bytes ends at {size}"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks that the end of a stream and the sum over all streams are within the limits of the
    /// reader.
    fn extends(&mut self, from: Side, stream: u32, end: u64) -> Result<(), String> {
        let highest = &mut self.highest[index(from)];
        let known = highest.entry(stream).or_insert(0);
        if end <= *known {
            return Ok(());
        }
        *known = end;
        let sum: u64 = highest.values().sum();
        let told = &self.told[index(other(from))];
        let limit = told.streams.get(&stream).copied().unwrap_or(told.each);
        if end > limit || sum > told.data {
            let all = told.data;
            return Err(format!("{end} of {limit} bytes of {stream}, {sum} of {all} in all"));
        }
        Ok(())
    }
}
