//! `hikyaku get` of files that are on no web server: of daemons, of servers of FTP, and of hosts by ssh.

use crate::common::daemon::{Client, Daemon, said};
use crate::common::{Sshd, random};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use xtask::servers::ftp::{PlainFtp, Style};

/// Three servers of one directory.
struct Rig {
    client: Client,
    daemon: Daemon,
    ftp: PlainFtp,
    sshd: Sshd,
}

impl Rig {
    fn up(name: &str) -> Self {
        let client = Client::new(name);
        let (keys, root) = (client.authorized("keys", ""), client.at("root"));
        fs::create_dir(&root).unwrap();
        let daemon = Daemon::start(&client, &root, &keys);
        let ftp = PlainFtp::start(&root, Style::Facts).unwrap();
        let lines = "Subsystem sftp internal-sftp\n";
        let sshd = Sshd::with_lines(&format!("{name}-host"), lines);
        // The command has no options of ssh.
        let config = sshd.at("ssh_config");
        let script = format!("#!/bin/sh\nexec /usr/bin/ssh -F '{}' \"$@\"\n", config.display());
        fs::create_dir(client.at("bin")).unwrap();
        fs::write(client.at("bin/ssh"), script).unwrap();
        fs::set_permissions(client.at("bin/ssh"), fs::Permissions::from_mode(0o755)).unwrap();
        Self { client, daemon, ftp, sshd }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.client.at(name)
    }

    /// Stores a file at all servers.
    fn put(&self, name: &str, bytes: &[u8]) {
        fs::write(self.at("root").join(name), bytes).unwrap();
        fs::write(self.sshd.at(name), bytes).unwrap();
    }

    /// The addresses of a file.
    fn addresses(&self, name: &str) -> [String; 3] {
        [
            format!("hikyaku://{}/{name}", self.daemon.address),
            format!("{}/{name}", self.ftp.url()),
            self.sshd.far(name),
        ]
    }

    fn get(&self, arguments: &[&str]) -> Output {
        let path = format!("{}:{}", self.at("bin").display(), std::env::var("PATH").unwrap());
        let mut command = self.client.command(&[&["get"], arguments].concat());
        command.env("PATH", path).current_dir(self.at("")).output().unwrap()
    }

    fn gets(&self, arguments: &[&str]) -> Output {
        let output = self.get(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
        output
    }

    fn fails(&self, arguments: &[&str], code: i32, words: &[&str]) {
        let output = self.get(arguments);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(words.iter().all(|word| text.contains(word)), "{arguments:?}: {text}");
    }
}

#[test]
fn files_of_other_storages_come_as_those_of_web_servers() {
    let rig = Rig::up("get-elsewhere");
    let (one, two) = (random(1, 3_000_017), random(2, 300));
    rig.put("one", &one);
    rig.put("two", &two);
    for (number, address) in rig.addresses("one").into_iter().enumerate() {
        let other = &rig.addresses("two")[number];
        let dir = format!("d{number}");
        rig.fails(&["-d", &dir, &address], 6, &[&dir]);
        fs::create_dir(rig.at(&dir)).unwrap();
        rig.gets(&["-d", &dir, &address, other]);
        let made = |name: &str| fs::read(rig.at(&dir).join(name)).unwrap();
        assert!(made("one") == one && made("two") == two, "{address}");
        // A file of the same size and time is not fetched again. Any other one is not replaced.
        rig.gets(&["-d", &dir, &address]);
        fs::write(rig.at(&dir).join("one"), "own").unwrap();
        rig.fails(&["-d", &dir, &address, other], 6, &["one", "exists", "--force"]);
        assert_eq!(made("one"), b"own");
        rig.gets(&["-f", "-d", &dir, &address]);
        assert!(made("one") == one, "{address}");
        let name = format!("{dir}/other");
        rig.gets(&["-o", &name, &address]);
        assert!(made("other") == one, "{address}");
        rig.fails(&["-o", &dir, &address], 6, &["is a directory", "-d DIR"]);
        rig.fails(&["-o", &name, &address, other], 1, &["-o is for one file"]);
        assert!(rig.gets(&["-o", "-", &address]).stdout == one, "{address}");
        rig.fails(&[&format!("{address}.none")], 6, &["no such file"]);
    }
}

#[test]
fn a_file_that_is_not_the_expected_one_gets_no_name() {
    let rig = Rig::up("get-elsewhere-sum");
    // Of each size that has a way of its own.
    for length in [300, 3_000_017] {
        let bytes = random(length as u64, length);
        rig.put("f", &bytes);
        let sum = Command::new("sha256sum").arg(rig.at("root/f")).output().unwrap();
        let right = String::from_utf8(sum.stdout).unwrap().split(' ').next().unwrap().to_owned();
        for address in rig.addresses("f") {
            rig.fails(
                &["--sha256", &"0".repeat(64), &address],
                2,
                &["not the file that is expected"],
            );
            assert!(!rig.at("f").exists(), "{address}");
            rig.gets(&["--sha256", &right, &address]);
            assert!(fs::read(rig.at("f")).unwrap() == bytes, "{address}");
            fs::remove_file(rig.at("f")).unwrap();
            rig.fails(&["--sha256", &right, "-o", "-", &address], 1, &["-o FILE"]);
        }
    }
}

#[test]
fn options_of_http_are_refused_and_sorts_are_not_mixed() {
    let rig = Rig::up("get-elsewhere-refused");
    rig.put("f", b"x");
    for address in rig.addresses("f") {
        rig.fails(&["-H", "A: b", &address], 1, &["-H", "try: leave it out"]);
        rig.fails(&["--max-connections", "3", &address], 1, &["try: -n N"]);
        rig.fails(&["http://127.0.0.1:1/x", &address], 1, &["a command for each sort"]);
        rig.fails(&["--mirror", "http://127.0.0.1:1/x", &address], 1, &["a command for each sort"]);
        assert!(!rig.at("f").exists(), "{address}");
    }
}
