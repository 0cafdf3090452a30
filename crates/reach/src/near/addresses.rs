//! Where the far side may be reached. What it says of itself is a stranger's word: it must not make this
//! machine send packets to whatever is named.

use std::net::{IpAddr, Ipv4Addr};

/// Addresses that the far side may name, beside those that ssh knows.
const MOST_NAMED: usize = 4;

/// Where to dial: first where ssh's own name for the host leads, then what the far side names.
pub(super) fn candidates(of_ssh: &[IpAddr], named: &[IpAddr]) -> Vec<IpAddr> {
    let is_here = of_ssh.iter().any(|ip| canonical(*ip).is_loopback());
    let may_be = |ip: IpAddr| {
        let ip = canonical(ip);
        !(ip.is_unspecified() || ip.is_multicast() || is_broadcast(ip))
            && (is_here || !ip.is_loopback())
    };
    let mut all: Vec<IpAddr> = Vec::new();
    let mut add = |ip: IpAddr| {
        let ip = canonical(ip);
        let is_new = !all.contains(&ip);
        if is_new {
            all.push(ip);
        }
        is_new
    };
    for ip in of_ssh {
        add(*ip);
    }
    let mut left = MOST_NAMED;
    for ip in named.iter().copied().filter(|ip| may_be(*ip)) {
        if left == 0 {
            break;
        }
        left -= usize::from(add(ip));
    }
    all
}

/// An IPv4 address is one, however it is written.
const fn canonical(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

fn is_broadcast(ip: IpAddr) -> bool {
    ip == IpAddr::V4(Ipv4Addr::BROADCAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(all: &[&str]) -> Vec<IpAddr> {
        all.iter().map(|ip| ip.parse().unwrap()).collect()
    }

    #[test]
    fn a_far_side_cannot_name_whom_to_flood() {
        let of_ssh = ips(&["192.0.2.7"]);
        let lies = ips(&[
            "127.0.0.1",
            "::1",
            "::ffff:127.0.0.1",
            "0.0.0.0",
            "::",
            "224.0.0.1",
            "ff02::1",
            "255.255.255.255",
        ]);
        assert_eq!(candidates(&of_ssh, &lies), of_ssh);
        let many: Vec<IpAddr> = (1..200).map(|n| Ipv4Addr::new(198, 51, 100, n).into()).collect();
        assert_eq!(candidates(&of_ssh, &many).len(), 1 + MOST_NAMED);
    }

    #[test]
    fn ssh_goes_first_and_loopback_is_for_this_machine() {
        let named = ips(&["127.0.0.1", "10.0.0.1", "192.0.2.7"]);
        assert_eq!(candidates(&ips(&["192.0.2.7"]), &named), ips(&["192.0.2.7", "10.0.0.1"]));
        let here = ips(&["::1"]);
        assert_eq!(candidates(&here, &named), ips(&["::1", "127.0.0.1", "10.0.0.1", "192.0.2.7"]));
        assert_eq!(candidates(&[], &named), ips(&["10.0.0.1", "192.0.2.7"]));
    }
}
