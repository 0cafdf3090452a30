//! Requests to a bucket: objects, listings and uploads.

use crate::error::S3Error;
use crate::reply::{self, Listing, Refusal};
use crate::wire::{Ask, Wire};
use bytes::Bytes;
use hikyaku_store::{Found, Identity, Kind, Owner, Time, Version};
use http::{HeaderMap, Method};

/// The metadata of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) size: u64,
    pub(crate) e_tag: Option<String>,
    /// When it was written to the bucket.
    pub(crate) written: Time,
    /// The time of the file that it was copied from, if the writer has noted it.
    pub(crate) modified: Option<Time>,
}

/// A page of a listing that is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page<'a> {
    /// The prefix of all keys.
    pub(crate) prefix: &'a str,
    pub(crate) depth: Depth,
    /// Maximum number of entries; a server sends 1,000 at most.
    pub(crate) room: usize,
    /// The continuation of the page before.
    pub(crate) after: Option<&'a str>,
}

/// How deep a listing goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Depth {
    /// Keys up to the next slash; keys with more are listed as a prefix.
    Names,
    /// All keys.
    All,
}

/// The condition on the object that a write replaces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    None,
    /// There is none.
    Absent,
    /// It has this entity tag.
    Is(String),
}

/// The names of a page at most.
pub(crate) const PAGE_ROOM: usize = 1000;

impl Condition {
    fn of(&self, ask: Ask) -> Ask {
        match self {
            Self::None => ask,
            Self::Absent => ask.header("if-none-match", "*"),
            Self::Is(e_tag) => ask.header("if-match", e_tag),
        }
    }
}

impl Wire {
    /// The metadata of an object; `None` if it does not exist.
    pub(crate) async fn head(&self, key: &str) -> Result<Option<Head>, S3Error> {
        match self.send(&Ask::new(Method::HEAD, key)).await {
            Ok(response) => Ok(Some(Head::of(response.headers())?)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A page of a listing.
    pub(crate) async fn list(&self, page: &Page<'_>) -> Result<Listing, S3Error> {
        let mut ask = Ask::new(Method::GET, "")
            .query("list-type", "2")
            .query("encoding-type", "url")
            .query("max-keys", page.room.clamp(1, PAGE_ROOM).to_string())
            .query("prefix", page.prefix);
        if page.depth == Depth::Names {
            ask = ask.query("delimiter", "/");
        }
        if let Some(after) = page.after {
            ask = ask.query("continuation-token", after);
        }
        let (_, text) = self.text(&ask).await?;
        reply::listing(&text).map_err(|_| S3Error::Broken("what it lists is no listing"))
    }

    /// Whether there is any object whose key begins with this.
    pub(crate) async fn has_any(&self, prefix: &str) -> Result<bool, S3Error> {
        let page = Page { prefix, depth: Depth::All, room: 1, after: None };
        self.list(&page).await.map(|listing| !listing.objects.is_empty())
    }

    /// Writes an object at once. Returns its entity tag.
    pub(crate) async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        modified: Option<Time>,
        condition: &Condition,
    ) -> Result<Option<String>, S3Error> {
        let ask = with_time(Ask::new(Method::PUT, key).body(bytes), modified);
        let response = self.send(&condition.of(ask)).await?;
        Ok(e_tag(response.headers()))
    }

    /// Removes an object. It is no error if there is none.
    pub(crate) async fn delete(&self, key: &str) -> Result<(), S3Error> {
        self.send(&Ask::new(Method::DELETE, key)).await.map(drop)
    }

    /// Begins an upload in parts. Returns its number.
    pub(crate) async fn begin(&self, key: &str, modified: Option<Time>) -> Result<String, S3Error> {
        let ask = Ask::new(Method::POST, key).query("uploads", "");
        let (_, text) = self.text(&with_time(ask, modified)).await?;
        reply::upload_id(&text).map_err(|_| S3Error::Broken("an upload begins without a number"))
    }

    /// Writes a part, the first of which is 1. Returns its entity tag.
    pub(crate) async fn part(
        &self,
        (key, upload): (&str, &str),
        number: u64,
        bytes: Bytes,
    ) -> Result<String, S3Error> {
        let ask = Ask::new(Method::PUT, key)
            .query("partNumber", number.to_string())
            .query("uploadId", upload)
            .body(bytes);
        let response = self.send(&ask).await?;
        e_tag(response.headers()).ok_or(S3Error::Broken("a part has no entity tag"))
    }

    /// Makes an object of the parts of an upload, in the order of `tags`. Returns its entity tag.
    pub(crate) async fn complete(
        &self,
        (key, upload): (&str, &str),
        tags: &[String],
        condition: &Condition,
    ) -> Result<String, S3Error> {
        let mut body = String::from("<CompleteMultipartUpload>");
        for (number, tag) in (1..).zip(tags) {
            let tag = tag.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
            body.push_str(&format!(
                "<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
            ));
        }
        body.push_str("</CompleteMultipartUpload>");
        let ask = Ask::new(Method::POST, key).query("uploadId", upload).body(body);
        let (_, text) = self.text(&condition.of(ask)).await?;
        reply::completed(&text).map_err(|_| match reply::refusal(&text) {
            Refusal { code, .. } if code.is_empty() => {
                S3Error::Broken("an upload ends without an entity tag")
            }
            // The status had been sent before the reason was known.
            Refusal { code, message, region } => {
                S3Error::Refused { status: 500, code, message, region }
            }
        })
    }

    /// Drops an upload and its parts, also after everything was stopped.
    pub(crate) async fn abort(&self, (key, upload): (&str, &str)) -> Result<(), S3Error> {
        self.send_again(&Ask::new(Method::DELETE, key).query("uploadId", upload)).await.map(drop)
    }
}

fn with_time(ask: Ask, modified: Option<Time>) -> Ask {
    match modified {
        Some(time) => ask.header("x-amz-meta-mtime", reply::mtime_text(time)),
        None => ask,
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

pub(crate) fn e_tag(headers: &HeaderMap) -> Option<String> {
    text(headers, "etag").map(str::to_owned)
}

impl Head {
    fn of(headers: &HeaderMap) -> Result<Self, S3Error> {
        let size = text(headers, "content-length").and_then(|text| text.parse().ok());
        let written = text(headers, "last-modified").and_then(reply::http_date);
        Ok(Self {
            size: size.ok_or(S3Error::Broken("an object has no size"))?,
            e_tag: e_tag(headers),
            written: written.unwrap_or_default(),
            modified: text(headers, "x-amz-meta-mtime").and_then(reply::mtime),
        })
    }

    /// The object as an entry of a store.
    pub(crate) fn found(&self, key: &str) -> Found {
        Found {
            kind: Kind::File,
            size: self.size,
            allocated: self.size,
            mode: FILE_MODE,
            owner: Owner::default(),
            modified: self.modified.unwrap_or(self.written),
            identity: identity(key),
            version: self.version(),
        }
    }

    /// An entity tag is a hash of the content, or of the hashes of its parts, or drawn anew for each write.
    pub(crate) fn version(&self) -> Option<Version> {
        let mut hash = blake3::Hasher::new();
        hash.update(&self.size.to_le_bytes());
        hash.update(plain(self.e_tag.as_ref()?).as_bytes());
        Some(Version(*hash.finalize().as_bytes()))
    }
}

/// An entity tag without quotes: there are servers that leave them out in listings.
pub(crate) fn plain(e_tag: &str) -> &str {
    e_tag.trim_matches('"')
}

/// The mode of files, which a bucket does not store: readable for all users.
const FILE_MODE: u32 = 0o644;
const DIR_MODE: u32 = 0o755;

/// A directory as an entry of a store.
pub(crate) fn dir(key: &str) -> Found {
    Found {
        kind: Kind::Dir,
        size: 0,
        allocated: 0,
        mode: DIR_MODE,
        owner: Owner::default(),
        modified: Time::default(),
        identity: identity(key),
        version: None,
    }
}

fn identity(key: &str) -> Identity {
    let hash = blake3::hash(key.as_bytes());
    let mut number = [0; 8];
    number.copy_from_slice(&hash.as_bytes()[..8]);
    Identity { device: 0, number: u64::from_le_bytes(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_of_size_and_tag_with_quotes_or_without() {
        let version = |size, tag: &str| {
            let e_tag = Some(tag.to_owned());
            Head { size, e_tag, written: Time::default(), modified: None }.version()
        };
        assert_eq!(version(5, "\"a\""), version(5, "a"));
        assert_ne!(version(5, "a"), version(6, "a"));
        assert_ne!(version(5, "a"), version(5, "b"));
        let none = Head { size: 5, e_tag: None, written: Time::default(), modified: None };
        assert_eq!(none.version(), None);
    }
}
