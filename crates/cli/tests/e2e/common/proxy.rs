//! Gateways of `hikyaku proxy`, and servers for their flows.

use super::Sshd;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind, Lines, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

/// A gateway and the ports that it listens on, in the order of its options.
pub(crate) struct Proxy {
    pub(crate) child: Child,
    pub(crate) ports: Vec<SocketAddr>,
    /// What it prints behind them.
    pub(crate) lines: Lines<BufReader<ChildStdout>>,
}

impl Proxy {
    pub(crate) fn start(sshd: &Sshd, options: &[&str]) -> Self {
        Self::of(&mut sshd.proxy(options))
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        let listeners = command
            .get_args()
            .filter(|word| ["-L", "-D", "--http"].iter().any(|option| word == option));
        let count = listeners.count();
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = |line: std::io::Result<String>| {
            let line = line.unwrap();
            let rest = line.strip_prefix("listening on ").unwrap();
            rest.split(' ').next().unwrap().parse().unwrap()
        };
        let ports: Vec<SocketAddr> = lines.by_ref().take(count).map(port).collect();
        assert_eq!(ports.len(), count, "the proxy has ended");
        Self { child, ports, lines }
    }

    /// The address of its page, which it prints behind the ports.
    pub(crate) fn page(&mut self) -> Page {
        let line = self.lines.next().unwrap().unwrap();
        Page::at(line.strip_prefix("connections are shown at ").unwrap())
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect(self.ports[0]).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        socket
    }

    pub(crate) fn end(mut self, signal: Signal) -> ExitStatus {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The page of a gateway.
pub(crate) struct Page {
    /// The port, and the path of the page with its slashes.
    pub(crate) host: String,
    pub(crate) path: String,
}

impl Page {
    pub(crate) fn at(address: &str) -> Self {
        let rest = address.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_at(rest.find('/').unwrap());
        Self { host: host.to_owned(), path: path.to_owned() }
    }

    /// The whole answer to a request for a path, with these headers beside `Host`.
    pub(crate) fn get(&self, path: &str, headers: &str) -> String {
        let mut socket = TcpStream::connect(&self.host).unwrap();
        write!(socket, "GET {path} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", self.host).unwrap();
        String::from_utf8(read_all(&mut socket).0).unwrap()
    }

    /// What the gateway says of itself.
    pub(crate) fn status(&self) -> Value {
        let answer = self.get(&format!("{}status", self.path), "");
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        serde_json::from_str(body).unwrap()
    }
}

/// A server on loopback that attends each connection with a thread. It ends with the test.
pub(crate) fn server(attend: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let attend = attend.clone();
            thread::spawn(move || attend(socket));
        }
    });
    port
}

pub(crate) fn echo(mut socket: TcpStream) {
    let mut reader = socket.try_clone().unwrap();
    let _ = std::io::copy(&mut reader, &mut socket);
    let _ = socket.shutdown(Shutdown::Write);
}

/// An address of this machine that other machines could use.
pub(crate) fn own_address() -> Option<IpAddr> {
    // Nothing is sent: the kernel only chooses the address.
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|address| !address.is_loopback())
}

pub(crate) fn to(port: u16) -> String {
    format!("127.0.0.1:0:127.0.0.1:{port}")
}

/// Reads to the end or to an error.
pub(crate) fn read_all(socket: &mut TcpStream) -> (Vec<u8>, Option<ErrorKind>) {
    let (mut all, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return (all, None),
            Ok(length) => all.extend_from_slice(&buffer[..length]),
            Err(error) => return (all, Some(error.kind())),
        }
    }
}
