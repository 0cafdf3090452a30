//! `hikyaku keys`, and what the options of a key in a daemon's list do.

use crate::common::daemon::{Client, Daemon, said};
use crate::common::proxy::{Proxy, to};
use crate::common::wait_until;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::thread;

#[test]
fn a_client_shows_its_key_and_comes_in_with_it() {
    let client = Client::new("keys-show");
    let missing = client.run(&["keys", "show"]);
    assert_eq!(missing.status.code(), Some(6), "{}", said(&missing));
    assert!(said(&missing).contains("try: hikyaku keys new"), "{}", said(&missing));
    let made = client.run(&["keys", "new"]);
    assert!(made.status.success(), "{}", said(&made));
    let shown = client.run(&["keys", "show"]);
    assert_eq!(made.stdout, shown.stdout, "the same key again");
    assert_eq!(client.run(&["keys", "new"]).stdout, shown.stdout, "a key is not replaced");
    let mode = fs::metadata(client.at("state/hikyaku/identity")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let (root, keys) = (client.at("root"), client.at("keys"));
    fs::create_dir(&root).unwrap();
    fs::write(root.join("file"), "text").unwrap();
    fs::write(&keys, &shown.stdout).unwrap();
    let daemon = Daemon::start(&client, &root, &keys);
    let source = format!("hikyaku://{}/file", daemon.address);
    let copied = client.run(&["cp", &source, client.at("out").to_str().unwrap()]);
    assert!(copied.status.success(), "{}", said(&copied));
    assert_eq!(fs::read(client.at("out")).unwrap(), b"text");
}

#[test]
fn a_list_of_keys_may_be_the_null_device_or_a_pipe() {
    let client = Client::new("keys-lists");
    let (keys, root, out) = (client.authorized("keys", ""), client.at("root"), client.at("out"));
    fs::create_dir(&root).unwrap();
    fs::write(root.join("file"), "text").unwrap();
    let copy = |daemon: &Daemon| {
        let source = format!("hikyaku://{}/file", daemon.address);
        client.run(&["cp", &source, out.to_str().unwrap()])
    };
    let nobody = Daemon::start(&client, &root, Path::new("/dev/null"));
    let refused = copy(&nobody);
    assert!(!refused.status.success() && !out.exists(), "{}", said(&refused));
    // What comes through a pipe comes once, and holds.
    let fifo = client.at("fifo");
    let made = Command::new("mkfifo").args(["-m", "600"]).arg(&fifo).status().unwrap();
    assert!(made.success());
    let (writer, text) = (fifo.clone(), fs::read(&keys).unwrap());
    let writing = thread::spawn(move || fs::write(writer, text).unwrap());
    let daemon = Daemon::start(&client, &root, &fifo);
    writing.join().unwrap();
    for _ in 0..2 {
        let copied = copy(&daemon);
        assert!(copied.status.success(), "{}", said(&copied));
        fs::remove_file(&out).unwrap();
    }
    // No daemon hangs on a FIFO that comes in place of its list.
    let list = Daemon::start(&client, &root, &keys);
    fs::rename(&fifo, &keys).unwrap();
    let copied = copy(&list);
    assert!(copied.status.success(), "{}", said(&copied));
}

/// Each kind of client tells the daemon that it ends, before its process is gone.
#[test]
fn a_client_that_has_ended_leaves_its_place_free() {
    let client = Client::new("keys-ended");
    let keys = client.authorized("keys", "max-sessions=1");
    let (root, here) = (client.at("root"), client.at("here").display().to_string());
    fs::create_dir_all(client.at("mounted")).unwrap();
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("file"), "text").unwrap();
    fs::write(&here, "text").unwrap();
    let daemon = Daemon::start_with(&client, &root, &keys, &["--writable", "--allow", "*:*"]);
    let url = format!("hikyaku://{}/", daemon.address);
    let (file, back) = (format!("{url}file"), client.at("back").display().to_string());
    let mounted = client.at("mounted").display().to_string();
    let down = |via| vec!["cp", "-q", "--via", via, &file, &back];
    let up = |via| vec!["cp", "-q", "--via", via, &here, &url];
    let mut commands: Vec<Vec<&str>> = vec![vec!["status", &url]];
    for via in ["udp", "tcp", "auto"] {
        commands.extend([down(via), up(via)]);
    }
    for _ in 0..5 {
        for arguments in &commands {
            let ended = client.run(arguments);
            assert!(ended.status.success(), "{arguments:?}: {}", said(&ended));
            assert!(!said(&ended).contains("as many sessions"), "{arguments:?}: {}", said(&ended));
        }
        if Path::new("/dev/fuse").exists() {
            let mut mount = client.command(&["mount", "-f", &url, &mounted]).spawn().unwrap();
            let device = |name: &str| fs::metadata(client.at(name)).map(|meta| meta.dev()).ok();
            wait_until("the mount stands", || device("mounted") != device("root"));
            assert!(client.run(&["umount", &mounted]).status.success());
            assert!(mount.wait().unwrap().success());
        }
        let proxy =
            Proxy::of(&mut client.command(&["proxy", url.trim_end_matches('/'), "-L", &to(1)]));
        proxy.end(Signal::TERM);
    }
}

#[test]
fn a_key_with_a_root_sees_nothing_else() {
    let client = Client::new("keys-root");
    let key = String::from_utf8(client.run(&["keys", "new"]).stdout).unwrap();
    let (root, keys) = (client.at("root"), client.at("keys"));
    fs::create_dir_all(root.join("anna/run")).unwrap();
    fs::write(root.join("anna/run/own"), "own").unwrap();
    fs::write(root.join("secret"), "secret").unwrap();
    fs::write(&keys, format!("root=/anna,ro {key}")).unwrap();
    let daemon = Daemon::start(&client, &root, &keys);
    let copy = |path: &str, name: &str| {
        let source = format!("hikyaku://{}/{path}", daemon.address);
        client.run(&["cp", "-r", &source, client.at(name).to_str().unwrap()])
    };
    let own = copy("run/own", "own");
    assert!(own.status.success(), "{}", said(&own));
    for (path, name) in [("secret", "a"), ("../secret", "b"), ("anna/run/own", "c")] {
        let refused = copy(path, name);
        assert_eq!(refused.status.code(), Some(6), "{path}: {}", said(&refused));
        assert!(!client.at(name).exists(), "{path}");
    }
    // A line that nobody understands lets nobody in by accident: the last list holds.
    fs::write(&keys, format!("no-such-option {key}")).unwrap();
    assert!(!copy("secret", "d").status.success());
    fs::write(&keys, format!("root=/nowhere {key}")).unwrap();
    // Nobody comes in who would see nothing or too much, and the client hears which directory it is.
    let refused = copy("run/own", "e");
    assert_eq!(refused.status.code(), Some(6), "{}", said(&refused));
    assert!(said(&refused).contains("root=nowhere"), "{}", said(&refused));
    assert!(said(&refused).contains("the line of your key"), "{}", said(&refused));
    assert!(!client.at("e").exists());
    // A daemon does not begin with such a line, and tells where it is.
    fs::write(&keys, format!("# clients\nroot= {key}")).unwrap();
    let (root, keys) = (root.to_str().unwrap(), keys.to_str().unwrap());
    let listen = ["--listen", "127.0.0.1:0"];
    let refused =
        client.run(&[&["serve", "--root", root, "--authorized-keys", keys], &listen[..]].concat());
    assert_eq!(refused.status.code(), Some(6), "{}", said(&refused));
    assert!(
        said(&refused).contains(&format!("{keys}:2: root= has no value")),
        "{}",
        said(&refused)
    );
}

#[test]
fn a_key_with_a_root_does_not_leave_it_by_a_link() {
    let client = Client::new("keys-link");
    let key = String::from_utf8(client.run(&["keys", "new"]).stdout).unwrap();
    let (root, keys) = (client.at("root"), client.at("keys"));
    for dir in ["root/below", "outside/below", "root/anna/sub"] {
        fs::create_dir_all(client.at(dir)).unwrap();
    }
    fs::write(client.at("outside/secret"), "secret").unwrap();
    fs::write(client.at("outside/below/secret"), "secret").unwrap();
    // As a client that sees all of the root can make them.
    std::os::unix::fs::symlink(client.at("outside"), root.join("out")).unwrap();
    std::os::unix::fs::symlink("../..", root.join("below/up")).unwrap();
    std::os::unix::fs::symlink("anna", root.join("within")).unwrap();
    fs::write(client.at("mine"), "mine").unwrap();
    let mine = client.at("mine").display().to_string();
    for (number, below) in ["out", "out/below", "below/up", "within"].iter().enumerate() {
        fs::write(&keys, format!("root=/{below} {key}")).unwrap();
        let daemon = Daemon::start_with(&client, &root, &keys, &["--writable"]);
        let got = client.at(&format!("got{number}"));
        let source = format!("hikyaku://{}/", daemon.address);
        let read = client.run(&["cp", "-r", &source, got.to_str().unwrap()]);
        assert!(!read.status.success() && !got.exists(), "{below}: {}", said(&read));
        let put = client.run(&["cp", &mine, &format!("{source}mine")]);
        assert!(!put.status.success(), "{below}: {}", said(&put));
    }
    let outside: Vec<_> = fs::read_dir(client.at("outside")).unwrap().flatten().collect();
    assert_eq!(outside.len(), 2);
    assert!(!root.join("anna/mine").exists());
}

#[test]
fn keys_of_daemons_are_fetched_through_ssh() {
    let client = Client::new("keys-fetch");
    let ssh = client.at("ssh");
    // A login that says something before the program does.
    let hikyaku = std::path::Path::new(env!("CARGO_BIN_EXE_hikyaku")).parent().unwrap();
    let script = format!(
        "#!/bin/sh\nfor command; do :; done\necho Welcome\nXDG_STATE_HOME={} PATH={}:$PATH exec sh -c \"$command\"\n",
        client.at("server-state").display(),
        hikyaku.display()
    );
    fs::write(&ssh, script).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let key = client.run(&["keys", "new"]).stdout;
    let (root, keys) = (client.at("root"), client.at("keys"));
    fs::create_dir(&root).unwrap();
    fs::write(root.join("file"), "text").unwrap();
    fs::write(&keys, key).unwrap();
    let fetch =
        |address: &str| client.run(&["keys", "fetch", "-S", ssh.to_str().unwrap(), address]);
    let none = fetch("localhost:7");
    assert_eq!(none.status.code(), Some(6), "{}", said(&none));
    assert!(said(&none).contains("no key came through ssh"), "{}", said(&none));
    let daemon = Daemon::start(&client, &root, &keys);
    let fetched = fetch(&daemon.address);
    assert!(fetched.status.success(), "{}", said(&fetched));
    assert!(fetched.stdout.starts_with(daemon.address.as_bytes()));
    // The daemon is not new to the copy, which would have said so.
    let source = format!("hikyaku://{}/file", daemon.address);
    let copied = client.run(&["cp", &source, client.at("out").to_str().unwrap()]);
    assert!(copied.status.success() && !said(&copied).contains("is new"), "{}", said(&copied));
    // Another key in its place is told.
    fs::remove_file(client.at("server-state/hikyaku/server_key")).unwrap();
    drop(daemon);
    let daemon = Daemon::start(&client, &root, &keys);
    drop(daemon);
    let changed = client.run(&["keys", "list"]);
    let known = String::from_utf8(changed.stdout).unwrap();
    let address = known.split_whitespace().next().unwrap().to_owned();
    let document = client.run(&["keys", "list", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&document.stdout).unwrap();
    assert_eq!(
        (&document["format"], &document["keys"][0]["server"]),
        (&1.into(), &address.as_str().into())
    );
    assert!(known.contains(document["keys"][0]["fingerprint"].as_str().unwrap()), "{document}");
    let changed = fetch(&address);
    assert!(
        said(&changed).contains(&format!("try: hikyaku keys forget {address}")),
        "{}",
        said(&changed)
    );
}
