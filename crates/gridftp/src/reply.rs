//! Replies of a server (RFC 959, section 4.2): a code of three digits, and one or several lines of text.

#[cfg(test)]
mod tests;

/// Bytes of a line, without its end. The longest are those of a handshake, with the names of all authorities.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Bytes of all lines of a reply. The longest are those of listings: some 1000 names.
const REPLY_BYTES_MAX: usize = 1 << 20;

/// A complete reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// Its code, 100 to 699.
    pub code: u16,
    /// Its lines. The first and the last are without code and separator, those between are as they came.
    pub lines: Vec<Vec<u8>>,
}

/// A server sent a line that is no reply.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReplyError {
    /// A line has no end within the limit.
    #[error("the server sends a line of more than {LINE_BYTES_MAX} bytes")]
    LongLine,
    /// A reply of many lines exceeds the limit.
    #[error("the server sends a reply of more than {REPLY_BYTES_MAX} bytes")]
    LongReply,
    /// A reply begins with something else than a code.
    #[error("the server sends a line that is no reply; is this an FTP server?")]
    NoCode,
}

/// Puts replies together from the bytes of a control connection.
///
/// Order of calls: [`handle_bytes`](Self::handle_bytes) with what was read, then [`poll_reply`](Self::poll_reply) until
/// it returns `None`. So it holds at most one reply and what was read at once.
#[derive(Debug, Default)]
pub struct ReplyReader {
    unread: Vec<u8>,
    /// The incomplete reply of several lines, and the number of its bytes.
    begun: Option<(Reply, usize)>,
}

impl Reply {
    /// Preliminary: another reply to the same command follows.
    pub const fn is_preliminary(&self) -> bool {
        self.code < 200
    }

    /// The command is done.
    pub const fn is_done(&self) -> bool {
        self.code >= 200 && self.code < 300
    }

    /// The command is accepted, and another one is expected.
    pub const fn wants_more(&self) -> bool {
        self.code >= 300 && self.code < 400
    }

    /// All lines, separated by `; `.
    pub fn text(&self) -> String {
        let lines = self.lines.iter().map(|line| String::from_utf8_lossy(line));
        let lines: Vec<_> = lines.map(|line| line.trim().to_owned()).collect();
        lines.join("; ")
    }
}

impl ReplyReader {
    /// Nothing was read yet.
    pub const fn new() -> Self {
        Self { unread: Vec::new(), begun: None }
    }

    /// Takes what was read from the connection.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
    }

    /// The next complete reply; `None` if more has to be read.
    ///
    /// # Errors
    /// The server broke a rule. The connection is of no use any more.
    // fuzz: ftp_replies
    pub fn poll_reply(&mut self) -> Result<Option<Reply>, ReplyError> {
        while let Some(line) = self.next_line()? {
            if let Some(reply) = self.handle_line(&line)? {
                return Ok(Some(reply));
            }
        }
        Ok(None)
    }

    fn next_line(&mut self) -> Result<Option<Vec<u8>>, ReplyError> {
        let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') else {
            let is_long = self.unread.len() > LINE_BYTES_MAX + 1;
            return if is_long { Err(ReplyError::LongLine) } else { Ok(None) };
        };
        let mut line: Vec<u8> = self.unread.drain(..=end).collect();
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if line.len() > LINE_BYTES_MAX { Err(ReplyError::LongLine) } else { Ok(Some(line)) }
    }

    fn handle_line(&mut self, line: &[u8]) -> Result<Option<Reply>, ReplyError> {
        let Some((mut reply, bytes)) = self.begun.take() else {
            let (code, separator, text) = split(line).ok_or(ReplyError::NoCode)?;
            let reply = Reply { code, lines: vec![text.to_vec()] };
            if separator == b'-' {
                self.begun = Some((reply, line.len()));
                return Ok(None);
            }
            return Ok(Some(reply));
        };
        // Empty lines count too, or any number of them could come.
        let bytes = bytes + line.len() + 1;
        if bytes > REPLY_BYTES_MAX {
            return Err(ReplyError::LongReply);
        }
        match split(line) {
            Some((code, b' ', text)) if code == reply.code => {
                reply.lines.push(text.to_vec());
                Ok(Some(reply))
            }
            _ => {
                reply.lines.push(line.to_vec());
                self.begun = Some((reply, bytes));
                Ok(None)
            }
        }
    }
}

/// Code, separator and text. A code that ends its line is followed by nothing, which counts as a space.
// fuzz: ftp_replies
fn split(line: &[u8]) -> Option<(u16, u8, &[u8])> {
    let (digits, rest) = line.split_at_checked(3)?;
    let digits = str::from_utf8(digits).ok().filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
    let code = digits.parse().ok().filter(|code| (100..700).contains(code))?;
    match rest.split_first() {
        None => Some((code, b' ', rest)),
        Some((&separator @ (b' ' | b'-'), text)) => Some((code, separator, text)),
        Some(_) => None,
    }
}
