//! A service of buckets for tests: moto's server, from a registry of Python packages.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A server with one bucket, `bucket`. It ends with the test.
pub(crate) struct Moto {
    server: Child,
    port: u16,
}

/// What is missing where there is none.
pub(crate) const MISSING: &str = "no moto_server in PATH (try: pip install 'moto[server]')";

/// The server does not look at the signature, and gives nobody a file without one.
const USER: &str = "Authorization: AWS4-HMAC-SHA256 Credential=id/20260101/us-east-1/s3/aws4_request, \
                    SignedHeaders=host, Signature=0";

/// A server has so long to begin.
const START_TIME: Duration = Duration::from_secs(60);

impl Moto {
    /// `None` if there is no such program.
    pub(crate) fn up() -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("moto_server");
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let moto = Self { server: command.spawn().ok()?, port };
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begin.elapsed() < START_TIME, "the server does not start");
            thread::sleep(Duration::from_millis(50));
        }
        assert!(moto.ask("PUT", "", b"").0, "the bucket cannot be made");
        Some(moto)
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What the program needs to find its user's keys.
    pub(crate) fn credentials(command: &mut Command) {
        command.env_remove("AWS_PROFILE");
        command.env("AWS_ACCESS_KEY_ID", "id").env("AWS_SECRET_ACCESS_KEY", "secret");
    }

    pub(crate) fn put(&self, key: &str, bytes: &[u8]) {
        assert!(self.ask("PUT", &format!("/{key}"), bytes).0, "{key}");
    }

    pub(crate) fn get(&self, key: &str) -> Vec<u8> {
        let (is_there, bytes) = self.ask("GET", &format!("/{key}"), b"");
        assert!(is_there, "{key}");
        bytes
    }

    /// Keys that begin so, in order. They have no letters that XML escapes.
    pub(crate) fn keys(&self, prefix: &str) -> Vec<String> {
        let (_, listing) = self.ask("GET", &format!("?list-type=2&prefix={prefix}"), b"");
        let listing = String::from_utf8(listing).unwrap();
        let keys = listing.split("<Key>").skip(1);
        keys.map(|rest| rest.split("</Key>").next().unwrap().to_owned()).collect()
    }

    pub(crate) fn remove(&self, prefix: &str) {
        for key in self.keys(prefix) {
            self.ask("DELETE", &format!("/{key}"), b"");
        }
    }

    /// Whether it was done, and the body of the answer.
    fn ask(&self, method: &str, what: &str, body: &[u8]) -> (bool, Vec<u8>) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let length = body.len();
        let head = format!(
            "{method} /bucket{what} HTTP/1.0\r\nHost: localhost\r\n{USER}\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let body = answer.split_off(end + 4);
        let status = String::from_utf8_lossy(&answer).split(' ').nth(1).map(str::to_owned);
        (status.is_some_and(|status| status.starts_with('2')), body)
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
