//! Explicit congestion notification: the two low bits of the traffic class byte (RFC 3168, section
//! 5).

/// A non-zero ECN field. `Option<Ecn>` has `None` for zero, "not ECN-capable".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Ecn {
    /// ECT(1), which L4S uses (RFC 9331).
    Ect1 = 0b01,
    /// ECT(0), which classic ECN senders use.
    Ect0 = 0b10,
    /// Congestion experienced: a queue on the path marked the packet.
    Ce = 0b11,
}

impl Ecn {
    /// The ECN field of a traffic class byte.
    pub const fn from_traffic_class(byte: u8) -> Option<Self> {
        match byte & 0b11 {
            0b01 => Some(Self::Ect1),
            0b10 => Some(Self::Ect0),
            0b11 => Some(Self::Ce),
            _ => None,
        }
    }

    /// The field as two bits.
    pub const fn bits(self) -> u8 {
        self as u8
    }
}
