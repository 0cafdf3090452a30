//! The decision of a listener about a datagram of an unknown connection.
//!
//! Nothing but a padded, well-formed Initial draws a reply, and a reply is never longer than what
//! it answers. All of it is a function of the datagram and of how busy the listener is.

use hikyaku_wire::{
    ConnectionId, LONG_HEADER_LEN, LongHeader, LongType, MIN_INITIAL_LEN, TAG_LEN, Version, is_long,
};

/// Handshakes under way, at most: each costs some kilobytes and a signature.
pub(crate) const MAX_HALF_OPEN: usize = 1024;

/// How busy a listener is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Handshakes under way.
    pub(crate) half_open: usize,
    /// From how many on a client must prove its address.
    pub(crate) prove_from: usize,
}

/// Whom a listener lets in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entrance {
    /// Every client.
    Open,
    /// Clients whose first packet proves knowledge of a secret. For all others the port seems closed.
    Invited,
}

/// The action for the datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// No reply, so that the listener cannot be detected.
    Silence,
    /// Begin a connection.
    Accept(Stranger, Address),
    /// Ask for proof of the address: [`retry`] builds the packet.
    Prove(Stranger),
    /// Name the versions spoken here, with this packet.
    Versions(Vec<u8>),
}

/// The ids of a client's first packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stranger {
    /// To whom the packet went: random.
    pub(crate) destination: ConnectionId,
    /// The client's id.
    pub(crate) source: ConnectionId,
}

/// Whether the client is known to receive at its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Address {
    /// It returned a token sent there.
    Proven,
    /// The address is not proven.
    Claimed,
}

/// Judges a datagram of an unknown connection. `is_ours` checks a token for the ids of this client.
// fuzz: strangers
pub(crate) fn judge(
    datagram: &[u8],
    load: Load,
    entrance: Entrance,
    is_ours: impl FnOnce(&Stranger, &[u8]) -> bool,
) -> Verdict {
    if !is_long(datagram) || datagram.len() < MIN_INITIAL_LEN {
        return Verdict::Silence;
    }
    let Ok((header, used)) = LongHeader::decode(datagram) else { return Verdict::Silence };
    if header.kind != LongType::Initial || datagram.len() < used + TAG_LEN {
        return Verdict::Silence;
    }
    let stranger = Stranger { destination: header.destination, source: header.source };
    // spec: hs-7
    if entrance == Entrance::Invited {
        // A client with an invitation knows the version. The invitation does not prove the address.
        let is_invited = header.version == Version::CURRENT
            && load.half_open < MAX_HALF_OPEN
            && is_ours(&stranger, &header.token);
        let accept = || Verdict::Accept(stranger, Address::Claimed);
        return if is_invited { accept() } else { Verdict::Silence };
    }
    if header.version != Version::CURRENT {
        return Verdict::Versions(versions(&stranger));
    }
    let proven = !header.token.is_empty() && is_ours(&stranger, &header.token);
    let must_prove = load.half_open >= load.prove_from;
    if load.half_open >= MAX_HALF_OPEN {
        Verdict::Silence
    } else if proven {
        Verdict::Accept(stranger, Address::Proven)
    } else if !must_prove {
        Verdict::Accept(stranger, Address::Claimed)
    } else if header.token.is_empty() {
        Verdict::Prove(stranger)
    } else {
        // An old token, or one of another client.
        Verdict::Silence
    }
}

/// The packet that asks for `token` to come back.
pub(crate) fn retry(stranger: &Stranger, token: Vec<u8>) -> Vec<u8> {
    answer(stranger, LongType::Retry, Version::CURRENT, token)
}

fn versions(stranger: &Stranger) -> Vec<u8> {
    let mut packet = answer(stranger, LongType::VersionNegotiation, Version(0), Vec::new());
    packet.extend_from_slice(&Version::CURRENT.0.to_le_bytes());
    packet
}

fn answer(stranger: &Stranger, kind: LongType, version: Version, token: Vec<u8>) -> Vec<u8> {
    let mut packet = Vec::with_capacity(LONG_HEADER_LEN + token.len() + 4);
    let header = LongHeader {
        kind,
        version,
        destination: stranger.source,
        source: stranger.destination,
        packet_number: 0,
        token,
    };
    header.encode(&mut packet);
    packet
}

#[cfg(test)]
mod tests;
