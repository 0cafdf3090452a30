//! The acknowledgement: what a receiver knows, said so that lost acknowledgements only delay.
//!
//! An ACK carries *coverage*: a [`Block`] says of every packet number in its range whether it
//! arrived. A number outside every block is unknown, never lost.

use crate::error::DecodeError;
use crate::varint::{Reader, put_varint, varint_len};
use alloc::vec::Vec;

/// The longest range one block may cover. It bounds what a decoder allocates and what a sender
/// walks for one ACK.
pub const MAX_BLOCK_LEN: u64 = 1 << 16;
const MAX_BLOCKS: usize = 8;
const MAX_SAMPLES: usize = 64;

/// When one packet arrived, by the receiver's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The packet.
    pub packet_number: u64,
    /// Its time of arrival in microseconds of the receiver's clock.
    pub micros: u64,
    /// Bytes of UDP payload that had arrived by then in all, this packet included.
    pub bytes: u64,
}

/// Coverage of a range of packet numbers: alternating runs of arrived and missing ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// The first packet number covered.
    pub first: u64,
    /// Lengths of runs: arrived, missing, arrived, ... The first may be zero.
    pub runs: Vec<u32>,
}

impl Block {
    /// The number after the last one covered.
    pub fn end(&self) -> u64 {
        self.first + self.runs.iter().map(|&r| u64::from(r)).sum::<u64>()
    }

    /// The arrived ranges, as (first, end) pairs, in order.
    pub fn arrived(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut at = self.first;
        self.runs.iter().enumerate().filter_map(move |(i, &run)| {
            let from = at;
            at += u64::from(run);
            (i % 2 == 0 && run > 0).then_some((from, at))
        })
    }

    fn runs_len(&self) -> usize {
        self.runs.iter().map(|&r| varint_len(u64::from(r))).sum()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let covered = self.end() - self.first;
        put_varint(out, self.first);
        put_varint(out, covered);
        let bitmap_len = covered.div_ceil(8) as usize;
        if self.runs_len() + varint_len(self.runs.len() as u64) <= bitmap_len {
            out.push(0);
            put_varint(out, self.runs.len() as u64);
            self.runs.iter().for_each(|&run| put_varint(out, u64::from(run)));
        } else {
            out.push(1);
            let at = out.len();
            out.resize(at + bitmap_len, 0);
            for (from, end) in self.arrived() {
                for bit in from - self.first..end - self.first {
                    out[at + (bit / 8) as usize] |= 1 << (bit % 8);
                }
            }
        }
    }

    // fuzz: packets
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let first = reader.varint()?;
        let covered = reader.varint()?;
        if covered > MAX_BLOCK_LEN {
            return Err(DecodeError::Invalid("ACK block length"));
        }
        let runs = match reader.u8()? {
            0 => Self::decode_runs(reader, covered)?,
            1 => Self::decode_bitmap(reader.bytes(covered.div_ceil(8) as usize)?, covered as u32),
            _ => return Err(DecodeError::Invalid("ACK block coding")),
        };
        Ok(Self { first, runs })
    }

    // fuzz: packets
    fn decode_runs(reader: &mut Reader<'_>, covered: u64) -> Result<Vec<u32>, DecodeError> {
        let count = reader.length()?;
        let mut runs = Vec::with_capacity(count);
        let mut sum = 0;
        for _ in 0..count {
            let run = reader.varint()?;
            sum += run;
            if sum > covered {
                return Err(DecodeError::Invalid("ACK run"));
            }
            runs.push(run as u32);
        }
        if sum == covered { Ok(runs) } else { Err(DecodeError::Invalid("ACK run")) }
    }

    // fuzz: packets
    fn decode_bitmap(bitmap: &[u8], covered: u32) -> Vec<u32> {
        let mut runs = Vec::new();
        let mut arrived = true;
        let mut run = 0;
        for bit in 0..covered {
            let set = bitmap[(bit / 8) as usize] & (1 << (bit % 8)) != 0;
            if set != arrived {
                runs.push(run);
                run = 0;
                arrived = set;
            }
            run += 1;
        }
        runs.push(run);
        runs
    }
}

/// All that a receiver tells its sender.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ack {
    /// The largest packet number received.
    pub largest: u64,
    /// Microseconds from the arrival of `largest` to the sending of this ACK.
    pub delay_micros: u64,
    /// Packets received in all, without duplicates.
    pub packets: u64,
    /// Of those, packets that carried the congestion-experienced mark.
    pub ce: u64,
    /// Datagrams that the receiver's own host dropped for want of buffer.
    pub host_drops: u64,
    /// Arrival times, oldest first.
    pub samples: Vec<Sample>,
    /// Coverage.
    pub blocks: Vec<Block>,
}

impl Ack {
    /// Appends the fields (the frame's type is the caller's).
    pub fn encode(&self, out: &mut Vec<u8>) {
        for field in [self.largest, self.delay_micros, self.packets, self.ce, self.host_drops] {
            put_varint(out, field);
        }
        put_varint(out, self.samples.len() as u64);
        let mut last = Sample { packet_number: 0, micros: 0, bytes: 0 };
        for sample in &self.samples {
            put_varint(out, sample.packet_number.saturating_sub(last.packet_number));
            put_varint(out, sample.micros.saturating_sub(last.micros));
            put_varint(out, sample.bytes.saturating_sub(last.bytes));
            last = *sample;
        }
        put_varint(out, self.blocks.len() as u64);
        self.blocks.iter().for_each(|block| block.encode(out));
    }

    /// Reads the fields.
    // fuzz: packets
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut ack = Self {
            largest: reader.varint()?,
            delay_micros: reader.varint()?,
            packets: reader.varint()?,
            ce: reader.varint()?,
            host_drops: reader.varint()?,
            ..Self::default()
        };
        let samples = reader.length()?;
        if samples > MAX_SAMPLES {
            return Err(DecodeError::Invalid("ACK sample count"));
        }
        let mut last = Sample { packet_number: 0, micros: 0, bytes: 0 };
        for _ in 0..samples {
            last = Sample {
                packet_number: last.packet_number.saturating_add(reader.varint()?),
                micros: last.micros.saturating_add(reader.varint()?),
                bytes: last.bytes.saturating_add(reader.varint()?),
            };
            ack.samples.push(last);
        }
        let blocks = reader.length()?;
        if blocks > MAX_BLOCKS {
            return Err(DecodeError::Invalid("ACK block count"));
        }
        for _ in 0..blocks {
            ack.blocks.push(Block::decode(reader)?);
        }
        Ok(ack)
    }
}

#[cfg(test)]
mod tests;
