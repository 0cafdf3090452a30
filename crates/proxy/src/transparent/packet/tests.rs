//! Packets that are read, and the refusals of them.

use super::*;

/// The TCP header of a packet with these flags.
fn tcp(flags: u8) -> Vec<u8> {
    let mut out = vec![0x9c, 0x40, 0, 80];
    out.extend(0xffff_ffff_u32.to_be_bytes());
    out.extend([0, 0, 0, 0, 0x50, flags, 1, 0, 0, 0, 0, 0]);
    out
}

fn v4(flags: u8) -> Vec<u8> {
    let mut out = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, TCP, 0, 0, 10, 0, 0, 2, 10, 9, 0, 1];
    out.extend(tcp(flags));
    out
}

fn v6(flags: u8) -> Vec<u8> {
    let mut out = vec![0x60, 0, 0, 0, 0, 20, TCP, 64];
    out.extend("2001:db8:1::2".parse::<Ipv6Addr>().unwrap().octets());
    out.extend("2001:db8:9::1".parse::<Ipv6Addr>().unwrap().octets());
    out.extend(tcp(flags));
    out
}

#[test]
fn only_the_first_packet_of_a_connection_is_read() {
    for (packet, client, server) in [
        (v4 as fn(u8) -> Vec<u8>, "10.0.0.2:40000", "10.9.0.1:80"),
        (v6, "[2001:db8:1::2]:40000", "[2001:db8:9::1]:80"),
    ] {
        let syn = Syn::read(&packet(SYN)).unwrap();
        assert_eq!(
            (syn.client.to_string(), syn.server.to_string()),
            (client.into(), server.into())
        );
        // Flags of ECN are no matter (RFC 3168, section 6.1.1).
        let with_ecn = Syn::read(&packet(SYN | 0xc0)).unwrap();
        assert_eq!((with_ecn.client, with_ecn.server), (syn.client, syn.server));
        for flags in [0, ACK, SYN | ACK, RST, SYN | RST, SYN | FIN] {
            assert_eq!(Syn::read(&packet(flags)), None, "{flags}");
        }
        let whole = packet(SYN);
        for length in 0..whole.len() {
            assert_eq!(Syn::read(&whole[..length]), None, "{length}");
        }
    }
    let mut other = v4(SYN);
    other[9] = 17;
    assert_eq!(Syn::read(&other), None);
    other = v4(SYN);
    other[0] = 0x55;
    assert_eq!(Syn::read(&other), None, "no version of IP that there is");
    other[0] = 0x4f;
    assert_eq!(Syn::read(&other), None, "the header is longer than the packet");
    let mut other = v6(SYN);
    other[6] = 0;
    assert_eq!(Syn::read(&other), None, "an extension header");
}

#[test]
fn refusals_have_right_checksums_and_the_client_takes_them_for_the_server_s() {
    let syn = Syn::read(&v4(SYN)).unwrap();
    let reset = syn.reset();
    assert_eq!(checksum(&reset[..20]), 0);
    assert_eq!((&reset[12..16], &reset[16..20]), (&[10, 9, 0, 1][..], &[10, 0, 0, 2][..]));
    assert_eq!(reset[28..32], [0, 0, 0, 0], "one more than the client's number");
    assert_eq!(reset[33], RST | ACK);
    let pseudo = [&reset[12..20], &[0, TCP, 0, 20][..], &reset[20..]].concat();
    assert_eq!(checksum(&pseudo), 0);
    let icmp = syn.unreachable(Unreachable::Host);
    assert_eq!((checksum(&icmp[..20]), checksum(&icmp[20..])), (0, 0));
    assert_eq!(icmp[20..22], [3, 1]);
    assert_eq!(icmp[28..], v4(SYN)[..28]);
    assert_eq!(usize::from(icmp[3]), icmp.len());
}

#[test]
fn refusals_of_ipv6_have_the_checksums_of_ipv6() {
    let syn = Syn::read(&v6(SYN)).unwrap();
    for (packet, protocol) in [(syn.reset(), TCP), (syn.unreachable(Unreachable::Host), ICMP6)] {
        assert_eq!((packet[0] >> 4, packet[6]), (6, protocol));
        let length = packet.len() - IP6_BYTES;
        assert_eq!(usize::from(u16::from_be_bytes([packet[4], packet[5]])), length);
        // From the server to the client.
        assert_eq!((&packet[8..24], &packet[24..40]), (&v6(SYN)[24..40], &v6(SYN)[8..24]));
        let mut pseudo = packet[8..40].to_vec();
        pseudo.extend((length as u32).to_be_bytes());
        pseudo.extend([0, 0, 0, protocol]);
        pseudo.extend(&packet[40..]);
        assert_eq!(checksum(&pseudo), 0, "{protocol}");
    }
    let icmp = syn.unreachable(Unreachable::Host);
    assert_eq!(icmp[40..42], [1, 3]);
    assert_eq!(icmp[48..], v6(SYN), "all of the packet is quoted");
    let codes = [Unreachable::Network, Unreachable::Prohibited].map(|why| syn.unreachable(why)[41]);
    assert_eq!(codes, [0, 1]);
}
