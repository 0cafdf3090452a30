//! Notes that commands print about new connections.

use hikyaku_console::{Tone, say};
use hikyaku_crypto::Fingerprint;
use hikyaku_reach::dial::{Address, Carrier, Via};

/// Prints the key of a server that was met for the first time, which a person may want to compare.
pub fn announce_key(address: &Address, first_use: Option<Fingerprint>) {
    if let Some(key) = first_use {
        say(Tone::Note, format_args!("{address} is new, its key is {key}"));
    }
}

/// Prints the key of a new server, and whether TCP carries the connection.
pub fn announce(address: &Address, met: (Option<Fingerprint>, Carrier), via: Via) {
    let (first_use, carrier) = met;
    announce_key(address, first_use);
    let why = match (carrier, via) {
        (Carrier::Udp, _) => return,
        (Carrier::Tcp, Via::Auto) => ": no UDP gets through",
        (Carrier::Tcp, Via::Udp | Via::Tcp) => "",
    };
    say(Tone::Note, format_args!("{address} is reached over TCP{why}"));
}
