//! curl downloads through `hikyaku proxy` over a long, lossy link: what arrives is what was sent, by every way in.

use crate::common::{Place, Sshd, random, wait_until};
use hikyaku_tun::in_namespace;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

const PROGRAM: &str = env!("CARGO_BIN_EXE_hikyaku");
const FAR: &str = "10.77.2.1";
const BYTES: usize = 20_000_000;
/// What it answers to a request for `/small`: a part of them.
const SMALL_BYTES: usize = 100_000;
/// The same for `/tiny`.
const TINY_BYTES: usize = 50_000;
/// The variable that makes this program a web server.
const SERVE: &str = "HIKYAKU_TEST_SERVE";

/// A web server: the test runs itself at the far end with this function. It answers every request with the same bytes.
#[test]
fn serve() {
    if std::env::var_os(SERVE).is_none() {
        return;
    }
    let listener = TcpListener::bind((FAR, 8000)).unwrap();
    println!("\nserving");
    let body: &[u8] = random(1, BYTES).leak();
    for socket in listener.incoming().map_while(Result::ok) {
        // A browser opens connections ahead, on which it asks for nothing.
        thread::spawn(move || respond(socket, body));
    }
}

/// The response says from where the connection has come.
fn respond(mut socket: TcpStream, body: &[u8]) {
    let from = socket.peer_addr().unwrap().ip();
    let mut lines = BufReader::new(socket.try_clone().unwrap()).lines().map_while(Result::ok);
    let Some(request) = lines.next() else { return };
    let length = match &request {
        _ if request.contains("/small") => SMALL_BYTES,
        _ if request.contains("/tiny") => TINY_BYTES,
        _ => BYTES,
    };
    if lines.any(|line| line.is_empty()) {
        // A browser saves this as a file, and may ask for an icon as well.
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nContent-Disposition: attachment; \
             filename=data\r\nX-From: {from}\r\nConnection: close\r\n\r\n"
        );
        let _ = socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(&body[..length]));
    }
}

/// A lab of two hosts, removed at the end of the test.
struct Lab(String);

impl Lab {
    fn up(name: &str) -> Self {
        let name = format!("{name}-{}", std::process::id());
        let mut command = Command::new(PROGRAM);
        command.args(["lab", "up", &name, "--site", "near:1", "--site", "far:1"]);
        command.args(["--rate", "1gbit", "--rtt", "200ms", "--loss", "1%"]);
        assert!(command.stdout(Stdio::null()).status().unwrap().success());
        Self(name)
    }

    fn namespace(&self, host: &str) -> String {
        format!("hikyaku-{}-{host}", self.0)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = Command::new(PROGRAM).args(["lab", "down", &self.0]).status();
    }
}

/// A process that is killed at the end of the test.
struct Process(Child);

impl Process {
    /// Starts a command, and reads the lines that it prints until so many have this word.
    fn start(command: &mut Command, word: &str, count: usize) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert_eq!(lines.filter(|line| line.contains(word)).take(count).count(), count);
        Self(child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A command in a network namespace.
fn inside(namespace: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]);
    command
}

/// Two hosts, with ssh and the web server at the far one. Dropped in this order.
struct Rig {
    _server: Process,
    sshd: Sshd,
    near: String,
    _lab: Lab,
}

impl Rig {
    /// `None` without root.
    fn up(name: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("\n*** SKIPPED, because the lab needs root ***\n");
            return None;
        }
        let lab = Lab::up(name);
        let (near, far) = (lab.namespace("near1"), lab.namespace("far1"));
        let sshd = Sshd::start_at(name, &Place::Namespaces([&near, &far], FAR));
        let mut server = inside(&far);
        server.arg(std::env::current_exe().unwrap()).args([
            "--exact",
            "proxy_lab::serve",
            "--nocapture",
        ]);
        let server = Process::start(server.env(SERVE, "1"), "serving", 1);
        Some(Self { _server: server, sshd, near, _lab: lab })
    }
}

#[test]
fn a_browser_downloads_a_file_over_a_lossy_link() {
    if !has_chromium() {
        return;
    }
    let Some(rig) = Rig::up("web-lab") else { return };
    let sshd = &rig.sshd;
    let downloads = sshd.at("downloads");
    fs::create_dir(&downloads).unwrap();
    let url = format!("http://{FAR}:8000/file");
    let options = [&url, "--headless", "--downloads", downloads.to_str().unwrap()];
    let mut web = sshd.web(&options);
    web.env("HOME", sshd.at("")).env("TMPDIR", sshd.at(""));
    let mut browser = Process::start(&mut web, "its connections are carried", 1);
    let profile = sshd.at(&format!("hikyaku-web-{}", browser.0.id()));
    assert!(profile.is_dir(), "{}", profile.display());
    // The browser gives the file its name some time after the last byte.
    let wanted = random(1, BYTES);
    wait_until("the download", || {
        let files = fs::read_dir(&downloads).unwrap().flatten();
        files.into_iter().any(|file| fs::read(file.path()).is_ok_and(|bytes| bytes == wanted))
    });
    kill_process(Pid::from_child(&browser.0), Signal::INT).unwrap();
    browser.0.wait().unwrap();
    assert!(!profile.exists(), "the profile is left");
}

/// Whether there is a Chromium; if not, this says so.
fn has_chromium() -> bool {
    let mut version = Command::new("chromium");
    let status = version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = status.is_ok_and(|status| status.success());
    if !is_there {
        eprintln!("\n*** SKIPPED, because there is no chromium ***\n");
    }
    is_there
}

/// A Chromium of the user with this option, which shows a page.
fn chromium(rig: &Rig, profile: &str, option: &str, url: &str) -> Process {
    let profile = rig.sshd.at(profile);
    fs::create_dir_all(profile.join("Default")).unwrap();
    let downloads = rig.sshd.at("downloads").display().to_string();
    let preferences = format!(
        "{{\"download\":{{\"prompt_for_download\":false,\"default_directory\":\"{downloads}\"}}}}"
    );
    fs::write(profile.join("Default/Preferences"), preferences).unwrap();
    let mut command = inside(&rig.near);
    command.args(["chromium", "--headless=new", "--no-sandbox", "--no-first-run"]);
    command.arg(format!("--user-data-dir={}", profile.display()));
    command.arg(option).arg("--").arg(url);
    command.env("HOME", rig.sshd.at("")).stdin(Stdio::null()).stderr(Stdio::null());
    Process(command.stdout(Stdio::null()).spawn().unwrap())
}

#[test]
fn the_user_s_own_browser_downloads_through_the_gateway_or_direct_without_it() {
    if !has_chromium() {
        return;
    }
    let Some(rig) = Rig::up("pac-lab") else { return };
    let downloads = rig.sshd.at("downloads");
    fs::create_dir(&downloads).unwrap();
    let extension = rig.sshd.at("extension").display().to_string();
    let mut web = rig.sshd.web(&["--site", FAR, "--port", "7010", "--extension", &extension]);
    let mut child = web.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let lines: Vec<String> = lines.take(9).map(|line| line.trim().to_owned()).collect();
    let gateway = Process(child);
    let pac = lines.iter().find_map(|line| line.strip_prefix("--proxy-pac-url=")).unwrap();
    let page = lines[5].strip_prefix("downloads are shown at ").unwrap();
    let (wanted, url) = (random(1, BYTES), format!("http://{FAR}:8000/file"));
    let arrive = |wanted: &[u8]| {
        wait_until("the download", || {
            let mut files = fs::read_dir(&downloads).unwrap().flatten();
            files.any(|file| fs::read(file.path()).is_ok_and(|bytes| bytes == wanted))
        });
    };
    let with_pac = format!("--proxy-pac-url={pac}");
    let browser = chromium(&rig, "profile", &with_pac, &url);
    arrive(&wanted);
    // The page has figures as soon as somebody looks.
    let is_carried = |url: &str, bytes: usize| {
        wait_until("the connection on the page", || {
            let mut curl = inside(&rig.near);
            let status = curl.args(["curl", "-sS", &format!("{page}status")]).output().unwrap();
            let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
            let all = [&status["flows"], &status["ended"]];
            all.iter().flat_map(|list| list.as_array().unwrap()).any(|flow| {
                let received = flow["received_bytes"].as_u64();
                flow["target"] == url && received >= Some(bytes as u64)
            })
        });
    };
    is_carried(&url, BYTES);
    drop(browser);
    // What the extension asks for: a download that the gateway gets from the site, saved and never shown.
    assert!(Path::new(&extension).join("manifest.json").is_file());
    let (url, heads) = (format!("http://{FAR}:8000/tiny"), rig.sshd.at("heads"));
    let handed = format!("{page}get/tiny?{}", url.replace(':', "%3A").replace('/', "%2F"));
    let mut curl = inside(&rig.near);
    let got =
        curl.args(["curl", "-sS", "--max-time", "60", "-D"]).arg(&heads).arg(&handed).output();
    assert!(got.unwrap().stdout == wanted[..TINY_BYTES]);
    let heads = fs::read_to_string(heads).unwrap();
    // Of the server's headers only those pass that a download needs.
    assert!(heads.contains("attachment") && !heads.contains("X-From"), "{heads}");
    is_carried(&url, TINY_BYTES);
    let elsewhere = format!("{page}get/x?http%3A%2F%2F192.0.2.1%2F");
    let mut curl = inside(&rig.near);
    let got = curl.args(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", &elsewhere]);
    assert_eq!(got.output().unwrap().stdout, b"404", "no site of the user");
    // The gateway is dead, and the browser goes direct.
    drop(gateway);
    let url = format!("http://{FAR}:8000/small");
    let _browser = chromium(&rig, "profile-2", &with_pac, &url);
    arrive(&wanted[..SMALL_BYTES]);
}

/// A download that a program has begun, up to the empty line, and whether the far gateway has connected it.
fn begin(rig: &Rig, proxy: &str, name: &str) -> (TcpStream, bool) {
    let address: SocketAddr = proxy.parse().unwrap();
    let near = Path::new("/run/netns").join(&rig.near);
    let mut socket = in_namespace(&near, move || TcpStream::connect(address)).unwrap();
    write!(socket, "GET http://{FAR}:8000/{name} HTTP/1.1\r\n\r\n").unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    (socket, String::from_utf8(head).unwrap().contains(&format!("X-From: {FAR}\r\n")))
}

#[test]
fn new_downloads_go_direct_while_the_switch_is_off_and_none_breaks() {
    let Some(rig) = Rig::up("switch-lab") else { return };
    let sshd = &rig.sshd;
    let mut command = sshd.proxy(&["--http", "127.0.0.1:7003"]);
    let mut gateway =
        Process::start(command.env("XDG_RUNTIME_DIR", sshd.at("run")), "listening on", 1);
    let turn = |word: &str| {
        let mut command = Command::new(PROGRAM);
        let command = command.args(["proxy", word]).env("XDG_RUNTIME_DIR", sshd.at("run"));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), String::from_utf8(output.stdout).unwrap(), said)
    };
    let (url, copy, heads) =
        (format!("http://{FAR}:8000/small"), sshd.at("copy"), sshd.at("heads"));
    let mut held = Vec::new();
    for phase in ["as it begins", "off", "on", "off", "on"] {
        if phase != "as it begins" {
            let (is_done, told, said) = turn(phase);
            assert!(is_done && told.contains("far gateway far"), "{phase}: {told} {said}");
            assert_eq!(told.contains("off: new connections go direct"), phase == "off", "{told}");
        }
        let is_carried = phase != "off";
        let mut curl = inside(&rig.near);
        curl.args(["curl", "-sS", "--max-time", "60", "-x", "http://127.0.0.1:7003", &url]);
        let said = curl.arg("-o").arg(&copy).arg("-D").arg(&heads).output().unwrap();
        assert!(said.status.success(), "{phase}: {}", String::from_utf8_lossy(&said.stderr));
        assert!(fs::read(&copy).unwrap() == random(1, BYTES)[..SMALL_BYTES], "{phase}");
        let head = fs::read_to_string(&heads).unwrap();
        assert_eq!(head.contains(&format!("X-From: {FAR}\r\n")), is_carried, "{phase}: {head}");
        // This one is read when the switch has been turned many times.
        let (name, bytes) = if is_carried { ("file", BYTES) } else { ("small", SMALL_BYTES) };
        let (socket, was_carried) = begin(&rig, "127.0.0.1:7003", name);
        assert_eq!(was_carried, is_carried, "{phase}");
        held.push((socket, bytes));
    }
    let (is_done, told, said) = turn("drain");
    assert!(is_done && told.contains("draining"), "{told} {said}");
    // That is not taken back, and nothing new is taken in.
    let (is_done, _, said) = turn("on");
    assert!(!is_done && said.contains("ends with its last connection"), "{said}");
    let mut curl = inside(&rig.near);
    let refused = curl.args(["curl", "-sS", "-x", "http://127.0.0.1:7003", &url]).output().unwrap();
    assert_eq!(refused.status.code(), Some(7), "{refused:?}");
    for (mut socket, bytes) in held {
        let mut body = Vec::new();
        socket.read_to_end(&mut body).unwrap();
        assert!(body == random(1, BYTES)[..bytes]);
    }
    assert!(gateway.0.wait().unwrap().success());
}

#[test]
fn downloads_arrive_whole_over_a_lossy_link_by_every_way_in() {
    let Some(rig) = Rig::up("proxy-lab") else { return };
    let sshd = &rig.sshd;
    let target = format!("127.0.0.1:7001:{FAR}:8000");
    let mut proxy =
        sshd.proxy(&["-L", &target, "-D", "127.0.0.1:7002", "--http", "127.0.0.1:7003"]);
    let _proxy = Process::start(&mut proxy, "listening on", 3);
    let (url, copy) = (format!("http://{FAR}:8000/file"), sshd.at("copy"));
    for words in [
        vec!["http://127.0.0.1:7001/file"],
        vec!["--socks5-hostname", "127.0.0.1:7002", &url],
        vec!["--socks4a", "127.0.0.1:7002", &url],
        vec!["-x", "http://127.0.0.1:7003", &url],
        vec!["-p", "-x", "http://127.0.0.1:7003", &url],
    ] {
        let mut curl = inside(&rig.near);
        curl.args(["curl", "-sS", "--max-time", "60", "-o"]).arg(&copy).args(&words);
        let said = curl.output().expect("curl is installed");
        assert!(said.status.success(), "{words:?}: {}", String::from_utf8_lossy(&said.stderr));
        assert!(fs::read(&copy).unwrap() == random(1, BYTES), "{words:?}");
        fs::remove_file(&copy).unwrap();
    }
}
