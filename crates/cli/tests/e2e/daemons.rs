//! Copies from daemons: `hikyaku serve --root` and `hikyaku cp hikyaku://HOST,HOST/PATH`.

use crate::common::daemon::{Client, Daemon, said};
use crate::common::proxy::{read_all, server};
use crate::common::{partials, wait_until};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Output, Stdio};
use std::thread;
use std::time::Duration;

/// Copies.
fn cp(client: &Client, arguments: &[&str]) -> Output {
    client.run(&[&["cp"], arguments].concat())
}

/// The line that an administrator adds for this client, as a refused copy shows it.
fn key_of(client: &Client) -> String {
    let nobody = client.at("nobody");
    fs::write(&nobody, "").unwrap();
    let daemon = Daemon::start(client, &client.at(""), &nobody);
    let refused = cp(client, &[&format!("hikyaku://{}/x", daemon.address), "out"]);
    assert_eq!(refused.status.code(), Some(6), "{}", said(&refused));
    let text = said(&refused);
    assert!(text.contains("is not authorised"), "{text}");
    let line = text.lines().find(|line| line.starts_with("try: ")).unwrap().to_owned();
    line.split_whitespace().find(|word| word.starts_with("ed25519:")).unwrap().to_owned()
}

#[test]
fn a_tree_comes_from_three_daemons() {
    let client = Client::new("three-daemons");
    let keys = client.at("keys");
    fs::write(&keys, format!("{} the client\n", key_of(&client))).unwrap();
    let mut all = Vec::new();
    let mut daemons = Vec::new();
    for n in 0..3 {
        let root = client.at(&format!("root{n}"));
        fs::create_dir_all(root.join("run7/deep")).unwrap();
        for k in 0..20 {
            let name = format!("run7/deep/{n} {k}");
            let bytes = vec![k as u8; [0, 10, 300_000, 2_500_000][k % 4]];
            fs::write(root.join(&name), &bytes).unwrap();
            all.push((name, bytes));
        }
        daemons.push(Daemon::start(&client, &root, &keys));
    }
    let hosts: Vec<_> = daemons.iter().map(|daemon| daemon.address.clone()).collect();
    let source = format!("hikyaku://{}/run7", hosts.join(","));
    let target = client.at("out");
    let target = target.to_str().unwrap();
    let flat = cp(&client, &[&source, target]);
    assert_eq!(flat.status.code(), Some(6), "{}", said(&flat));
    assert!(said(&flat).contains("-r was not given"), "{}", said(&flat));
    let copied = cp(&client, &["-r", &source, target]);
    assert_eq!(copied.status.code(), Some(0), "{}", said(&copied));
    for (name, bytes) in &all {
        let name = name.strip_prefix("run7/").unwrap();
        assert!(fs::read(client.at("out").join(name)).unwrap() == *bytes, "{name}");
    }
    // Into a directory that is there it keeps its name, and nothing is fetched twice.
    fs::create_dir(client.at("there")).unwrap();
    let there = client.at("there");
    for files in [60, 0] {
        let copied = cp(&client, &["-r", "--json", &source, there.to_str().unwrap()]);
        assert_eq!(copied.status.code(), Some(0), "{}", said(&copied));
        let events = String::from_utf8_lossy(&copied.stdout).into_owned();
        let end = events.lines().last().unwrap().to_owned();
        assert!(end.contains(&format!("\"files\":{files},")), "{end}");
        assert!(there.join("run7/deep/2 19").exists());
    }
    let one = cp(&client, &[&format!("{source}/deep/1 2"), client.at("one").to_str().unwrap()]);
    assert_eq!(one.status.code(), Some(0), "{}", said(&one));
    assert_eq!(fs::read(client.at("one")).unwrap().len(), 300_000);
}

#[test]
fn what_is_not_served_is_refused_in_words() {
    let client = Client::new("daemon-refusals");
    let keys = client.at("keys");
    fs::write(&keys, format!("{} the client\n", key_of(&client))).unwrap();
    let root = client.at("root");
    fs::create_dir(&root).unwrap();
    fs::write(client.at("secret"), "s").unwrap();
    std::os::unix::fs::symlink(client.at("secret"), root.join("link")).unwrap();
    let daemon = Daemon::start(&client, &root, &keys);
    let out = client.at("out");
    for (path, words) in
        [("nothing", "no such file"), ("../secret", "secret"), ("link/secret", "link")]
    {
        let source = format!("hikyaku://{}/{path}", daemon.address);
        let refused = cp(&client, &["-r", &source, out.to_str().unwrap()]);
        assert_eq!(refused.status.code(), Some(6), "{path}: {}", said(&refused));
        assert!(said(&refused).contains(words), "{path}: {}", said(&refused));
        assert!(!out.exists(), "{path}");
    }
    // A link that leads out of the root is left out, by its name.
    let copied =
        cp(&client, &["-r", &format!("hikyaku://{}/", daemon.address), out.to_str().unwrap()]);
    assert_eq!(copied.status.code(), Some(6), "{}", said(&copied));
    assert!(said(&copied).contains("link: a link leads out of"), "{}", said(&copied));
    assert!(out.is_dir() && fs::read_dir(&out).unwrap().next().is_none());
}

/// Passes each connection on to `target`, over TCP only.
fn forward_tcp(target: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for near in listener.incoming() {
            let (near, far) = (near.unwrap(), TcpStream::connect(&target).unwrap());
            for (from, to) in [(near.try_clone(), far.try_clone()), (Ok(far), Ok(near))] {
                let (mut from, mut to) = (from.unwrap(), to.unwrap());
                thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    address
}

#[test]
fn a_daemon_is_reached_over_tcp_where_no_udp_gets_through() {
    let client = Client::new("daemon-tcp");
    let keys = client.at("keys");
    fs::write(&keys, format!("{} the client\n", key_of(&client))).unwrap();
    let root = client.at("root");
    fs::create_dir_all(root.join("run7")).unwrap();
    let bytes: Vec<u8> = (0..9_000_000u32).map(|at| (at / 3) as u8).collect();
    fs::write(root.join("run7/large"), &bytes).unwrap();
    for n in 0..50 {
        fs::write(root.join(format!("run7/{n}")), format!("file {n}")).unwrap();
    }
    let daemon = Daemon::start(&client, &root, &keys);
    let forwarded = forward_tcp(daemon.address.clone());
    let source = format!("hikyaku://{}/run7", daemon.address);
    // UDP is used where it gets through. This comes first: once UDP was blocked on the way to an address, the connection
    // that is made first is used there.
    let copied = cp(&client, &["-r", &source, client.at("udp").to_str().unwrap()]);
    assert!(copied.status.success() && !said(&copied).contains("TCP"), "{}", said(&copied));
    for (name, address, flags) in [
        ("asked", daemon.address.clone(), &["-r", "--no-udp"][..]),
        ("found", forwarded.to_string(), &["-r"]),
    ] {
        let (source, target) = (format!("hikyaku://{address}/run7"), client.at(name));
        let copied = cp(&client, &[flags, &[&source, target.to_str().unwrap()]].concat());
        assert_eq!(copied.status.code(), Some(0), "{}", said(&copied));
        assert!(said(&copied).contains("is reached over TCP"), "{}", said(&copied));
        assert!(fs::read(target.join("large")).unwrap() == bytes, "{name}");
        assert_eq!(fs::read_dir(&target).unwrap().count(), 51);
    }
    // A key that is not in the list is refused over TCP too.
    fs::write(&keys, "").unwrap();
    let refused = cp(&client, &["-r", "--no-udp", &source, client.at("none").to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(6), "{}", said(&refused));
    assert!(said(&refused).contains("is not authorised"), "{}", said(&refused));
}

#[test]
fn the_status_of_daemons_is_a_line_each() {
    let client = Client::new("daemon-status");
    let keys = client.at("keys");
    fs::write(&keys, format!("{} the client\n", key_of(&client))).unwrap();
    let root = client.at("root");
    fs::create_dir(&root).unwrap();
    let daemon = Daemon::start(&client, &root, &keys);
    let good = client.run(&["status", &format!("hikyaku://{}", daemon.address)]);
    assert_eq!(good.status.code(), Some(0), "{}", said(&good));
    let table = String::from_utf8(good.stdout).unwrap();
    assert!(
        table.contains("UDP") && table.contains("  read  ") && table.contains("B\n"),
        "{table}"
    );
    // A port where nothing listens.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let of = format!("hikyaku://{},{free}", daemon.address);
    let some = client.run(&["status", "--json", "--no-udp", &of]);
    assert_eq!(some.status.code(), Some(5), "{}", said(&some));
    let document: serde_json::Value = serde_json::from_slice(&some.stdout).unwrap();
    let lines = document["servers"].as_array().unwrap();
    assert_eq!(lines[0]["answer"]["carrier"], "TCP");
    assert!(lines[0]["answer"]["free_bytes"].as_u64().unwrap() > 0, "{}", lines[0]);
    assert_eq!(lines[1]["server"], free.to_string());
    assert!(lines[1]["error"].as_str().is_some() && lines[1]["answer"].is_null(), "{}", lines[1]);
    // The kernel refuses a port on which no program listens.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (via, port) in
        [(None, "UDP and TCP port"), (Some("udp"), "UDP port"), (Some("tcp"), "TCP port")]
    {
        let mut words = vec!["cp".to_owned(), format!("hikyaku://{free}/x"), "out".to_owned()];
        words.extend(via.into_iter().flat_map(|via| ["--via".to_owned(), via.to_owned()]));
        let refused = client.command(&[]).args(&words).output().unwrap();
        assert_eq!(refused.status.code(), Some(5), "{}", said(&refused));
        let text = said(&refused);
        assert!(text.contains("no program listens on") && text.contains(port), "{text}");
    }
    let nonsense = client.run(&["status", "nonsense"]);
    assert_eq!(nonsense.status.code(), Some(1), "{}", said(&nonsense));
    assert!(said(&nonsense).contains("\ntry: hikyaku://nonsense"), "{}", said(&nonsense));
    // A key that is not in the list stays so.
    let stranger = Client::new("daemon-status-stranger");
    let refused = stranger.run(&["status", &format!("hikyaku://{}", daemon.address)]);
    assert_eq!(refused.status.code(), Some(6), "{}", said(&refused));
    for other in ["gfarm:///", "gfarm://gfmd:601/run", "s3://bucket"] {
        let refused = client.run(&["status", other]);
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        let text = said(&refused);
        assert!(text.contains("only daemons tell their state") && text.contains("try: "), "{text}");
    }
}

#[test]
fn options_and_settings_choose_the_carrier_and_the_family() {
    let client = Client::new("daemon-status-carrier");
    let keys = client.at("keys");
    fs::write(&keys, format!("{} the client\n", key_of(&client))).unwrap();
    let root = client.at("root");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("file"), "x").unwrap();
    let daemon = Daemon::start(&client, &root, &keys);
    let of = format!("hikyaku://{}", daemon.address);
    let config = client.at("config/hikyaku");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), "[host.\"127.0.0.1\"]\nudp = false\n").unwrap();
    let status = |home: &str, flags: &[&str]| {
        let mut command = client.command(&["status", "--json-lines", &of]);
        let asked = command.args(flags).env("XDG_CONFIG_HOME", client.at(home)).output().unwrap();
        let line = serde_json::from_slice(&asked.stdout).unwrap();
        (asked.status.code(), line)
    };
    for (home, flags, carrier) in [
        ("none", &[][..], "UDP"),
        ("none", &["--via", "tcp", "--pipes", "2"], "TCP"),
        ("none", &["--via", "udp", "-4"], "UDP"),
        ("config", &[], "TCP"),
        ("config", &["--via", "udp"], "UDP"),
    ] {
        let (code, line): (_, serde_json::Value) = status(home, flags);
        assert_eq!(
            (code, &line["answer"]["carrier"]),
            (Some(0), &carrier.into()),
            "{flags:?} {line}"
        );
    }
    for (family, code) in [("-4", 0), ("-6", 6)] {
        let words = ["cp", family, &format!("{of}/file"), "."];
        let copied = client.command(&words).current_dir(client.at("")).output().unwrap();
        assert_eq!(copied.status.code(), Some(code), "{family}: {}", said(&copied));
        assert_eq!(said(&copied).contains("no IPv6 address"), code == 6, "{}", said(&copied));
    }
    let (code, line) = status("none", &["-6"]);
    assert_eq!((code, &line["error"]), (Some(6), &"no IPv6 address".into()), "{line}");
}

#[test]
fn patterns_match_the_names_of_all_daemons() {
    let client = Client::new("daemon-patterns");
    let keys = client.authorized("keys", "");
    let (one, two) = (client.at("one"), client.at("two"));
    for (root, names) in [(&one, ["f1", "[a]", "d1/x"]), (&two, ["f2", "f1", "d2/y"])] {
        for name in names {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, name).unwrap();
            let time = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
            fs::File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
        }
    }
    let (first, second) =
        (Daemon::start(&client, &one, &keys), Daemon::start(&client, &two, &keys));
    let at = |path: &str| format!("hikyaku://{},{}/{path}", first.address, second.address);
    let copied = |pattern: &str, flags: &[&str]| {
        let out = client.at("out");
        let _ = fs::remove_dir_all(&out);
        fs::create_dir(&out).unwrap();
        let source = at(pattern);
        let words = [flags, &[source.as_str(), out.to_str().unwrap()][..]].concat();
        let copy = cp(&client, &words);
        assert_eq!(copy.status.code(), Some(0), "{pattern}: {}", said(&copy));
        let mut names: Vec<String> = (fs::read_dir(&out).unwrap())
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(copied("f*", &[]), ["f1", "f2"]);
    assert_eq!(copied("[f]1", &[]), ["f1"]);
    assert_eq!(copied("[a]", &[]), ["[a]"], "a name that looks like a pattern");
    assert_eq!(copied("d*", &["-r"]), ["d1", "d2"]);
    assert_eq!(copied("d?/*", &[]), ["x", "y"]);
    let out = client.at("new");
    let none = cp(&client, &[&at("g*"), out.to_str().unwrap()]);
    assert_eq!(none.status.code(), Some(6), "{}", said(&none));
    assert!(said(&none).contains("no such file") && !out.exists(), "{}", said(&none));
}

#[test]
fn a_key_that_is_taken_from_the_list_loses_its_sessions() {
    let client = Client::new("revoked");
    let (root, keys) = (client.at("root"), client.authorized("keys", ""));
    fs::create_dir(&root).unwrap();
    // A minute of copying.
    fs::write(root.join("big"), vec![7; 8_000_000]).unwrap();
    let daemon = Daemon::start(&client, &root, &keys);
    let source = format!("hikyaku://{}/big", daemon.address);
    let target = client.at("out").display().to_string();
    let words = ["cp", "--via", "tcp", "-l", "1m", &source, &target];
    let copy = client.command(&words).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the copy", || !partials(&client.at("")).is_empty());
    fs::write(&keys, "# nobody\n").unwrap();
    let ended = copy.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(5), "{}", said(&ended));
    assert!(said(&ended).contains("every server that has it is gone"), "{}", said(&ended));
    assert!(!client.at("out").exists());
}

#[test]
fn a_service_of_another_kind_at_the_port_is_named() {
    let client = Client::new("daemons-other");
    let services: [(&'static [u8], &str); 3] = [
        (b"SSH-2.0-OpenSSH_9.9\r\n", "an SSH server"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "a web server"),
        (b"\x15\x03\x03\x00\x02\x02\x28", "a TLS server of another kind"),
    ];
    for (greeting, name) in services {
        let port = server(move |mut socket: TcpStream| {
            let _ = socket.write_all(greeting);
            read_all(&mut socket);
        });
        let target = client.at("here").display().to_string();
        for via in ["auto", "tcp"] {
            let far = format!("hikyaku://127.0.0.1:{port}/file");
            let output = client.run(&["cp", "--via", via, &far, &target]);
            let said = said(&output);
            assert_eq!(output.status.code(), Some(6), "{via}: {said}");
            assert!(said.contains(name) && said.contains("\ntry: "), "{via}: {said}");
        }
    }
}

#[test]
fn settings_that_have_no_effect_on_copies_with_daemons_are_noted() {
    let client = Client::new("daemons-settings");
    let (root, keys) = (client.at("root"), client.authorized("keys", ""));
    fs::create_dir_all(&root).unwrap();
    fs::create_dir_all(client.at("config/hikyaku")).unwrap();
    let settings = "[default]\npolicy = \"scavenger\"\ncipher = \"aes128gcm\"\n";
    fs::write(client.at("config/hikyaku/config.toml"), settings).unwrap();
    fs::write(root.join("file"), "text").unwrap();
    let daemon = Daemon::start_with(&client, &root, &keys, &["--writable"]);
    let (far, near) = (format!("hikyaku://{}/file", daemon.address), client.at("here"));
    let near = near.to_str().unwrap();
    for (ends, way) in [([&*far, near], "from"), ([near, &*far], "to")] {
        for quiet in [None, Some("-q")] {
            let mut copy = client.command(&["cp"]);
            copy.env("XDG_CONFIG_HOME", client.at("config")).args(quiet).args(ends);
            let output = copy.output().unwrap();
            let said = said(&output);
            assert!(output.status.success(), "{said}");
            for name in ["policy", "cipher"] {
                let note =
                    format!("'{name}' of the settings has no effect on a copy {way} daemons");
                assert_eq!(said.contains(&note), quiet.is_none(), "{said}");
            }
        }
    }
}

#[test]
fn every_command_says_what_to_do_about_a_daemon_that_is_away() {
    let client = Client::new("daemons-away");
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("hikyaku://{nobody}/");
    let here = client.at("here").display().to_string();
    fs::create_dir(&here).unwrap();
    for words in [
        &["cp", "-r", &url, &here][..],
        &["cp", "-r", &here, &url],
        &["mount", "--foreground", &url, &here],
        &["proxy", "-D", "0", &url],
        &["view", &url],
    ] {
        let ended = client.run(words);
        assert_eq!(ended.status.code(), Some(5), "{words:?}: {}", said(&ended));
        assert!(said(&ended).contains("\ntry: "), "{words:?}: {}", said(&ended));
    }
}

#[test]
fn the_same_copy_a_second_time_says_at_once_that_it_does_not_continue() {
    let client = Client::new("daemon-twice");
    let (root, keys) = (client.at("root"), client.authorized("keys", ""));
    fs::create_dir(&root).unwrap();
    fs::write(root.join("big"), vec![7; 40_000_000]).unwrap();
    let daemon = Daemon::start(&client, &root, &keys);
    let source = format!("hikyaku://{}/big", daemon.address);
    let target = client.at("out").display().to_string();
    let slow = ["cp", "-l", "1m", &source, &target];
    let mut first = client.command(&slow).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the first copy", || !partials(&client.at("")).is_empty());
    let second = cp(&client, &[&source, &target]);
    assert_eq!(second.status.code(), Some(0), "{}", said(&second));
    assert!(said(&second).contains("the same copy is under way"), "{}", said(&second));
    assert!(first.try_wait().unwrap().is_none(), "the first one has hardly begun");
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn a_copy_whose_daemon_is_away_is_tried_again_as_long_as_its_user_says() {
    let client = Client::new("daemon-retried");
    let (root, keys) = (client.at("root"), client.authorized("keys", ""));
    fs::create_dir(&root).unwrap();
    let content = crate::common::random(3, 40_000_000);
    fs::write(root.join("big"), &content).unwrap();
    let mut daemon = Daemon::start(&client, &root, &keys);
    let source = format!("hikyaku://{}/big", daemon.address);
    let options = ["cp", "-l", "80m", "--timeout", "5s", "--retry-for", "6s", &source, "out"];
    let mut command = client.command(&options);
    let mut copy = command.current_dir(client.at("")).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the copy", || !partials(&client.at("")).is_empty());
    daemon.kill();
    let mut lines = BufReader::new(copy.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("trying again in ")), "the copy has ended");
    let options = ["--root", root.to_str().unwrap()];
    let _daemon = Daemon::at(&daemon.address, &client, &options, &keys);
    let rest: Vec<String> = lines.collect();
    assert!(copy.wait().unwrap().success(), "{rest:?}");
    assert!(fs::read(client.at("out")).unwrap() == content, "{rest:?}");
}

#[test]
fn several_sources_have_one_sum() {
    let client = Client::new("daemon-sum");
    let (root, keys) = (client.at("root"), client.authorized("keys", ""));
    fs::create_dir(&root).unwrap();
    fs::create_dir(client.at("out")).unwrap();
    fs::write(root.join("far"), vec![7; 1000]).unwrap();
    fs::write(client.at("here"), vec![7; 10]).unwrap();
    let daemon = Daemon::start(&client, &root, &keys);
    let source = format!("hikyaku://{}/far", daemon.address);
    let (here, out) = (client.at("here"), client.at("out"));
    let copy =
        cp(&client, &["--json-lines", here.to_str().unwrap(), &source, out.to_str().unwrap()]);
    assert_eq!(copy.status.code(), Some(0), "{}", said(&copy));
    let lines = String::from_utf8(copy.stdout).unwrap();
    let events: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let counted = |event: &serde_json::Value| event["total_bytes"].as_u64();
    let totals: Vec<u64> = events.iter().filter_map(counted).collect();
    assert!(totals.is_sorted() && totals.last() == Some(&1010), "{lines}");
}
