//! A daemon as the far gateway of `hikyaku proxy`: it forwards to what its list and the client's key allow.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

mod common;

use common::daemon::{Client, Daemon, said};
use common::proxy::{Proxy, echo, read_all, server};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;

const WILL_FAIL: i32 = 6;

/// Writes the list of keys, with these options before the key of the client.
fn authorize(client: &Client, options: &str) {
    client.run(&["keys", "new"]);
    let shown = client.run(&["keys", "show"]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let key = text.split_whitespace().find(|word| word.starts_with("ed25519:")).unwrap();
    fs::write(client.at("keys"), format!("{options} {key}\n")).unwrap();
}

/// `hikyaku proxy` to this daemon.
fn proxy(client: &Client, daemon: &Daemon, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
    command.env("XDG_STATE_HOME", client.at("state")).env("XDG_CACHE_HOME", client.at("cache"));
    command.args(["proxy", &format!("hikyaku://{}", daemon.address)]).args(options);
    command
}

/// What the HTTP proxy answers to CONNECT, up to the empty line or the end.
fn connect(proxy: &Proxy, target: &str) -> (TcpStream, String) {
    let mut socket = TcpStream::connect(proxy.ports[0]).unwrap();
    write!(socket, "CONNECT {target} HTTP/1.1\r\n\r\n").unwrap();
    let (mut answer, mut byte) = (Vec::new(), [0]);
    while !answer.ends_with(b"\r\n\r\n") && socket.read(&mut byte).unwrap() > 0 {
        answer.extend(byte);
    }
    let mut answer = String::from_utf8(answer).unwrap();
    if !answer.starts_with("HTTP/1.1 200") {
        answer.push_str(&String::from_utf8(read_all(&mut socket).0).unwrap());
    }
    (socket, answer)
}

#[test]
fn a_daemon_forwards_to_what_is_allowed_and_to_nothing_else() {
    let client = Client::new("forward");
    let (one, two) = (server(echo), server(echo));
    authorize(&client, "");
    let allow = format!("127.0.0.1:{one}");
    let daemon = Daemon::with(&client, &["--allow", &allow], &client.at("keys"));
    for carrier in [None, Some("--no-udp")] {
        let options = ["--http", "127.0.0.1:0"].into_iter().chain(carrier).collect::<Vec<_>>();
        let proxy = Proxy::of(&mut proxy(&client, &daemon, &options));
        let (mut socket, answer) = connect(&proxy, &format!("127.0.0.1:{one}"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{carrier:?} {answer}");
        socket.write_all(&[7; 300_000]).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        assert!(read_all(&mut socket) == (vec![7; 300_000], None), "{carrier:?}");
        for target in
            [format!("127.0.0.1:{two}"), "192.0.2.1:80".into(), format!("localhost:{two}")]
        {
            let (_, answer) = connect(&proxy, &target);
            let wanted = format!("the far gateway does not forward to {target} for this key");
            assert!(answer.starts_with("HTTP/1.1 403") && answer.contains(&wanted), "{answer}");
        }
        // No list can allow this.
        let (_, answer) = connect(&proxy, "169.254.169.254:80");
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("link-local"), "{answer}");
    }
}

#[test]
fn a_key_reaches_less_than_the_daemon_allows() {
    let client = Client::new("forward-key");
    let (one, two) = (server(echo), server(echo));
    authorize(&client, &format!("forward=127.0.0.1:{two}"));
    let daemon = Daemon::with(&client, &["--allow", "127.0.0.0/8:*"], &client.at("keys"));
    let proxy = Proxy::of(&mut proxy(&client, &daemon, &["--http", "127.0.0.1:0"]));
    for (port, status) in [(two, "HTTP/1.1 200"), (one, "HTTP/1.1 403")] {
        let (_, answer) = connect(&proxy, &format!("127.0.0.1:{port}"));
        assert!(answer.starts_with(status), "{answer}");
    }
}

#[test]
fn without_a_list_nothing_is_forwarded() {
    let client = Client::new("forward-not");
    let root = client.at("root");
    fs::create_dir(&root).unwrap();
    let root = root.to_str().unwrap();
    for (options, key, wanted) in [
        (vec!["--root", root], "", "does not offer 'forward': it offers store"),
        (vec!["--root", root], "forward=*:*", "does not offer 'forward': it offers store"),
        (vec!["--root", root, "--allow", "*:*"], "no-forward", "it offers store"),
    ] {
        authorize(&client, key);
        let daemon = Daemon::with(&client, &options, &client.at("keys"));
        let output = proxy(&client, &daemon, &["-D", "127.0.0.1:0"]).output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(WILL_FAIL), "{said}");
        assert!(said.contains(wanted) && said.contains("try: hikyaku serve --allow"), "{said}");
    }
    fs::write(client.at("keys"), "").unwrap();
    let daemon = Daemon::with(&client, &["--allow", "*:*"], &client.at("keys"));
    let output = proxy(&client, &daemon, &["-D", "127.0.0.1:0"]).output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(WILL_FAIL), "{said}");
    assert!(said.contains("is not authorised here") && said.contains("ed25519:"), "{said}");
}

#[test]
fn a_daemon_has_something_to_serve() {
    let client = Client::new("forward-nothing");
    for (words, wanted) in [
        (vec!["serve", "--listen", "127.0.0.1:0"], "required"),
        (vec!["serve", "--allow", "web"], "'web' is not HOST:PORTS"),
    ] {
        let output = client.run(&words);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(wanted), "{words:?}: {}", said(&output));
    }
}
