//! Addresses in commands and replies: `h1,h2,h3,h4,p1,p2` (RFC 959), and those of RFC 2428.

use crate::reply::Reply;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

#[cfg(test)]
mod tests;

/// The command with the address at which this end listens: PORT, or EPRT for IPv6.
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

/// Data nodes of a striped server at most.
pub(crate) const STRIPES_MAX: usize = 64;

/// The command with the listening addresses of this end for a striped server, one for each data node (GFD.020, section 5.4).
/// Only IPv4 addresses have a place in it.
pub(crate) fn striped_port_command(addresses: &[SocketAddr]) -> Option<String> {
    let mut command = "SPOR".to_owned();
    for address in addresses {
        let IpAddr::V4(ip) = address.ip() else { return None };
        let ([a, b, c, d], port) = (ip.octets(), address.port());
        command.push_str(&format!(" {a},{b},{c},{d},{},{}", port >> 8, port & 0xff));
    }
    Some(command)
}

/// The addresses in a reply to SPAS: one a line, between the first and the last one.
// fuzz: ftp_replies
pub(crate) fn striped_passive(reply: &Reply) -> Option<Vec<SocketAddr>> {
    let [_, nodes @ .., _] = reply.lines.as_slice() else { return None };
    if nodes.is_empty() || nodes.len() > STRIPES_MAX {
        return None;
    }
    nodes.iter().map(|line| address_in(line)).collect()
}

/// The address in a reply to PASV: six numbers, in parentheses or not.
// fuzz: ftp_replies
pub(crate) fn passive(reply: &Reply) -> Option<SocketAddr> {
    address_in(reply.lines.first()?)
}

/// Six numbers that are an address and a port.
// fuzz: ftp_replies
fn address_in(text: &[u8]) -> Option<SocketAddr> {
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
