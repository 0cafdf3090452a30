//! `hikyaku ls`: this host, one or several daemons, hosts by ssh, and servers of FTP and HTTP.

use crate::common::Sshd;
use crate::common::daemon::{Client, Daemon, said};
use crate::common::web::Web;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use xtask::servers::ftp::{PlainFtp, Style};

/// Lists; what is printed, after success.
fn ls(client: &Client, arguments: &[&str]) -> String {
    let output = client.run(&[&["ls"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn tree(root: &Path, files: &[(&str, usize)]) {
    for (name, size) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, vec![b'x'; *size]).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    }
}

#[test]
fn a_directory_of_this_host_is_listed() {
    let client = Client::new("ls-here");
    let root = client.at("d");
    tree(&root, &[("b", 1536), ("a", 5), ("deep/c", 0), (".hidden", 1)]);
    symlink("deep/c", root.join("link")).unwrap();
    let at = root.to_str().unwrap();
    assert_eq!(ls(&client, &[at]), "a\nb\ndeep\nlink\n");
    assert_eq!(ls(&client, &["-a", at]), ".hidden\na\nb\ndeep\nlink\n");
    assert_eq!(ls(&client, &["-R", at]), "a\nb\ndeep\ndeep/c\nlink\n");
    let long = ls(&client, &["-lh", at]);
    let lines: Vec<&str> = long.lines().collect();
    assert!(lines[0].starts_with("-rw-r-----   5B ") && lines[0].ends_with(" a"), "{long}");
    assert!(lines[1].starts_with("-rw-r----- 1.5K "), "{long}");
    assert!(lines[2].starts_with('d') && lines[3].ends_with(" link -> deep/c"), "{long}");
    let (file, dir) = (root.join("a"), root.join("deep"));
    let (file, dir) = (file.to_str().unwrap(), dir.to_str().unwrap());
    assert_eq!(ls(&client, &[file]), format!("{file}\n"));
    assert_eq!(ls(&client, &[dir, file]), format!("{dir}:\nc\n\n{file}\n"));
    // One of two locations is missing: the other one is listed.
    let some = client.run(&["ls", "nosuch", dir]);
    assert_eq!(some.status.code(), Some(6), "{}", said(&some));
    assert!(said(&some).contains("hikyaku: nosuch: no such file or directory"), "{}", said(&some));
    assert_eq!(String::from_utf8(some.stdout).unwrap(), format!("{dir}:\nc\n"));
}

#[test]
fn names_of_two_daemons_are_one_list() {
    let client = Client::new("ls-daemons");
    let keys = client.authorized("keys", "");
    let roots = ["root0", "root1"].map(|name| client.at(name));
    tree(&roots[0], &[("run7/a", 5), ("run7/both", 7), ("one/x", 1)]);
    tree(&roots[1], &[("run7/both", 7), ("run7/deep/b", 300_000)]);
    let daemons = roots.each_ref().map(|root| Daemon::start(&client, root, &keys));
    let [zero, one] = [&daemons[0].address, &daemons[1].address];
    let both = format!("hikyaku://{zero},{one}/run7");
    assert_eq!(ls(&client, &[&both]), "a\nboth\ndeep\n");
    assert_eq!(ls(&client, &["-r", &both]), "a\nboth\ndeep\ndeep/b\n");
    let places = ls(&client, &["-r", "--where", "--no-udp", &both]);
    let wide = format!("{zero},{one}").len();
    let line = |at: &str, name: &str| format!("{at:wide$} {name}\n");
    let wanted = [
        line(zero, "a"),
        line(&format!("{zero},{one}"), "both"),
        line(one, "deep"),
        line(one, "deep/b"),
    ];
    assert_eq!(places, wanted.concat());
    // One of them has nothing of the name.
    assert_eq!(ls(&client, &[&both.replace("run7", "one")]), "x\n");
    let objects = ls(&client, &["--json", "--where", &format!("hikyaku://{one}/run7/deep")]);
    let document: serde_json::Value = serde_json::from_str(&objects).unwrap();
    let lines = document["entries"].as_array().unwrap();
    assert_eq!((&lines[0]["kind"], &lines[0]["path"]), (&"directory".into(), &"".into()));
    assert_eq!((&lines[1]["path"], &lines[1]["size"]), (&"b".into(), &300_000.into()));
    assert_eq!(lines[1]["places"][0]["host"], one.as_str());
    assert_eq!(lines[1]["mode"], "0640");
    // A server that is lost is an error, and the other one is listed.
    drop(daemons);
    let daemon = Daemon::start(&client, &roots[0], &keys);
    let some = client.run(&["ls", &format!("hikyaku://{},127.0.0.1:1/run7", daemon.address)]);
    assert_eq!(some.status.code(), Some(5), "{}", said(&some));
    assert_eq!(String::from_utf8(some.stdout).unwrap(), "a\nboth\n");
}

#[test]
fn a_host_by_ssh_is_listed_through_hikyaku_on_it_or_by_sftp() {
    let sshd = Sshd::with_lines("ls-ssh", "Subsystem sftp internal-sftp\n");
    let client = Client::new("ls-ssh-client");
    tree(&sshd.at("d"), &[("a", 5), ("b", 1536), ("deep/c", 0)]);
    symlink(sshd.at("d"), sshd.at("link")).unwrap();
    let config = sshd.at("ssh_config").display().to_string();
    let at = |name: &str| sshd.at(name).display().to_string();
    for program in [env!("CARGO_BIN_EXE_hikyaku"), "no-such-hikyaku"] {
        let options = ["--ssh-config", &config, "--remote-path", program];
        let listed = |words: &[&str]| ls(&client, &[&options, words].concat());
        let far = format!("far:{}", at("d"));
        assert_eq!(listed(&[&far]), "a\nb\ndeep\n", "{program}");
        assert_eq!(listed(&["-r", &format!("sftp://far/{}", at("d"))]), "a\nb\ndeep\ndeep/c\n");
        assert_eq!(listed(&[&format!("far:{}/", at("link"))]), "a\nb\ndeep\n", "{program}");
        assert!(listed(&["-l", &format!("{far}/a")]).starts_with("-rw-r----- 5 "), "{program}");
        assert!(listed(&["-l", &format!("far:{}", at("link"))]).starts_with('l'), "{program}");
        let missing = client.run(&[&["ls"], &options[..], &[&format!("{far}/none")]].concat());
        assert_eq!(missing.status.code(), Some(6), "{}", said(&missing));
        assert!(said(&missing).contains("none: no such file"), "{}", said(&missing));
    }
}

#[test]
fn servers_of_ftp_and_files_of_web_servers_are_listed() {
    let client = Client::new("ls-servers");
    tree(&client.at("d"), &[("run7/a", 5), ("run7/deep/b", 70_000)]);
    for style in [Style::Facts, Style::Bare] {
        let server = PlainFtp::start(&client.at("d"), style).unwrap();
        let url = |path: &str| format!("{}/{path}", server.url());
        assert_eq!(ls(&client, &[&url("")]), "run7\n");
        assert_eq!(ls(&client, &["-r", &url("run7")]), "a\ndeep\ndeep/b\n");
        let long = ls(&client, &["-l", &url("run7/a")]);
        assert!(long.contains(" 5 ") && long.trim_end().ends_with("run7/a"), "{long}");
        let missing = client.run(&["ls", &url("none")]);
        assert_eq!(missing.status.code(), Some(6), "{}", said(&missing));
    }
    let web = Web::start(&[("run7/b", vec![1; 70_000])]);
    let long = ls(&client, &["-l", &web.url("run7/b")]);
    assert!(long.contains(" 70000 "), "{long}");
    let missing = client.run(&["ls", &web.url("none")]);
    assert_eq!(missing.status.code(), Some(6), "{}", said(&missing));
    let server = PlainFtp::start(&client.at("d"), Style::Facts).unwrap();
    for url in [server.url(), web.url("run7/b")] {
        ls(&client, &["-4", &url]);
        let other = client.run(&["ls", "-6", &url]);
        assert!(said(&other).contains("no IPv6 address"), "{url}: {}", said(&other));
    }
    let refused = client.run(&["ls", "ftp://127.0.0.1:1/"]);
    assert_eq!(refused.status.code(), Some(5), "{}", said(&refused));
}
