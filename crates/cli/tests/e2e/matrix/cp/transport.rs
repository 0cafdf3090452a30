//! Options of `hikyaku cp` that say how a machine is reached and how data travel. They are told from options without effect by
//! what the program logs of its connection, and by machines that cannot be reached as they say.

use super::{Rig, filled, made, words};
use crate::matrix::Ends;
use hikyaku_console::Way;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::time::{Duration, Instant};

/// Options of ssh, and whether a machine with an IPv4 address is reached with them.
const REACHED: [(&[&str], bool); 7] = [
    (&["-4"], true),
    (&["-6"], false),
    (&["-J", "nowhere.invalid"], false),
    (&["-P", "1"], false),
    (&["-o", "HostName=nowhere.invalid"], false),
    (&["-c", "no-cipher"], false),
    (&["-S", "false"], false),
];

#[test]
fn a_machine_is_reached_as_ssh_is_told_or_not_at_all() {
    let rig = Rig::new("matrix-reached");
    filled(&rig.at("source"));
    for way in [Way::Ssh, Way::Through, Way::Sftp] {
        for (options, is_reached) in REACHED {
            made(&rig).iter().for_each(|path| fs::remove_file(path).unwrap());
            let (output, said) = rig.run(way, &words(options));
            assert_eq!(output.status.success(), is_reached, "{way:?} {options:?}: {said}");
            assert_eq!(!made(&rig).is_empty(), is_reached, "{way:?} {options:?}: {said}");
        }
    }
}

#[test]
fn a_server_that_is_silent_is_given_up_after_the_time_of_its_user() {
    let rig = Rig::new("matrix-silent");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let source = format!("ftp://{}/file", silent.local_addr().unwrap());
    let mut command = rig.client.command(&["cp", "--timeout", "5s", &source, "target"]);
    let output = command.current_dir(rig.at("")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("nothing has come from the server for 5 s"), "{said}");
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let daemon = format!("hikyaku://{}/", silent.local_addr().unwrap());
    for verb in [&["status"][..], &["ls"], &["view"]] {
        let options = [verb, &["--via", "udp", "--timeout", "5s", &daemon]].concat();
        let output = rig.client.run(&options);
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(5), "{verb:?}: {said}");
        assert!(said.contains("within 5 s"), "{verb:?}: {said}");
    }
}

#[test]
fn servers_are_started_as_ssh_is_told_or_not_at_all() {
    let rig = Rig::new("matrix-started");
    filled(&rig.at("source"));
    let config = rig.sshd.at("ssh_config").display().to_string();
    let far = |name: &str| format!("hikyaku://far{}", rig.local(name));
    for (from, to) in [(far("source"), rig.local("target")), (rig.local("source"), far("target"))] {
        for (options, is_reached) in REACHED {
            made(&rig).iter().for_each(|path| fs::remove_file(path).unwrap());
            let mut command = rig.client.command(&["cp", "--start-servers", "-F", &config]);
            command.args(["--remote-path", env!("CARGO_BIN_EXE_hikyaku")]).args(options);
            let output = command.args([&from, &to]).env("HOME", rig.at("")).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.success(), is_reached, "{from} {options:?}: {said}");
            assert_eq!(!made(&rig).is_empty(), is_reached, "{from} {options:?}: {said}");
        }
    }
}

#[test]
fn data_have_the_cipher_that_was_asked_for() {
    let rig = Rig::new("matrix-cipher");
    filled(&rig.at("source"));
    for way in [Way::Ssh, Way::Through] {
        for (cipher, name) in [
            ("aegis128l", "Aegis128L"),
            ("aes128gcm", "Aes128Gcm"),
            ("chacha20poly1305", "ChaCha20Poly1305"),
        ] {
            let (output, said) = rig.run(way, &words(&["-vv", "--cipher", cipher]));
            assert!(output.status.success(), "{way:?} {cipher}: {said}");
            let up: Vec<&str> =
                said.lines().filter(|line| line.contains("connection up")).collect();
            let is_its = |line: &&str| line.contains(&format!("cipher=Some({name})"));
            assert!(!up.is_empty() && up.iter().all(is_its), "{way:?} {cipher}: {said}");
        }
    }
}

#[test]
fn what_only_udp_has_is_refused_by_name_where_another_carrier_is_asked_for() {
    let rig = Rig::new("matrix-carriers");
    filled(&rig.at("source"));
    for way in [Way::Ssh, Way::Through] {
        for carrier in [&["--no-udp"][..], &["--via", "tcp"], &["--via", "ssh"]] {
            for option in [["--cipher", "aes128gcm"], ["--policy", "fixed:8m"]] {
                let (output, said) = rig.run(way, &words(&[&option[..], carrier].concat()));
                assert_eq!(output.status.code(), Some(1), "{way:?} {option:?} {carrier:?}: {said}");
                assert!(said.contains(option[0]) && said.contains("\ntry: "), "{said}");
                assert!(made(&rig).is_empty(), "{way:?} {option:?} {carrier:?}: {said}");
            }
        }
    }
}

#[test]
fn ports_are_those_that_were_named() {
    let rig = Rig::new("matrix-ports");
    filled(&rig.at("source"));
    for way in [Way::Ssh, Way::Through] {
        let (output, said) = rig.run(way, &words(&["-v", "--udp-ports", "61300-61340"]));
        assert!(output.status.success(), "{way:?}: {said}");
        let ports = said.split("waiting at port ").skip(1);
        let ports: Vec<u16> = ports.map(|rest| rest[..5].parse().unwrap()).collect();
        assert!(!ports.is_empty(), "{way:?}: {said}");
        assert!(ports.iter().all(|port| (61_300..=61_340).contains(port)), "{way:?}: {said}");
    }
}

#[test]
fn a_policy_holds_whether_it_was_typed_or_is_a_setting() {
    let rig = Rig::new("matrix-policy");
    fs::write(rig.at("source"), vec![7; 3_000_000]).unwrap();
    fs::create_dir_all(rig.at("config/hikyaku")).unwrap();
    for way in [Way::Ssh, Way::Through] {
        for (setting, options) in
            [("", &["--policy", "fixed:8m"][..]), ("[default]\npolicy = \"fixed:8m\"\n", &[])]
        {
            made(&rig).iter().for_each(|path| fs::remove_file(path).unwrap());
            fs::write(rig.at("config/hikyaku/config.toml"), setting).unwrap();
            let begin = Instant::now();
            let (output, said) = rig.run(way, &words(options));
            assert!(output.status.success(), "{way:?} {options:?}: {said}");
            // Three seconds, less what may go at once.
            let took = begin.elapsed();
            assert!(took > Duration::from_secs(1), "{way:?} {options:?}: {took:?}");
        }
    }
}
