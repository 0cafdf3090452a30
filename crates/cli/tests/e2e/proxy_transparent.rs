//! Transparent mode: a host that knows of no gateway sees its connections as if there were none, and so does a command of the
//! gateway's own host.

use crate::common::daemon::Client;
use crate::common::proxy::{echo, read_all};
use crate::common::wait_until;
use hikyaku_tun::in_namespace;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Error, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_hikyaku");
const FAR: &str = "10.61.2.1";
/// The same host in IPv6.
const FAR6: &str = "[fd61:2::1]";

/// A client, a gateway between the two others, and a far host. The far host has no way to the client.
struct Net(String);

impl Net {
    fn up(name: &str) -> Self {
        let net = Self(format!("hk-{name}-{}", std::process::id()));
        let [client, gateway, far] = ["c", "g", "f"].map(|host| net.name(host));
        for host in [&client, &gateway, &far] {
            ip(&["netns", "add", host]);
            ip(&["-n", host, "link", "set", "lo", "up"]);
        }
        for (host, device, other, address) in
            [(&client, "c0", "g0", "10.61.1"), (&far, "f0", "g1", "10.61.2")]
        {
            ip(&[
                "-n", host, "link", "add", device, "type", "veth", "peer", "name", other, "netns",
                &gateway,
            ]);
            let (own, near) = if device == "c0" { ("2", "1") } else { ("1", "2") };
            ip(&["-n", host, "addr", "add", &format!("{address}.{own}/24"), "dev", device]);
            ip(&["-n", &gateway, "addr", "add", &format!("{address}.{near}/24"), "dev", other]);
            let subnet = address.rsplit('.').next().unwrap();
            for (host, device, last) in [(host, device, own), (&gateway, other, near)] {
                let address = format!("fd61:{subnet}::{last}/64");
                ip(&["-n", host, "addr", "add", &address, "dev", device, "nodad"]);
            }
            ip(&["-n", host, "link", "set", device, "up"]);
            ip(&["-n", &gateway, "link", "set", other, "up"]);
        }
        ip(&["-n", &client, "route", "add", "default", "via", "10.61.1.1"]);
        ip(&["-n", &client, "route", "add", "default", "via", "fd61:1::1"]);
        let mut forward6 = inside(&gateway);
        let forward6 = forward6.args(["sysctl", "-qw", "net.ipv6.conf.all.forwarding=1"]).status();
        assert!(forward6.unwrap().success());
        let mut forward = inside(&gateway);
        let forward = forward.args(["sysctl", "-qw", "net.ipv4.ip_forward=1"]).status();
        assert!(forward.unwrap().success());
        net
    }

    fn name(&self, host: &str) -> String {
        format!("{}-{host}", self.0)
    }

    fn path(&self, host: &str) -> PathBuf {
        Path::new("/run/netns").join(self.name(host))
    }

    /// A connection of the client.
    fn connect(&self, target: &str) -> Result<TcpStream, Error> {
        let target: SocketAddr = target.parse().unwrap();
        in_namespace(&self.path("c"), move || TcpStream::connect(target))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for host in ["c", "g", "f"] {
            let _ = Command::new("ip").args(["netns", "del", &self.name(host)]).status();
        }
    }
}

/// A process that is killed at the end of the test, and the first line that it printed.
struct Process(Child, String);

impl Process {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self(child, line)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ip(words: &[&str]) {
    assert!(Command::new("ip").args(words).status().unwrap().success(), "ip {words:?}");
}

fn inside(namespace: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]);
    command
}

/// The far host with an echo and a daemon.
fn start_far(net: &Net, client: &Client) -> Process {
    client.run(&["keys", "new"]);
    let shown = client.run(&["keys", "show"]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let key = text.split_whitespace().find(|word| word.starts_with("ed25519:")).unwrap();
    fs::write(client.at("keys"), key).unwrap();
    // The echo says from where it was connected.
    for address in [FAR, FAR6] {
        let address: SocketAddr = format!("{address}:8000").parse().unwrap();
        let listener = in_namespace(&net.path("f"), move || TcpListener::bind(address)).unwrap();
        thread::spawn(move || {
            for mut socket in listener.incoming().map_while(Result::ok) {
                let from = socket.peer_addr().unwrap();
                let _ = writeln!(socket, "{from}");
                thread::spawn(move || echo(socket));
            }
        });
    }
    let mut serve = inside(&net.name("f"));
    serve.args([PROGRAM, "serve", "--listen", &format!("{FAR}:5209"), "--allow", "10.61.2.0/24:*"]);
    serve.args(["--allow", "fd61:2::/64:*"]);
    serve
        .arg("--authorized-keys")
        .arg(client.at("keys"))
        .env("XDG_STATE_HOME", client.at("server-state"));
    Process::start(&mut serve)
}

/// The far host, and the gateway.
fn start(net: &Net, client: &Client) -> (Process, Process) {
    let daemon = start_far(net, client);
    let mut proxy = inside(&net.name("g"));
    proxy.args([
        PROGRAM,
        "proxy",
        &format!("hikyaku://{FAR}"),
        "--transparent",
        "g0",
        "--to",
        "10.61.0.0/16",
        "--to",
        "fd61::/16",
    ]);
    proxy.env("XDG_STATE_HOME", client.at("state")).env("XDG_CACHE_HOME", client.at("cache"));
    proxy.env("XDG_RUNTIME_DIR", client.at("run"));
    let gateway = Process::start(&mut proxy);
    assert_eq!(gateway.1, "taking in connections at g0 to 10.61.0.0/16, fd61::/16\n");
    (daemon, gateway)
}

/// Turns the switch of the gateway while connections are open.
fn turn_off_and_on(net: &Net, client: &Client) {
    // While it is off new connections pass by; the far host is given a way back to the client for them. Open ones go on.
    let turn = |word: &str| {
        let mut command = client.command(&["proxy", word]);
        let output = command.env("XDG_RUNTIME_DIR", client.at("run")).output().unwrap();
        assert!(output.status.success(), "{word}: {output:?}");
    };
    let begin = || {
        let socket = net.connect(&format!("{FAR}:8000")).unwrap();
        let mut reader = BufReader::new(socket);
        let mut from = String::new();
        reader.read_line(&mut from).unwrap();
        (reader, from)
    };
    let (mut carried, from) = begin();
    assert!(from.starts_with(FAR), "{from}");
    ip(&["-n", &net.name("f"), "route", "add", "10.61.1.0/24", "via", "10.61.2.2"]);
    turn("off");
    let (mut direct, from) = begin();
    assert!(from.starts_with("10.61.1.2:"), "{from}");
    turn("on");
    assert!(begin().1.starts_with(FAR));
    for reader in [&mut carried, &mut direct] {
        reader.get_mut().write_all(b"still here\n").unwrap();
        let mut reply = String::new();
        reader.read_line(&mut reply).unwrap();
        assert_eq!(reply, "still here\n");
    }
    ip(&["-n", &net.name("f"), "route", "del", "10.61.1.0/24"]);
}

/// Whether the kernel can be told such rules; if not, this says so.
fn can_run() -> bool {
    let has_nft = Command::new("nft").arg("--version").stdout(Stdio::null()).status().is_ok();
    let can_run = rustix::process::geteuid().is_root() && has_nft;
    if !can_run {
        eprintln!("\n*** SKIPPED, because this needs root and nftables ***\n");
    }
    can_run
}

/// Waits until the gateway's host has no rules of a gateway.
fn wait_for_no_rules(net: &Net) {
    let list = |words: &[&str]| {
        let output = inside(&net.name("g")).args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    wait_until("the end of the rules", || {
        let has_rule = |option| list(&["ip", option, "rule"]).contains("fwmark");
        list(&["nft", "list", "tables"]).is_empty() && !has_rule("-4") && !has_rule("-6")
    });
}

/// Set in a command whose connections are carried.
const VISITS: &str = "HIKYAKU_TEST_VISITS";
/// Begins what it answers. Behind the name of the test there is no end of a line.
const ANSWER: &str = "> ";

/// Not a test of its own: a program that connects as it is told on standard input, a line each.
#[test]
fn visit() {
    if std::env::var_os(VISITS).is_none() {
        return;
    }
    let mut last = None;
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let answer = match line.strip_prefix("connect ") {
            Some(target) => match TcpStream::connect(target.parse::<SocketAddr>().unwrap()) {
                Ok(socket) => {
                    let mut from = String::new();
                    let mut reader = BufReader::new(socket);
                    reader.read_line(&mut from).unwrap();
                    last = Some(reader.into_inner());
                    from.trim_end().to_owned()
                }
                Err(error) => format!("error {}", error.raw_os_error().unwrap()),
            },
            None if line == "read" => {
                let mut socket: TcpStream = last.take().unwrap();
                format!("{:?}", read_all(&mut socket))
            }
            None => {
                let mut socket = last.take().unwrap();
                let bytes = vec![7; line.parse().unwrap()];
                let mut writer = socket.try_clone().unwrap();
                let writes = thread::spawn(move || {
                    let written = writer.write_all(&bytes);
                    let _ = writer.shutdown(Shutdown::Write);
                    written.map(|()| bytes)
                });
                let (reply, error) = read_all(&mut socket);
                let is_same = writes.join().unwrap().is_ok_and(|bytes| bytes == reply);
                format!("same bytes: {is_same}, {error:?}")
            }
        };
        println!("{ANSWER}{answer}");
    }
}

/// A gateway for such a program, which is started by a shell, and what goes in and out of it.
struct Visitor(Child, Option<ChildStdin>, BufReader<ChildStdout>);

impl Visitor {
    fn start(net: &Net, client: &Client) -> Self {
        // In `ip netns exec` there are no control groups.
        let mut proxy = Command::new("nsenter");
        proxy.arg(format!("--net={}", net.path("g").display())).args([PROGRAM, "proxy"]);
        proxy.arg(format!("hikyaku://{FAR}")).args(["--for-command", "--"]);
        proxy.args(["sh", "-c", "\"$0\" --exact proxy_transparent::visit --nocapture; exit 7"]);
        proxy.arg(std::env::current_exe().unwrap()).env(VISITS, "1");
        for (variable, folder) in
            [("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache"), ("XDG_RUNTIME_DIR", "run")]
        {
            proxy.env(variable, client.at(folder));
        }
        let mut child = proxy.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        Self(child, input, BufReader::new(output))
    }

    fn ask(&mut self, line: &str) -> String {
        writeln!(self.1.as_mut().unwrap(), "{line}").unwrap();
        let mut lines = self.2.by_ref().lines().map(Result::unwrap);
        let answer = lines.find_map(|line| Some(line.split_once(ANSWER)?.1.to_owned()));
        answer.expect("the command has ended")
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        // The command ends when it is told no more.
        drop(self.1.take());
        let _ = std::io::copy(&mut self.2, &mut std::io::sink());
    }
}

#[test]
fn only_connections_of_the_command_are_carried() {
    let has_groups = fs::read_to_string("/proc/self/mountinfo").unwrap().contains(" - cgroup2 ");
    if !can_run() || !has_groups {
        eprintln!("\n*** SKIPPED, because this needs control groups (cgroup2) ***\n");
        return;
    }
    const OWN: &str = "10.61.2.2:";
    let (net, client) = (Net::up("command"), Client::new("command"));
    let _daemon = start_far(&net, &client);
    let mut visitor = Visitor::start(&net, &client);
    for (far, carried) in [(FAR, FAR), (FAR6, FAR6)] {
        // The far gateway has connected it.
        let from = visitor.ask(&format!("connect {far}:8000"));
        assert!(from.starts_with(carried), "{from}");
        assert_eq!(visitor.ask("3000000"), "same bytes: true, None", "{far}");
    }
    for (target, errno) in [
        (format!("{FAR}:8001"), Errno::CONNREFUSED),
        (format!("{FAR6}:8001"), Errno::CONNREFUSED),
        ("10.61.2.77:80".to_owned(), Errno::HOSTUNREACH),
        // What is on this host is not carried.
        ("127.0.0.1:1".to_owned(), Errno::CONNREFUSED),
    ] {
        let wanted = format!("error {}", errno.raw_os_error());
        assert_eq!(visitor.ask(&format!("connect {target}")), wanted, "{target}");
    }
    // Another program of the host.
    let target: SocketAddr = format!("{FAR}:8000").parse().unwrap();
    let other = in_namespace(&net.path("g"), move || TcpStream::connect(target)).unwrap();
    let mut from = String::new();
    BufReader::new(other).read_line(&mut from).unwrap();
    assert!(from.starts_with(OWN), "{from}");
    // While the gateway is off, new connections go direct, and the one that is open stays.
    let turn = |word: &str| {
        let mut command = client.command(&["proxy", word]);
        let output = command.env("XDG_RUNTIME_DIR", client.at("run")).output().unwrap();
        assert!(output.status.success(), "{word}: {output:?}");
    };
    assert!(visitor.ask(&format!("connect {FAR}:8000")).starts_with(FAR));
    turn("off");
    assert_eq!(visitor.ask("300000"), "same bytes: true, None");
    assert!(visitor.ask(&format!("connect {FAR}:8000")).starts_with(OWN));
    turn("on");
    assert_eq!(visitor.ask("300000"), "same bytes: true, None");
    // The end of the command is the end of the gateway.
    drop(visitor.1.take());
    assert_eq!(visitor.0.wait().unwrap().code(), Some(7));
    wait_for_no_rules(&net);
    // A gateway that is killed: its connections are reset, and new ones go direct.
    let mut visitor = Visitor::start(&net, &client);
    assert!(visitor.ask(&format!("connect {FAR}:8000")).starts_with(FAR));
    visitor.0.kill().unwrap();
    visitor.0.wait().unwrap();
    assert_eq!(visitor.ask("read"), "([], Some(ConnectionReset))");
    wait_until("a direct connection", || {
        visitor.ask(&format!("connect {FAR}:8000")).starts_with(OWN)
    });
}

#[test]
fn a_client_sees_what_it_would_see_without_the_gateway() {
    if !can_run() {
        return;
    }
    let (net, client) = (Net::up("transparent"), Client::new("transparent"));
    let (_daemon, mut gateway) = start(&net, &client);
    for (far, length) in [(FAR, 0), (FAR, 1), (FAR, 3_000_000), (FAR6, 0), (FAR6, 3_000_000)] {
        let mut socket = net.connect(&format!("{far}:8000")).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        assert_eq!(socket.peer_addr().unwrap().to_string(), format!("{far}:8000"));
        let mut writer = socket.try_clone().unwrap();
        let writes = thread::spawn(move || {
            writer.write_all(&vec![7; length]).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let (reply, error) = read_all(&mut socket);
        let end = reply.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        // The far gateway has connected it.
        assert!(reply.starts_with(far.as_bytes()), "{:?}", String::from_utf8_lossy(&reply[..end]));
        assert!(reply[end..] == vec![7; length] && error.is_none(), "{length} {error:?}");
        writes.join().unwrap();
    }
    // Exactly what the server, or a router on the way, would say: never a connection that is reset after it was made.
    for (target, errno) in [
        (format!("{FAR}:8001"), Errno::CONNREFUSED),
        ("10.61.2.77:80".to_owned(), Errno::HOSTUNREACH),
        ("10.61.9.9:80".to_owned(), Errno::HOSTUNREACH),
        (format!("{FAR6}:8001"), Errno::CONNREFUSED),
        ("[fd61:2::77]:80".to_owned(), Errno::HOSTUNREACH),
        // The daemon does not allow it: prohibited.
        ("[fd61:9::9]:80".to_owned(), Errno::ACCESS),
    ] {
        let error = net.connect(&target).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(errno.raw_os_error()), "{target}: {error}");
    }
    turn_off_and_on(&net, &client);
    // At its end it takes back what it told the kernel, and connections pass without it: the far host has no way back.
    kill_process(Pid::from_child(&gateway.0), Signal::INT).unwrap();
    gateway.0.wait().unwrap();
    wait_for_no_rules(&net);
}
