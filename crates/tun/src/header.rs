//! The offload header (`virtio_net_hdr` in linux/virtio_net.h) that precedes each packet on the
//! device.

/// The offload header of a packet: whether its checksum is still to be computed, and whether it is
/// a super-packet that stands for several wire segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The checksum to be computed, if the kernel left it. Its field holds the sum over the
    /// pseudo-header only.
    pub checksum: Option<Checksum>,
    /// How the packet is to be segmented.
    pub gso: Gso,
    /// The payload size of each wire segment but the last, in bytes; zero without segmentation.
    pub gso_size: u16,
    /// The total length of the headers of a super-packet, in bytes. The kernel's value is a hint
    /// only.
    pub header_len: u16,
}

/// A checksum to be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// The offset of the first byte that it covers.
    pub start: u16,
    /// The offset of its field, relative to `start`.
    pub offset: u16,
}

/// How a packet is to be segmented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gso {
    /// Not at all: it is a single wire segment.
    #[default]
    None,
    /// TCP over IPv4.
    Tcp4(Cwr),
    /// TCP over IPv6.
    Tcp6(Cwr),
    /// UDP over IPv4 or IPv6.
    Udp,
}

/// Whether the first segment of a TCP super-packet carries the CWR flag (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cwr {
    /// It does not.
    Clear,
    /// It does. The other segments must not carry it.
    Set,
}

const NEEDS_CHECKSUM: u8 = 1;
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
const GSO_UDP: u8 = 5;
const GSO_ECN: u8 = 0x80;

impl Header {
    /// The length of the header in bytes.
    pub const LEN: usize = 10;

    /// Decodes a header; `None` if it is truncated or of an unknown segmentation type.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LEN] = bytes.first_chunk()?;
        let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let cwr = if bytes[1] & GSO_ECN == 0 { Cwr::Clear } else { Cwr::Set };
        let gso = match bytes[1] & !GSO_ECN {
            0 => Gso::None,
            GSO_TCP4 => Gso::Tcp4(cwr),
            GSO_TCP6 => Gso::Tcp6(cwr),
            GSO_UDP => Gso::Udp,
            _ => return None,
        };
        let checksum =
            (bytes[0] & NEEDS_CHECKSUM != 0).then(|| Checksum { start: half(6), offset: half(8) });
        Some(Self { checksum, gso, header_len: half(2), gso_size: half(4) })
    }

    /// Encodes the header.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let cwr = |cwr: Cwr| if cwr == Cwr::Set { GSO_ECN } else { 0 };
        bytes[1] = match self.gso {
            Gso::None => 0,
            Gso::Tcp4(flag) => GSO_TCP4 | cwr(flag),
            Gso::Tcp6(flag) => GSO_TCP6 | cwr(flag),
            Gso::Udp => GSO_UDP,
        };
        bytes[2..4].copy_from_slice(&self.header_len.to_ne_bytes());
        bytes[4..6].copy_from_slice(&self.gso_size.to_ne_bytes());
        if let Some(checksum) = self.checksum {
            bytes[0] = NEEDS_CHECKSUM;
            bytes[6..8].copy_from_slice(&checksum.start.to_ne_bytes());
            bytes[8..10].copy_from_slice(&checksum.offset.to_ne_bytes());
        }
        bytes
    }
}
