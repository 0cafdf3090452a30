//! The answer to a request.

use std::sync::Arc;

/// An answer.
pub struct Reply {
    /// Whether the page exists.
    pub status: Status,
    /// The type of the content.
    pub kind: &'static str,
    /// The content.
    pub body: Body,
}

/// The content of an answer.
pub enum Body {
    /// A text that was made for this answer.
    Text(String),
    /// A file that is part of the program.
    Static(&'static [u8]),
    /// Bytes that others have as well.
    Shared(Arc<dyn AsRef<[u8]> + Send + Sync>),
}

/// The status of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// 200.
    Ok,
    /// 404.
    NotFound,
    /// 500.
    Failed,
}

/// The fate of the connection after an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    /// Another request may follow.
    Stay,
    /// It is closed.
    Close,
}

impl Reply {
    /// A text.
    pub fn text(status: Status, text: String) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: Body::Text(text) }
    }

    /// A file that is part of the program.
    pub const fn file(kind: &'static str, bytes: &'static [u8]) -> Self {
        Self { status: Status::Ok, kind, body: Body::Static(bytes) }
    }

    /// A text of JSON.
    pub const fn json(text: String) -> Self {
        Self { status: Status::Ok, kind: "application/json", body: Body::Text(text) }
    }

    /// There is no such page.
    pub fn not_found() -> Self {
        Self::text(Status::NotFound, "not found".to_owned())
    }

    /// The head of the answer. Pages may load what comes from here only, and no page may frame them; no other origin may
    /// read them (there are no CORS headers).
    pub fn head(&self, after: After) -> String {
        let status = match self.status {
            Status::Ok => "200 OK",
            Status::NotFound => "404 Not Found",
            Status::Failed => "500 Failed",
        };
        let close = match after {
            After::Stay => "",
            After::Close => "Connection: close\r\n",
        };
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{close}Cache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\n\
             Content-Security-Policy: default-src 'self'; img-src 'self' data:; frame-ancestors 'none'\r\n\r\n",
            self.kind,
            self.body.bytes().len()
        )
    }
}

impl Body {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Static(bytes) => bytes,
            Self::Shared(bytes) => (**bytes).as_ref(),
        }
    }
}
