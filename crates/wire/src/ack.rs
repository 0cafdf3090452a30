//! The ACK frame: what a receiver has received. The loss of an ACK only delays the information,
//! because a later ACK repeats it.
//!
//! An ACK carries *coverage*: a [`Block`] states for each packet number of its range whether the
//! packet has arrived. A packet number outside of all blocks is unknown, not lost.

use crate::error::DecodeError;
use crate::varint::{Reader, put_varint, varint_len};
use alloc::vec::Vec;

/// The longest range of one block, in packet numbers. It bounds what a decoder allocates and how
/// many packets a sender visits for one ACK.
pub const MAX_BLOCK_LEN: u64 = 1 << 16;
const BLOCKS_MAX: usize = 8;
const SAMPLES_MAX: usize = 64;

/// The arrival time of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The packet number.
    pub packet_number: u64,
    /// Its arrival in microseconds of the receiver's clock.
    pub micros: u64,
    /// Bytes of UDP payload received in total, up to and including this packet.
    pub bytes: u64,
}

/// Coverage of a range of packet numbers, as alternating runs of arrived and missing packets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// The first packet number of the range.
    pub first: u64,
    /// The lengths of the runs: arrived, missing, arrived, and so on. The first may be zero.
    pub runs: Vec<u32>,
}

impl Block {
    /// The packet number after the range.
    pub fn end(&self) -> u64 {
        self.first + self.runs.iter().map(|&r| u64::from(r)).sum::<u64>()
    }

    /// The runs of arrived packets in ascending order, as (first, end) with `end` exclusive.
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

/// The content of an ACK frame.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ack {
    /// The largest packet number received.
    pub largest: u64,
    /// Microseconds between the arrival of `largest` and the sending of this ACK.
    pub delay_micros: u64,
    /// Packets received in total, without duplicates.
    pub packets: u64,
    /// Those of them that carried the congestion experienced mark (RFC 3168).
    pub ce: u64,
    /// Datagrams that the receiver's host dropped because a socket buffer was full.
    pub host_drops: u64,
    /// Arrival times of packets, in ascending order of packet number.
    pub samples: Vec<Sample>,
    /// Coverage of packet numbers.
    pub blocks: Vec<Block>,
}

impl Ack {
    /// Appends the fields. The caller has written the frame type.
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

    /// Decodes the fields after the frame type.
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
        if samples > SAMPLES_MAX {
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
        if blocks > BLOCKS_MAX {
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
