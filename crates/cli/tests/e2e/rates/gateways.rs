//! Carried connections, whose limit is the daemon's, the key's or the gateway's.

use super::places::{FLOWS_SSH_TCP, FLOWS_SSH_UDP, FLOWS_TCP, FLOWS_UDP, KEY, PROXY, SERVE};
use super::{Cell, LIMIT, WAYS, Way};
use crate::common::Sshd;
use crate::common::daemon::{Client, Daemon};
use crate::common::proxy::{Proxy, read_all, server, to};
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

/// Each cell has a gateway of its own, and a daemon where one carries the flows.
pub(super) struct Gateways {
    all: Vec<Carried>,
    _client: Client,
    _sshd: Sshd,
}

struct Carried {
    proxy: Proxy,
    _daemon: Option<Daemon>,
    place: &'static str,
    by: &'static str,
    way: Way,
}

/// The server admits as many logins at once as the test needs.
const LINES: &str = "MaxStartups 100\n";

impl Gateways {
    pub(super) fn new(name: &str) -> Self {
        let client = Client::new(name);
        let keys = client.authorized("keys", "");
        let capped = client.authorized("capped", &format!("max-rate={LIMIT}"));
        let [sends, takes] = servers().map(to);
        let listeners = ["-L", &sends, "-L", &takes];
        let sshd = Sshd::with_lines(name, LINES);
        let mut all = Vec::new();
        let carriers =
            [(FLOWS_UDP, FLOWS_SSH_UDP, None), (FLOWS_TCP, FLOWS_SSH_TCP, Some("--no-udp"))];
        for (by, by_ssh, carrier) in carriers {
            let places: [(&'static str, &Path, &[&str], &[&str]); 3] = [
                (SERVE, &keys, &["--rate", LIMIT], &[]),
                (KEY, &capped, &[], &[]),
                (PROXY, &keys, &[], &["--rate", LIMIT]),
            ];
            for (place, keys, of_serve, of_proxy) in places {
                for way in WAYS {
                    let options = [&["--allow", "127.0.0.1:*"], of_serve].concat();
                    let daemon = Daemon::with(&client, &options, keys);
                    let mut command = client.command(&["proxy"]);
                    command.env("XDG_CACHE_HOME", client.at("cache"));
                    command.arg(format!("hikyaku://{}", daemon.address)).args(listeners);
                    let proxy =
                        Proxy::of(command.args(carrier).args(of_proxy).stderr(Stdio::null()));
                    all.push(Carried { proxy, _daemon: Some(daemon), place, by, way });
                }
            }
            for way in WAYS {
                let options = listeners.into_iter().chain(["--rate", LIMIT]).chain(carrier);
                let options: Vec<&str> = options.collect();
                let proxy = Proxy::of(sshd.proxy(&options).stderr(Stdio::null()));
                all.push(Carried { proxy, _daemon: None, place: PROXY, by: by_ssh, way });
            }
        }
        Self { all, _client: client, _sshd: sshd }
    }

    pub(super) fn cells(&self) -> Vec<Cell<'_>> {
        self.all.iter().map(Carried::cell).collect()
    }
}

impl Carried {
    /// Moves the bytes through the listeners of the gateway: the first leads to the server that sends.
    fn cell(&self) -> Cell<'_> {
        let (place, by, way) = (self.place, self.by, self.way);
        let port = self.proxy.ports[usize::from(way == Way::Up)];
        let work = move |bytes: usize| {
            let begin = Instant::now();
            let mut socket = TcpStream::connect(port).unwrap();
            match way {
                Way::Down => writeln!(socket, "{bytes}").unwrap(),
                Way::Up => socket.write_all(&vec![7; bytes]).unwrap(),
            }
            socket.shutdown(Shutdown::Write).unwrap();
            let (got, error) = read_all(&mut socket);
            let took = begin.elapsed();
            let due = if way == Way::Up { bytes.to_string().into() } else { vec![7; bytes] };
            assert!(error.is_none() && got == due, "{} bytes, {error:?}", got.len());
            took
        };
        Cell { place, by, way, work: Box::new(work) }
    }
}

/// A server that sends as many bytes as it is told, and one that takes what comes and then says how much that was.
fn servers() -> [u16; 2] {
    let sends = server(|mut socket: TcpStream| {
        let mut line = String::new();
        let _ = BufReader::new(socket.try_clone().unwrap()).read_line(&mut line);
        let _ = socket.write_all(&vec![7; line.trim().parse().unwrap_or(0)]);
        let _ = socket.shutdown(Shutdown::Write);
    });
    let takes = server(|mut socket: TcpStream| {
        let got = read_all(&mut socket).0.len();
        let _ = write!(socket, "{got}");
        let _ = socket.shutdown(Shutdown::Write);
    });
    [sends, takes]
}
