//! Programs that listen: what they say where their port is in use.

use crate::common::daemon::{Client, Daemon, said};
use std::fs;
use std::net::{TcpListener, UdpSocket};

/// A picture of 2 x 2 pixels.
const PICTURE: &[u8] = b"P5 2 2 255\n....";

#[test]
fn a_port_in_use_is_5_for_every_program_that_listens() {
    let client = Client::new("ports-used");
    let (root, keys) = (client.at("root"), client.authorized("keys", ""));
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.pgm"), PICTURE).unwrap();
    let daemon = Daemon::with(&client, &["--allow", "127.0.0.1:*"], &keys);
    let far = format!("hikyaku://{}", daemon.address);
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let tcp = tcp.local_addr().unwrap().port();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let udp = udp.local_addr().unwrap().port();
    let (root, keys) = (root.display(), keys.display());
    let serve = format!("serve --root {root} --authorized-keys {keys} --listen 127.0.0.1");
    for line in [
        format!("{serve}:{tcp}"),
        format!("{serve}:{udp}"),
        format!("perf -s -B 127.0.0.1 -p {udp}"),
        format!("proxy {far} -D {tcp}"),
        format!("proxy {far} --http {tcp}"),
        format!("proxy {far} -L {tcp}:127.0.0.1:80"),
        format!("web {far} --site data.example.org --port {tcp}"),
        format!("view {root}/a.pgm --web={tcp}"),
    ] {
        let output = client.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(5), "{line}: {}", said(&output));
        assert!(said(&output).contains("in use"), "{line}: {}", said(&output));
    }
}
