//! curl downloads through `hikyaku proxy` over a long, lossy link: what arrives is what was sent, by every way in.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

mod common;

use common::{Place, Sshd, random};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_hikyaku");
const FAR: &str = "10.77.2.1";
const BYTES: usize = 20_000_000;
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
    let body = random(1, BYTES);
    for mut socket in listener.incoming().map_while(Result::ok) {
        let mut lines = BufReader::new(socket.try_clone().unwrap()).lines().map_while(Result::ok);
        if lines.any(|line| line.is_empty()) {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n");
            write!(socket, "{head}Connection: close\r\n\r\n").unwrap();
            socket.write_all(&body).unwrap();
        }
    }
}

/// A lab of two hosts, removed at the end of the test.
struct Lab(String);

impl Lab {
    fn up() -> Self {
        let name = format!("proxy-{}", std::process::id());
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

#[test]
fn downloads_arrive_whole_over_a_lossy_link_by_every_way_in() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("\n*** SKIPPED, because the lab needs root ***\n");
        return;
    }
    let lab = Lab::up();
    let (near, far) = (lab.namespace("near1"), lab.namespace("far1"));
    let sshd = Sshd::start_at("proxy-lab", &Place::Namespaces([&near, &far], FAR));
    let inside = |namespace: &str| {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]);
        command
    };
    let mut server = inside(&far);
    server.arg(std::env::current_exe().unwrap()).args(["--exact", "serve", "--nocapture"]);
    let _server = Process::start(server.env(SERVE, "1"), "serving", 1);
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
        let mut curl = inside(&near);
        curl.args(["curl", "-sS", "--max-time", "60", "-o"]).arg(&copy).args(&words);
        let said = curl.output().expect("curl is installed");
        assert!(said.status.success(), "{words:?}: {}", String::from_utf8_lossy(&said.stderr));
        assert!(fs::read(&copy).unwrap() == random(1, BYTES), "{words:?}");
        fs::remove_file(&copy).unwrap();
    }
}
