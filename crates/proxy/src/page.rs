//! The page of a gateway: what passes, what limits it, and the three buffers that each download goes through. It is served
//! at the port of the HTTP proxy, behind a token. The same port has the proxy configuration (PAC) for the user's browser.

use crate::board::Board;
use crate::hand::Order;
use crate::pac;
use hikyaku_page::{After, Asked, Body, Gate, Reply, Status};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// What is served.
pub(crate) struct Page {
    gate: Gate,
    board: Arc<Board>,
    /// Hosts that the user's own browser is to reach through the gateway; empty without a PAC file.
    sites: Vec<pac::Site>,
    /// The token of the proxy configuration. It is another one in each run: if the port was somebody else's in the meantime, a
    /// browser has shown them the last one.
    pac: Gate,
}

const INDEX: &[u8] = include_bytes!("../page/index.html");
const SCRIPT: &[u8] = include_bytes!("../page/status.js");
const STYLE: &[u8] = include_bytes!("../page/status.css");

impl Page {
    /// The page at this gate.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub(crate) fn new(gate: Gate, board: Arc<Board>, sites: Vec<pac::Site>) -> io::Result<Self> {
        let pac = Gate::new(gate.socket().port())?;
        Ok(Self { gate, board, sites, pac })
    }

    /// The address of the page.
    pub(crate) fn address(&self) -> String {
        self.gate.address()
    }

    /// The address of the proxy configuration.
    pub(crate) fn pac_address(&self) -> String {
        format!("{}.pac", self.pac.address().trim_end_matches('/'))
    }

    /// The proxy configuration.
    pub(crate) fn pac(&self) -> String {
        pac::script(&self.sites, self.gate.socket())
    }

    /// The whole answer to a request of `program`, if it asks for a page and may have it. A program of another machine may
    /// not.
    pub(crate) fn answer(&self, head: &[u8], program: Option<SocketAddr>) -> Option<Vec<u8>> {
        let is_here = program.is_some_and(|program| program.ip().to_canonical().is_loopback());
        if !is_here {
            return None;
        }
        let reply = match (self.gate.read(head), self.pac.read(head)) {
            (Asked::Path { path, .. }, _) => self.reply(&path),
            (_, Asked::Path { path, .. }) if path == ".pac" && !self.sites.is_empty() => Reply {
                status: Status::Ok,
                kind: "application/x-ns-proxy-autoconfig",
                body: Body::Text(self.pac()),
            },
            _ => return None,
        };
        let mut answer = reply.head(After::Close).into_bytes();
        answer.extend_from_slice(reply.body.bytes());
        Some(answer)
    }

    /// The download that a request of `program` hands over, if it does that and may.
    pub(crate) fn order(&self, head: &[u8], program: Option<SocketAddr>) -> Option<Order> {
        let is_here = program.is_some_and(|program| program.ip().to_canonical().is_loopback());
        match self.gate.read(head) {
            Asked::Path { path, .. } if is_here => {
                Order::read(&path, head, (&self.sites, self.gate.socket()))
            }
            _ => None,
        }
    }

    fn reply(&self, path: &str) -> Reply {
        match path {
            "" => Reply::file("text/html; charset=utf-8", INDEX),
            "status.js" => Reply::file("text/javascript; charset=utf-8", SCRIPT),
            "status.css" => Reply::file("text/css; charset=utf-8", STYLE),
            "status" => Reply::json(self.status()),
            _ => Reply::not_found(),
        }
    }

    fn status(&self) -> String {
        serde_json::to_string(&*self.board.look(Instant::now())).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(page: &Page, path: &str, program: &str) -> Option<String> {
        let rest = page.address().split_once("127.0.0.1:3128/").unwrap().1.to_owned();
        let token = rest.trim_end_matches('/');
        let head = format!("GET /{token}{path} HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n\r\n");
        let answer = page.answer(head.as_bytes(), program.parse().ok())?;
        Some(String::from_utf8(answer).unwrap())
    }

    #[test]
    fn pages_are_for_programs_of_this_machine() {
        let board = Board::new("far".to_owned(), Instant::now());
        let gate = Gate::new(3128).unwrap();
        let page = Page::new(gate, board, Vec::new()).unwrap();
        for (path, wanted) in [
            ("/", "<!doctype html>"),
            ("/status", "\"far\":\"far\""),
            ("/status.js", "fetch"),
            ("/status.css", "color-scheme"),
        ] {
            let answer = ask(&page, path, "127.0.0.1:5000").unwrap();
            assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(wanted), "{answer}");
            assert!(!answer.to_ascii_lowercase().contains("access-control-allow"), "{answer}");
            assert_eq!(ask(&page, path, "192.0.2.1:5000"), None);
        }
        assert!(ask(&page, ".pac", "127.0.0.1:5000").unwrap().starts_with("HTTP/1.1 404"));
        assert!(ask(&page, "/other", "[::1]:5000").unwrap().starts_with("HTTP/1.1 404"));
    }
}
