//! What a gateway shows: its page, lines of JSON, `hikyaku proxy status`, and the proxy configuration for a browser.

use crate::common::proxy::{Page, Proxy, server};
use crate::common::{Sshd, slow_disk, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_hikyaku");
const HTTP: [&str; 3] = ["--http", "127.0.0.1:0", "--far-loopback"];

/// Asks for an address through the proxy, and reads the head of the response.
fn ask(proxy: &Proxy, url: &str) -> TcpStream {
    let mut socket = proxy.connect();
    write!(socket, "GET {url} HTTP/1.1\r\n\r\n").unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    socket
}

/// Sends pieces of this size with a pause between them, for ever.
fn endless(size: usize, pause: Duration) -> u16 {
    server(move |mut socket| {
        let piece = vec![7; size];
        let begun =
            socket.read(&mut [0; 1000]).and_then(|_| socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n"));
        begun.unwrap();
        while socket.write_all(&piece).is_ok() {
            thread::sleep(pause);
        }
    })
}

/// The flow to an address.
fn flow(status: &Value, url: &str) -> Option<Value> {
    let flows = status["flows"].as_array()?;
    flows.iter().find(|flow| flow["target"] == url).cloned()
}

#[test]
fn a_download_is_shown_with_its_buffers_and_what_limits_it() {
    let sshd = Sshd::start("page-limits");
    let mut proxy = Proxy::start(&sshd, &HTTP);
    let page = proxy.page();
    let fast = format!("http://127.0.0.1:{}/fast", endless(1 << 20, Duration::ZERO));
    let slow = format!("http://127.0.0.1:{}/slow", endless(50_000, Duration::from_millis(20)));
    // Nobody reads this one: the program is the limit, and its socket is full.
    let unread = ask(&proxy, &fast);
    wait_until("the program as the limit", || {
        let status = page.status();
        let Some(flow) = flow(&status, &fast) else { return false };
        let socket = &flow["socket"];
        flow["limited_by"] == "program"
            && socket["unread_bytes"].as_u64() > Some(100_000)
            && status["transport"]["unread_bytes"].as_u64() > Some(0)
    });
    let status = page.status();
    let waits = status["transport"]["unread_bytes"].as_u64().unwrap();
    assert!(
        waits > 0 && waits <= status["transport"]["window_bytes"].as_u64().unwrap(),
        "{status}"
    );
    assert_eq!((&status["far"], &status["carrier"]), (&"far".into(), &"udp".into()));
    drop(unread);
    // This one is read by a program that writes a file, faster than the server sends.
    let mut socket = ask(&proxy, &slow);
    let path = sshd.at("copy.part");
    let mut file = File::create(&path).unwrap();
    thread::spawn(move || std::io::copy(&mut socket, &mut file));
    let mut last = None;
    wait_until("the server as the limit", || {
        last = flow(&page.status(), &slow);
        last.as_ref().is_some_and(|flow| flow["limited_by"] == "far_tcp" && !flow["file"].is_null())
    });
    let found = last.unwrap();
    let size = found["file"]["size_bytes"].as_u64().unwrap();
    assert_eq!(found["file"]["name"], "copy.part");
    assert!(size >= 4_000_000 && size <= found["received_bytes"].as_u64().unwrap(), "{found}");
    assert!(found["received_bits_per_second"].as_f64() > Some(1e6), "{found}");
    wait_until("the end of the first one", || {
        let over = page.status()["ended"].clone();
        over[0]["target"] == fast.as_str() && over[0]["end"] == "reset"
    });
}

/// A program that reads a download and does this with each piece, until it is told to end.
struct Reader(Arc<AtomicBool>, Option<JoinHandle<()>>);

impl Reader {
    fn start(mut socket: TcpStream, mut work: impl FnMut(&[u8]) + Send + 'static) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let told = over.clone();
        let run = move || {
            let mut piece = vec![0; 64 << 10];
            while !told.load(Ordering::Relaxed) {
                let Ok(length) = socket.read(&mut piece) else { return };
                work(&piece[..length]);
            }
        };
        Self(over, Some(thread::spawn(run)))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        let _ = self.1.take().map(JoinHandle::join);
    }
}

#[test]
fn a_slow_disk_and_a_busy_processor_are_told_from_a_program_that_does_not_read() {
    if !rustix::process::geteuid().is_root() || !std::path::Path::new("/dev/fuse").exists() {
        eprintln!("\n*** SKIPPED, because this needs root and FUSE ***\n");
        return;
    }
    let sshd = Sshd::start("page-slow-disk");
    let mut proxy = Proxy::start(&sshd, &HTTP);
    let page = proxy.page();
    let port = endless(1 << 20, Duration::ZERO);
    let limited_by = |url: &str, wanted: &str| {
        wait_until(wanted, || {
            flow(&page.status(), url).is_some_and(|flow| flow["limited_by"] == wanted)
        });
    };
    // The file is on a disk that writes 16 MB a second.
    let (at, url) = (sshd.at("disk"), format!("http://127.0.0.1:{port}/disk"));
    std::fs::create_dir(&at).unwrap();
    let disk = slow_disk::mount(&at, 16e6);
    let mut file = File::options().write(true).open(at.join(slow_disk::FILE)).unwrap();
    let reader = Reader::start(ask(&proxy, &url), move |piece| file.write_all(piece).unwrap());
    limited_by(&url, "disk");
    drop(reader);
    drop(disk);
    // This one computes for some time with each piece, and its disk is fast.
    let url = format!("http://127.0.0.1:{port}/processor");
    let mut file = File::create(sshd.at("busy.part")).unwrap();
    let reader = Reader::start(ask(&proxy, &url), move |piece| {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(4) {}
        file.write_all(piece).unwrap();
    });
    limited_by(&url, "processor");
    drop(reader);
}

#[test]
fn the_page_is_only_for_those_who_know_its_address() {
    let sshd = Sshd::start("page-token");
    let mut proxy = Proxy::start(&sshd, &HTTP);
    let page = proxy.page();
    assert_eq!(page.host, proxy.ports[0].to_string());
    let good = page.get(&page.path, "");
    assert!(good.starts_with("HTTP/1.1 200") && good.contains("<!doctype html>"), "{good}");
    for asset in ["status.css", "status.js", "status"] {
        let answer = page.get(&format!("{}{asset}", page.path), "");
        assert!(answer.starts_with("HTTP/1.1 200"), "{asset}: {answer}");
    }
    for (path, headers) in [
        ("/", ""),
        ("/status", ""),
        ("/00000000000000000000000000000000/", ""),
        (page.path.as_str(), "Sec-Fetch-Site: cross-site\r\n"),
        (page.path.as_str(), "Host: evil.example\r\n"),
    ] {
        let answer = page.get(path, headers);
        assert!(answer.starts_with("HTTP/1.1 400"), "{path} {headers}: {answer}");
    }
}

#[test]
fn status_is_told_to_other_programs() {
    let sshd = Sshd::start("page-status");
    let port = endless(50_000, Duration::from_millis(20));
    let url = format!("http://127.0.0.1:{port}/");
    let status = |format: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(["proxy", "status"]).args(format).env("XDG_RUNTIME_DIR", sshd.at("run"));
        let output = command.output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(status(&[]), "no gateway of this user runs\n");
    let proxy = Proxy::of(sshd.proxy(&HTTP).env("XDG_RUNTIME_DIR", sshd.at("run")));
    let _socket = ask(&proxy, &url);
    let text = status(&[]);
    assert!(text.contains("far gateway far (udp, ") && text.contains(&url), "{text}");
    let document: Value = serde_json::from_str(&status(&["--json"])).unwrap();
    let line: Value = serde_json::from_str(&status(&["--json-lines"])).unwrap();
    assert_eq!((&line["process"], &line["far"]), (&proxy.child.id().into(), &"far".into()));
    assert_eq!(document["gateways"][0]["process"], line["process"]);
    assert!(flow(&line, &url).is_some(), "{line}");
    proxy.end(rustix::process::Signal::INT);
    assert_eq!(status(&["--json-lines"]), "");
    assert_eq!(status(&["--json"]), "{\"format\":1,\"gateways\":[]}\n");
}

#[test]
fn json_tells_where_it_listens_and_lines_of_it_what_passes() {
    let sshd = Sshd::start("page-json");
    let mut command = sshd.proxy(&HTTP);
    let mut child = command.arg("--json-lines").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let events: Vec<Value> =
        lines.take(4).map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["listening", "page", "status", "status"]);
    let page = Page::at(events[1]["address"].as_str().unwrap());
    assert_eq!(events[0]["address"], page.host);
    assert_eq!(events[3]["far"], "far");
    child.kill().unwrap();
    child.wait().unwrap();
    let mut child = sshd.proxy(&HTTP).arg("--json").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let document: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&document["format"], &document["process"]), (&1.into(), &child.id().into()));
    let page = Page::at(document["page"].as_str().unwrap());
    assert_eq!(document["listeners"][0]["address"], page.host);
}

#[test]
fn programs_of_other_users_are_let_in_only_with_a_flag() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("\n*** SKIPPED, because only root can be another user ***\n");
        return;
    }
    const NOBODY: u32 = 65_534;
    let sshd = Sshd::start("page-users");
    for (option, wanted) in [(None, false), (Some("--any-user"), true)] {
        let options: Vec<&str> = HTTP.into_iter().chain(option).collect();
        let proxy = Proxy::start(&sshd, &options);
        let mut curl = Command::new("curl");
        curl.args(["-s", &format!("http://{}/", proxy.ports[0])]).current_dir("/");
        let ours = curl.output().expect("curl is installed");
        assert!(String::from_utf8_lossy(&ours.stdout).contains("this is an HTTP proxy"));
        let theirs = curl.uid(NOBODY).gid(NOBODY).output().unwrap();
        assert_eq!(theirs.stdout == ours.stdout, wanted, "{option:?} {theirs:?}");
    }
}

/// A gateway for the user's own browser; the file with its proxy configuration, and the address of this run.
fn web(sshd: &Sshd, port: &str) -> (Child, [String; 2]) {
    let mut command = sshd.web(&["--site", "data.example", "--port", port]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut addresses =
        lines.map(|line| line.trim().to_owned()).filter(|line| line.ends_with(".pac"));
    let (file, address) = (addresses.next().unwrap(), addresses.next().unwrap());
    (child, [file.strip_prefix("file://").unwrap().to_owned(), address])
}

#[test]
fn a_program_is_told_where_a_gateway_for_a_browser_listens_and_what_it_has_carried() {
    let sshd = Sshd::start("page-json");
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let mut command = sshd.web(&["--site", "data.example", "--port", &port, "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap()).unwrap();
    let begun = next();
    assert_eq!(begun["format"], 1);
    assert_eq!(begun["listeners"][0]["address"], format!("127.0.0.1:{port}"), "{begun}");
    assert!(begun["configuration"].as_str().unwrap().ends_with(".pac"), "{begun}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let ended = next();
    assert!(ended["seconds"].as_f64().unwrap() > 0.0 && ended["connections"] == 0, "{ended}");
    child.wait().unwrap();
}

#[test]
fn the_proxy_configuration_is_the_same_file_every_time() {
    let sshd = Sshd::start("page-pac");
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    let output = sshd.web(&["--site", "data.example", "--port", &port]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("try: another port"), "{said}");
    drop(free);
    let mut addresses = Vec::new();
    for _ in 0..2 {
        let (mut child, [file, address]) = web(&sshd, &port);
        let page = Page::at(&address);
        let script = page.get(&page.path, "");
        assert!(script.contains("application/x-ns-proxy-autoconfig"), "{script}");
        let wanted = format!("return \"PROXY 127.0.0.1:{port}; DIRECT\";");
        assert!(script.contains("dnsDomainIs(host, \".data.example\")"), "{script}");
        assert!(script.contains(&wanted), "{script}");
        // Nobody else can write the file, and what the port has answered once is worth nothing later.
        assert!(script.ends_with(&fs::read_to_string(&file).unwrap()), "{script}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        child.kill().unwrap();
        child.wait().unwrap();
        addresses.push([file, address]);
    }
    assert_eq!(addresses[0][0], addresses[1][0]);
    assert_ne!(addresses[0][1], addresses[1][1]);
    for words in [vec!["--site", "localhost"], vec!["--site", "a", "http://b/"], vec![]] {
        let output = sshd.web(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}");
    }
}
