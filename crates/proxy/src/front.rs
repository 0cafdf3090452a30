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

/// Whether these bytes are a whole request of SOCKS or HTTP. Public only for the fuzz target.
pub fn is_request(bytes: &[u8]) -> bool {
    let is_socks = |asked| match asked {
        socks::Asked::Connect(length, _) => length <= bytes.len(),
        _ => false,
    };
    let is_http = match http::read_head(bytes) {
        Ok(Some(mut asked)) => {
            let rest = &bytes[asked.length..];
            asked.body.take(rest).is_ok_and(|taken| taken <= rest.len())
        }
        _ => false,
    };
    let socks = [socks::read_first(bytes).1, socks::read_five(bytes)];
    // The first byte of SOCKS is no letter of a method.
    is_http != socks.into_iter().any(is_socks)
}
