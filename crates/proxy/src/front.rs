//! What a program speaks to the near gateway, and how it is told whether its flow is connected.

use crate::http;
use crate::socks;
use hikyaku_forward::Answer;

/// What a program speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Front {
    /// Nothing but its own protocol (`-L`).
    Plain,
    /// SOCKS, of this version.
    Socks(socks::Version),
    /// HTTP, and it has asked for a tunnel (CONNECT).
    Tunnel,
    /// HTTP, and it has asked for an `http://` address.
    Request,
}

impl Front {
    /// The words for an answer. They are empty if the program is told nothing in words.
    pub(crate) fn reply(self, answer: &Answer) -> Vec<u8> {
        match self {
            Self::Plain => Vec::new(),
            Self::Socks(version) => socks::reply(version, answer),
            Self::Tunnel => http::reply_to_connect(answer),
            Self::Request => http::reply_to_request(answer),
        }
    }
}
