//! Programs that listen until they are told to end: what they say where their port is in use, and how they end.

use crate::common::daemon::{Client, Daemon, said};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

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

#[test]
fn programs_that_run_until_a_signal_end_by_it() {
    let client = Client::new("ports-signals");
    let (root, keys) = (client.at("root"), client.authorized("keys", ""));
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.pgm"), PICTURE).unwrap();
    let daemon = Daemon::with(&client, &["--allow", "127.0.0.1:*"], &keys);
    let (root, keys) = (root.display(), keys.display());
    for line in [
        format!("serve --root {root} --authorized-keys {keys} --listen 127.0.0.1:0"),
        format!("proxy hikyaku://{} -D 0", daemon.address),
        format!("view {root}/a.pgm --web"),
    ] {
        for signal in [Signal::TERM, Signal::INT] {
            let mut command = client.command(&line.split(' ').collect::<Vec<_>>());
            let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            // The first line says where it listens.
            let mut told = String::new();
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut told).unwrap();
            assert!(!told.is_empty(), "{line}");
            kill_process(Pid::from_child(&child), signal).unwrap();
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.signal(), Some(signal.as_raw()), "{line}: {}", said(&output));
            // Nothing but that the daemon is new is told.
            let told = said(&output);
            assert!(told.lines().all(|line| line.contains("is new, its key is")), "{line}: {told}");
        }
    }
}
