//! What answers at a port where a daemon was expected, by the first bytes that it sends.

use std::io::{self, Read, Write};

/// A stream whose first bytes from the peer are kept.
pub(super) struct Overheard<S> {
    stream: S,
    first: Vec<u8>,
}

/// Bytes that tell services apart.
const FIRST_BYTES: usize = 8;
/// How the services begin that speak without TLS, and what they are.
const GREETINGS: [(&[u8], &str); 5] = [
    (b"SSH-", "an SSH server"),
    (b"HTTP/", "a web server (HTTP)"),
    (b"220", "an FTP or mail server"),
    (b"RFB ", "a VNC server"),
    (b"@RSYNCD:", "an rsync daemon"),
];
/// Types of TLS records that a handshake may begin with: an alert and a handshake message (RFC 8446, section 5.1).
const RECORDS: [u8; 2] = [21, 22];

impl<S> Overheard<S> {
    pub(super) const fn new(stream: S) -> Self {
        Self { stream, first: Vec::new() }
    }

    /// What the peer is; `None` if its first bytes do not tell.
    pub(super) fn service(&self) -> Option<&'static str> {
        let known = GREETINGS.iter().find(|(greeting, _)| self.first.starts_with(greeting));
        let is_tls = matches!(&self.first[..], [kind, 3, ..] if RECORDS.contains(kind));
        known.map(|(_, service)| *service).or_else(|| {
            is_tls.then_some(
                "a TLS server of another kind, such as HTTPS, or another version of hikyaku",
            )
        })
    }
}

impl<S: Read> Read for Overheard<S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = self.stream.read(out)?;
        let room = FIRST_BYTES - self.first.len();
        self.first.extend_from_slice(&out[..length.min(room)]);
        Ok(length)
    }
}

impl<S: Write> Write for Overheard<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_known_by_their_first_bytes_however_these_come() {
        let cases: [(&[u8], &str); 7] = [
            (b"SSH-2.0-OpenSSH_9.9\r\n", "SSH"),
            (b"HTTP/1.1 400 Bad Request\r\n", "web"),
            (b"220 ready\r\n", "FTP"),
            (b"@RSYNCD: 31.0\n", "rsync"),
            (&[21, 3, 3, 0, 2, 2, 40], "TLS"),
            (&[22, 3, 3, 0, 122, 2, 0], "TLS"),
            (b"\x00\x01", ""),
        ];
        for (bytes, service) in cases {
            let mut stream = Overheard::new(bytes);
            let mut one = [0];
            while stream.read(&mut one).unwrap() > 0 {}
            let known = stream.service().unwrap_or_default();
            assert!(known.contains(service) && known.is_empty() == service.is_empty(), "{known}");
        }
    }
}
