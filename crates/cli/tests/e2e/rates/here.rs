//! Tests of `hikyaku perf`, downloads from a web server, and copies from and to a server of plain FTP.

use super::places::{FTP, GET, GUC, PART, PERF, PERF_PACKETS, PERF_SERVER, SERVER, SSH_UDP, WEB};
use super::{Cell, LIMIT, WAYS, Way, said, timed, word};
use crate::common::Sshd;
use crate::common::daemon::Client;
use crate::common::perf::Server;
use crate::common::proxy::server;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use xtask::servers::ftp::{PlainFtp, Style};

/// Servers of tests, and one of files.
pub(super) struct Here {
    free: Server,
    capped: Server,
    web: u16,
    ftp: PlainFtp,
    client: Client,
    sshd: Sshd,
}

impl Here {
    pub(super) fn new(name: &str) -> Self {
        let (tests, client) = (["--max-tests", "8"], Client::new(name));
        Self {
            ftp: PlainFtp::start(&client.at("ftp"), Style::Facts).unwrap(),
            free: Server::start(&tests),
            capped: Server::start(&[&tests[..], &["--max-rate", LIMIT]].concat()),
            web: server(answer),
            client,
            sshd: Sshd::start(name),
        }
    }

    pub(super) fn cells(&self) -> Vec<Cell<'_>> {
        let mut cells = vec![self.get(), self.test((PERF_PACKETS, SERVER, Way::Up), "--wire-rate")];
        for way in WAYS {
            cells.push(self.test((PERF, SERVER, way), "-b"));
            cells.push(self.test((PERF, SSH_UDP, way), "-b"));
            cells.push(self.test((PERF_SERVER, SERVER, way), ""));
            cells.push(self.guc(FTP, way));
        }
        cells.push(self.guc(PART, Way::Down));
        cells
    }

    fn test(
        &self,
        (place, by, way): (&'static str, &'static str, Way),
        option: &'static str,
    ) -> Cell<'_> {
        let work = move |bytes: usize| {
            let bytes = bytes.to_string();
            let mut options = vec!["-n", &bytes];
            if !option.is_empty() {
                options.extend([option, LIMIT]);
            }
            options.extend((way == Way::Down).then_some("-R"));
            options.push("--json");
            let (took, report) = said(&mut match (place, by) {
                (_, SSH_UDP) => self.sshd.perf(&[&["ssh://far"], &options[..]].concat()),
                (PERF_SERVER, _) => self.capped.client(&options),
                _ => self.free.client(&options),
            });
            if place == PERF_PACKETS { took.mul_f64(payload_share(&report)) } else { took }
        };
        Cell { place, by, way, work: Box::new(work) }
    }

    fn get(&self) -> Cell<'_> {
        let (place, by, way) = (GET, WEB, Way::Down);
        let work = move |bytes: usize| {
            let url = format!("http://127.0.0.1:{}/{bytes}", self.web);
            let target = self.client.at(&word((place, by, way))).display().to_string();
            let mut command = self.client.command(&["get", "-f", "--limit-rate", LIMIT]);
            timed(command.args(["-o", &target, &url]))
        };
        Cell { place, by, way, work: Box::new(work) }
    }

    fn guc(&self, by: &'static str, way: Way) -> Cell<'_> {
        let work = move |bytes: usize| {
            let name = format!("{}{bytes}", word((GUC, by, way)));
            let (here, there) = (self.client.at(&name), self.ftp.data.join(&name));
            fs::write(if way == Way::Down { &there } else { &here }, vec![7; bytes]).unwrap();
            let url = format!("{}/{name}", self.ftp.url());
            let mut ends = [url, here.display().to_string()];
            if way == Way::Up {
                ends.reverse();
            }
            let mut command = self.client.command(&["guc", "--rate", LIMIT]);
            if by == PART {
                command.args(["-len", &bytes.to_string()]);
            }
            timed(command.args(ends))
        };
        Cell { place: GUC, by, way, work: Box::new(work) }
    }
}

/// The share of payload in what a test sent on the wire. It depends on the packets that the path takes.
fn payload_share(report: &[u8]) -> f64 {
    let report: Value = serde_json::from_slice(report).unwrap();
    let [payload, wire] = ["/end/sum_received/bits_per_second", "/end/wire_bits_per_second"]
        .map(|rate| report.pointer(rate).and_then(Value::as_f64).unwrap());
    payload / wire
}

/// Serves a file of as many bytes as its name says, whole or in ranges.
fn answer(mut socket: TcpStream) {
    let mut lines = BufReader::new(socket.try_clone().unwrap()).lines().map_while(Result::ok);
    while let Some(first) = lines.next() {
        let name = first.split([' ', '/']).nth(2).unwrap_or_default();
        let size: usize = name.parse().unwrap_or(0);
        let heads: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
        let range = heads.iter().find_map(|head| {
            let (name, value) = head.split_once(": bytes=")?;
            let (from, to) =
                name.eq_ignore_ascii_case("range").then(|| value.split_once('-'))??;
            Some((from.parse().ok()?, to.parse().unwrap_or(size - 1).min(size - 1)))
        });
        let (from, to): (usize, usize) = range.unwrap_or_else(|| (0, size.saturating_sub(1)));
        let length = (to + 1 - from).min(size);
        let status = match range {
            Some(_) => format!("206 Partial Content\r\nContent-Range: bytes {from}-{to}/{size}"),
            None => "200 OK".to_owned(),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nAccept-Ranges: bytes\r\nETag: \"a\"\r\n\r\n"
        );
        let body = if first.starts_with("HEAD") { 0 } else { length };
        let sent = socket.write_all(head.as_bytes());
        if sent.and_then(|()| socket.write_all(&vec![7; body])).is_err() {
            return;
        }
    }
}
