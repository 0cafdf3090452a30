//! Addresses in commands and replies: `h1,h2,h3,h4,p1,p2` (RFC 959), and those of RFC 2428.

use crate::reply::Reply;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

#[cfg(test)]
mod tests;

/// The command that tells the server where this end listens: PORT, or EPRT for IPv6.
pub(crate) fn port_command(address: SocketAddr) -> String {
    let port = address.port();
    match address.ip() {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            format!("PORT {a},{b},{c},{d},{},{}", port >> 8, port & 0xff)
        }
        IpAddr::V6(ip) => format!("EPRT |2|{ip}|{port}|"),
    }
}

/// The address in a reply to PASV: six numbers, in parentheses or not.
// fuzz: ftp_replies
pub(crate) fn passive(reply: &Reply) -> Option<SocketAddr> {
    let text = reply.lines.first()?;
    let start = text.iter().position(u8::is_ascii_digit)?;
    let of_address = |byte: &&u8| byte.is_ascii_digit() || **byte == b',';
    let length = text[start..].iter().take_while(of_address).count();
    let text = str::from_utf8(&text[start..start + length]).ok()?;
    let numbers: Vec<u8> = text.split(',').map(|n| n.parse().ok()).collect::<Option<_>>()?;
    let [a, b, c, d, high, low] = *numbers.as_slice() else { return None };
    let port = u16::from_be_bytes([high, low]);
    (port > 0).then(|| SocketAddr::new(Ipv4Addr::new(a, b, c, d).into(), port))
}

/// The port in a reply to EPSV: `(|||port|)`, where `|` may be any other character.
// fuzz: ftp_replies
pub(crate) fn extended_passive(reply: &Reply) -> Option<u16> {
    let text = reply.lines.first()?;
    let open = text.iter().position(|&byte| byte == b'(')?;
    let [mark, second, third, rest @ ..] = &text[open + 1..] else { return None };
    if mark != second || mark != third || mark.is_ascii_digit() {
        return None;
    }
    let end = rest.iter().position(|byte| byte == mark)?;
    str::from_utf8(&rest[..end]).ok()?.parse().ok().filter(|&port| port > 0)
}
