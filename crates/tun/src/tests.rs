//! Tests that need no device.

use super::*;

#[test]
fn headers_survive_the_round_trip() {
    let checksum = Some(Checksum { start: 20, offset: 16 });
    let header = Header { checksum, gso: Gso::Tcp4(Cwr::Set), gso_size: 1448, header_len: 52 };
    assert_eq!(Header::parse(&header.to_bytes()), Some(header));
    let plain = Header::default();
    assert_eq!(plain.to_bytes(), [0; Header::LEN]);
    assert_eq!(Header::parse(&plain.to_bytes()), Some(plain));
}

#[test]
fn unknown_headers_are_refused() {
    assert_eq!(Header::parse(&[0; 9]), None);
    assert_eq!(Header::parse(&[0, 3, 0, 0, 0, 0, 0, 0, 0, 0]), None);
}

#[test]
fn proc_net_dev_is_parsed() {
    let line = "  lab0: 100 1 2 3 0 0 0 0 500 5 6 7 0 0 0 0";
    let stats = DeviceStats { rx_packets: 1, rx_dropped: 5, tx_packets: 5, tx_dropped: 13 };
    assert_eq!(DeviceStats::parse(line, "lab0"), Some(stats));
    assert_eq!(DeviceStats::parse(line, "lab"), None);
}

#[test]
fn drops_of_all_devices_but_one_are_summed() {
    let text = "Inter-|   Receive    |  Transmit\n face |bytes packets |bytes packets\n\
                eth0: 100 1 2 3 0 0 0 0 500 5 6 7 0 0 0 0\n  lab0: 0 0 50 0 0 0 0 0 0 0 0 60 0 0 0 0\n";
    assert_eq!(DeviceTable::dropped_in(text, "lab0"), 18);
    assert_eq!(DeviceTable::dropped_in(text, ""), 128);
}

#[test]
fn pages_are_aligned_and_writable() {
    let mut pages = Pages::new().unwrap();
    assert_eq!(pages.len(), Pages::LEN);
    assert_eq!(pages.as_ptr().align_offset(Pages::LEN), 0);
    pages[Pages::LEN - 1] = 7;
    assert_eq!((pages[0], pages[Pages::LEN - 1]), (1, 7));
}
