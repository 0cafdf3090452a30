//! Tests of the life of a lab: creation, changes and complete removal.

use crate::common::lab;
use hikyaku_lab::{Access, Lab, LabSpec, Side};
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn namespaces(name: &str) -> Vec<String> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|entry| entry.contains(name)).collect()
}

#[test]
fn a_dropped_lab_leaves_nothing_behind() {
    let Some(lab) = lab(&[]) else { return };
    let name = lab.name().to_owned();
    assert_eq!(namespaces(&name).len(), 2);
    let mut sleeper =
        lab.command(Side::Server(1), "sleep").arg("1000").stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    drop(lab);
    assert!(!sleeper.wait().unwrap().success(), "the lab ends what runs in it");
    assert_eq!(namespaces(&name), Vec::<String>::new());
    assert!(!Path::new("/run/hikyaku-lab").join(&name).exists());
    assert!(!Path::new("/etc/netns").join(format!("hikyaku-{name}-client")).exists());
}

#[test]
fn the_remains_of_a_killed_lab_are_removed() {
    if lab(&[]).is_none() {
        return;
    }
    // The state after its process was killed: a directory without a lock, and a namespace.
    let directory = Path::new("/run/hikyaku-lab/killed-for-test");
    fs::create_dir_all(directory).unwrap();
    fs::write(directory.join("lock"), "").unwrap();
    let add = Command::new("ip").args(["netns", "add", "hikyaku-killed-for-test-client"]).status();
    assert!(add.unwrap().success());
    let _next = lab(&[]);
    assert_eq!(namespaces("killed-for-test"), Vec::<String>::new());
    assert!(!directory.exists());
}

#[test]
fn a_name_can_be_used_by_one_lab_only() {
    let spec = LabSpec { name: Some("test-taken".into()), ..LabSpec::default() };
    let Some(_lab) = crate::common::lab_with(&[], spec.clone()) else { return };
    let error = Lab::up(spec).unwrap_err().to_string();
    assert!(error.contains("already"), "{error}");
}

#[test]
fn the_machines_tcp_settings_do_not_apply_in_a_lab() {
    let Some(lab) = lab(&[]) else { return };
    let output = lab
        .command(Side::Client, "cat")
        .args(["congestion_control", "rmem", "wmem"].map(|n| format!("/proc/sys/net/ipv4/tcp_{n}")))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "cubic\n4096\t131072\t6291456\n4096\t16384\t4194304\n");
}

/// The fastest of five echoes of server `number`.
fn round_trip(lab: &Lab, number: u32) -> Duration {
    // An ephemeral port: a program that another test is starting may still hold the previous
    // socket.
    let bind = |host: Ipv4Addr| move || UdpSocket::bind((host, 0));
    let server = lab.within(Side::Server(number), bind(hikyaku_lab::ipv4(number))).unwrap();
    let client = lab.within(Side::Client, bind(hikyaku_lab::ipv4(0))).unwrap();
    client.connect(server.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let echo = || {
        let start = Instant::now();
        let mut buffer = [0; 100];
        client.send(b"hello").unwrap();
        let (len, from) = server.recv_from(&mut buffer).unwrap();
        server.send_to(&buffer[..len], from).unwrap();
        client.recv(&mut buffer).unwrap();
        start.elapsed()
    };
    (0..5).map(|_| echo()).min().unwrap()
}

#[test]
fn a_servers_access_link_adds_its_delay() {
    let spec = LabSpec {
        servers: vec![
            Access::default(),
            Access { delay: Duration::from_millis(15), ..Access::default() },
        ],
        ..LabSpec::default()
    };
    let Some(lab) = crate::common::lab_with(&["rtt 10ms"], spec) else { return };
    let [here, there] = [1, 2].map(|number| round_trip(&lab, number));
    assert!(here >= Duration::from_millis(10) && there >= Duration::from_millis(40));
    assert!(here < there, "{here:?} and {there:?}");
}

#[test]
fn a_link_can_be_changed_while_in_use() {
    let Some(lab) = lab(&["rtt 40ms"]) else { return };
    // What a busy machine adds is less than what the change takes away.
    let (long, short) = (Duration::from_millis(40), Duration::from_millis(10));
    assert!(round_trip(&lab, 1) >= long);
    lab.set(vec!["rtt 10ms".parse().unwrap()]).unwrap();
    let changed = round_trip(&lab, 1);
    assert!(changed >= short && changed < long, "{changed:?}");
    lab.restart().unwrap();
    assert!(round_trip(&lab, 1) >= long);
    assert_eq!(lab.report().unwrap().up.segments, 5);
}
