//! A daemon as the far gateway of `hikyaku proxy`: it forwards to what its list and the client's key allow.

use crate::common::daemon::{Client, Daemon, said};
use crate::common::proxy::{Proxy, echo, own_address, read_all, server};
use crate::common::{random, wait_until};
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::thread;

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
    // One that is lost before its answer is reset.
    while !answer.ends_with(b"\r\n\r\n") && socket.read(&mut byte).is_ok_and(|length| length > 0) {
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
fn a_key_has_so_many_connections_and_no_more() {
    let client = Client::new("forward-share");
    let target = format!("127.0.0.1:{}", server(echo));
    authorize(&client, "max-flows=2");
    let daemon = Daemon::with(&client, &["--allow", &target], &client.at("keys"));
    // They are counted over all sessions of the key.
    let start = || Proxy::of(&mut proxy(&client, &daemon, &["--http", "127.0.0.1:0"]));
    let proxies = [start(), start()];
    let open = proxies.each_ref().map(|proxy| connect(proxy, &target));
    for (_, answer) in &open {
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let (_, answer) = connect(&proxies[0], &target);
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("(max-flows=)"), "{answer}");
    drop(open);
    wait_until("room for another one", || {
        connect(&proxies[0], &target).1.starts_with("HTTP/1.1 200")
    });
}

#[test]
fn a_lost_daemon_is_connected_again_and_meanwhile_programs_are_told_or_go_direct() {
    let client = Client::new("forward-again");
    // Direct connections do not reach loopback addresses.
    let Some(own) = own_address() else {
        eprintln!("\n*** SKIPPED, because this machine has no address but loopback ***\n");
        return;
    };
    let listener = TcpListener::bind((own, 0)).unwrap();
    let target = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || echo(socket));
        }
    });
    authorize(&client, "");
    let allow = ["--allow", "*:*"];
    let mut daemon = Daemon::with(&client, &allow, &client.at("keys"));
    let start = |more: &[&str]| {
        let options = [&["--http", "127.0.0.1:0", "--timeout", "5s"], more].concat();
        let mut command = proxy(&client, &daemon, &options);
        Proxy::of(command.stderr(Stdio::null()))
    };
    let (refuses, goes_direct) = (start(&[]), start(&["--direct-when-down"]));
    let (mut open, answer) = connect(&refuses, &target);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    daemon.kill();
    // Never a clean end.
    assert_eq!(read_all(&mut open), (Vec::new(), Some(ErrorKind::ConnectionReset)));
    wait_until("the refusal", || {
        let (_, answer) = connect(&refuses, &target);
        answer.starts_with("HTTP/1.1 502") && answer.contains("is lost; it is made again")
    });
    wait_until("a direct connection", || {
        connect(&goes_direct, &target).1.starts_with("HTTP/1.1 200")
    });
    let address = daemon.address.clone();
    let _again = Daemon::at(&address, &client, &allow, &client.at("keys"));
    for proxy in [&refuses, &goes_direct] {
        wait_until("the next connection", || {
            let (mut socket, answer) = connect(proxy, &target);
            let is_there = answer.starts_with("HTTP/1.1 200");
            if is_there {
                socket.write_all(b"again").unwrap();
                socket.shutdown(Shutdown::Write).unwrap();
                assert_eq!(read_all(&mut socket), (b"again".to_vec(), None));
            }
            is_there
        });
    }
}

#[test]
fn a_daemon_listens_for_a_client_only_where_its_key_allows_it() {
    let client = Client::new("forward-listen");
    let port = server(echo);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let back = format!("127.0.0.1:{free}:127.0.0.1:{port}");
    for (options, is_allowed) in [("", false), (&*format!("listen=127.0.0.1:{free}"), true)] {
        authorize(&client, options);
        let daemon = Daemon::with(&client, &["--allow", "192.0.2.1:80"], &client.at("keys"));
        let mut command = proxy(&client, &daemon, &["-R", &back]);
        if !is_allowed {
            let output = command.output().unwrap();
            let said = said(&output);
            assert_eq!(output.status.code(), Some(WILL_FAIL), "{said}");
            assert!(said.contains("does not listen at this port for this key (listen=)"), "{said}");
            continue;
        }
        let mut gateway = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(gateway.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut socket = TcpStream::connect(("127.0.0.1", free)).unwrap();
        socket.write_all(b"back").unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        let reply = read_all(&mut socket);
        gateway.kill().unwrap();
        gateway.wait().unwrap();
        assert_eq!(reply, (b"back".to_vec(), None), "{line}");
        // A Unix socket of the daemon's host is not reached, whatever is allowed.
        let to_socket = format!("127.0.0.1:0:{}", client.at("any.sock").display());
        let proxy = Proxy::of(&mut proxy(&client, &daemon, &["-L", &to_socket]));
        let end = read_all(&mut proxy.connect());
        assert_eq!(end, (Vec::new(), Some(ErrorKind::ConnectionReset)));
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
    assert!(said.contains("is not authorised") && said.contains("ed25519:"), "{said}");
}

#[test]
fn a_daemon_has_something_to_serve() {
    let client = Client::new("forward-nothing");
    for (words, wanted) in [
        (vec!["serve", "--listen", "127.0.0.1:0"], "missing: "),
        (vec!["serve", "--allow", "web"], "'web' is not HOST:PORTS"),
    ] {
        let output = client.run(&words);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(wanted), "{words:?}: {}", said(&output));
    }
}

/// A user with a home of its own, who clicks on links.
struct Clicks<'a>(&'a Client);

impl Clicks<'_> {
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("HOME", self.0.at("home")).env("XDG_STATE_HOME", self.0.at("state"));
        for variable in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"] {
            command.env_remove(variable);
        }
        command
    }

    fn web(&self, words: &[&str]) -> Output {
        let mut command = self.command(env!("CARGO_BIN_EXE_hikyaku"));
        command.arg("web").args(words).stdin(Stdio::null()).output().unwrap()
    }

    /// Follows a link in a terminal, and answers this. Returns the exit code and what was printed.
    fn click(&self, link: &str, answer: &str) -> (Option<i32>, String) {
        let mut script = self.command("script");
        let words = format!("{} web '{link}'", env!("CARGO_BIN_EXE_hikyaku"));
        script.args(["-qefc", &words, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = script.spawn().expect("script of util-linux is installed");
        child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

#[test]
fn a_link_is_downloaded_through_a_gateway_that_the_user_knows_and_after_a_question() {
    let client = Client::new("forward-link");
    let clicks = Clicks(&client);
    let home = client.at("home");
    let wanted = random(1, 300_000);
    let body = wanted.clone();
    let port = server(move |mut socket| {
        let mut reader = BufReader::new(socket.try_clone().unwrap());
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|length| length > 2) {
            line.clear();
        }
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let _ = socket.write_all(&[head.as_bytes(), &body].concat());
    });
    authorize(&client, "");
    let allow = format!("127.0.0.1:{port}");
    let daemon = Daemon::with(&client, &["--allow", &allow], &client.at("keys"));
    let gateway = format!("hikyaku://{}", daemon.address);
    let link = format!("{gateway}?url=http%3A%2F%2F127.0.0.1%3A{port}%2Frun7.dat");
    // Another program's defaults, which stay.
    let (list, entry) = (
        home.join(".config/mimeapps.list"),
        home.join(".local/share/applications/hikyaku-link.desktop"),
    );
    let of_others = "[Default Applications]\ntext/html=browser.desktop\n";
    fs::create_dir_all(list.parent().unwrap()).unwrap();
    fs::write(&list, of_others).unwrap();
    let (code, text) = clicks.click(&link, "y\n");
    assert!(
        code == Some(WILL_FAIL) && text.contains("which you have not named"),
        "{code:?} {text}"
    );
    assert!(clicks.web(&[&gateway, "--install-handler"]).status.success());
    assert!(clicks.web(&[&gateway, "--install-handler"]).status.success());
    let added = "x-scheme-handler/hikyaku=hikyaku-link.desktop;\n";
    assert_eq!(
        fs::read_to_string(&list).unwrap(),
        of_others.replace("text", &format!("{added}text"))
    );
    let text = fs::read_to_string(&entry).unwrap();
    assert!(
        text.contains(&format!(
            "\nExec={} web --in-own-window %u\n",
            env!("CARGO_BIN_EXE_hikyaku")
        ))
    );
    // Nothing is fetched: another gateway, other things than files of the web, no answer, nobody to ask.
    let evil = link.replace("127.0.0.1:", "127.0.0.2:");
    for (link, answer, wanted) in [
        (evil.as_str(), "y\n", "which you have not named"),
        (&format!("{gateway}?url=file:///etc/passwd"), "y\n", "is not an http:// or https://"),
        (&format!("{link}&output=/tmp/x"), "y\n", "a parameter other than url="),
        (&link, "n\n", "nothing is downloaded"),
        (&link, "", "nothing is downloaded"),
    ] {
        let (code, text) = clicks.click(link, answer);
        assert!(text.contains(wanted) && !text.contains("sudo"), "{link}: {code:?} {text}");
    }
    assert!(said(&clicks.web(&[&link])).contains("you cannot be asked"));
    assert!(!home.join("Downloads").exists());
    let (code, text) = clicks.click(&link, "y\n");
    assert!(text.contains(&format!("from:    127.0.0.1:{port}")), "{text}");
    assert_eq!(code, Some(0), "{text}");
    let file = home.join("Downloads/run7.dat");
    assert!(fs::read(&file).unwrap() == wanted);
    // A file that exists is not replaced.
    fs::write(&file, "mine").unwrap();
    assert_eq!(clicks.click(&link, "y\n").0, Some(WILL_FAIL));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert!(clicks.web(&["--remove-handler"]).status.success());
    assert_eq!(fs::read_to_string(&list).unwrap(), of_others);
    assert!(!entry.exists() && clicks.click(&link, "y\n").1.contains("which you have not named"));
    // Another program has such links.
    let taken = format!("{of_others}x-scheme-handler/hikyaku=other.desktop\n");
    fs::write(&list, &taken).unwrap();
    let output = clicks.web(&[&gateway, "--install-handler"]);
    assert!(said(&output).contains("other.desktop has hikyaku: links already"), "{output:?}");
    assert_eq!(output.status.code(), Some(WILL_FAIL));
    assert!(fs::read_to_string(&list).unwrap() == taken && !entry.exists());
}
