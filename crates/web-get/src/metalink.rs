//! Metalink 4 (RFC 5854): a file's size, digests, pieces and mirrors, as XML.

use hikyaku_http::{Digest, Function, Offer, Proof, Url};
use quick_xml::Reader;
use quick_xml::escape::{resolve_xml_entity, unescape};
use quick_xml::events::{BytesStart, Event};

/// Octets of a Metalink file at most.
pub(crate) const METALINK_BYTES_MAX: usize = 16 << 20;
/// Files in a Metalink file at most.
const FILES_MAX: usize = 10_000;
/// Mirrors of a file that are kept, in the order of their priorities.
const MIRRORS_MAX: usize = 64;
/// Elements within each other.
const DEPTH_MAX: usize = 32;

/// A file that can be fetched.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Described {
    /// As the Metalink file has it: not checked.
    pub(crate) name: String,
    pub(crate) expect: Expect,
    /// The best first.
    pub(crate) urls: Vec<Url>,
}

/// The expected size and digests of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Expect {
    pub(crate) size: Option<u64>,
    pub(crate) digests: Vec<Digest>,
    pub(crate) pieces: Option<Pieces>,
}

/// Digests of the pieces of a file. All have the same length, except the last one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pieces {
    pub(crate) length: u64,
    pub(crate) digests: Vec<Digest>,
}

/// A Metalink file cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum MetalinkError {
    #[error("it is no XML: {0}")]
    Xml(String),
    #[error("it is no Metalink 4 file")]
    Other,
    #[error("it has more than 10,000 files")]
    Many,
    #[error("a number or digest in it is wrong: {0}")]
    Value(String),
}

/// The state of the parser, element by element.
#[derive(Default)]
struct Parser {
    /// Names of the open elements.
    path: Vec<String>,
    text: String,
    files: Vec<Described>,
    mirrors: Vec<(u64, Url)>,
    /// The attributes of the element that is read: `type`, `priority`.
    function: Option<Function>,
    priority: u64,
    pieces: Option<(Function, Pieces)>,
}

/// Reads a Metalink file.
// fuzz: web
pub(crate) fn parse(text: &str) -> Result<Vec<Described>, MetalinkError> {
    let (mut reader, mut parser) = (Reader::from_str(text), Parser::default());
    loop {
        let event = reader.read_event().map_err(|error| MetalinkError::Xml(error.to_string()))?;
        match event {
            Event::Start(start) => parser.start(&start)?,
            Event::Empty(start) => {
                parser.start(&start)?;
                parser.end()?;
            }
            Event::Text(text) => parser.text.push_str(&text),
            Event::CData(text) => parser.text.push_str(&text),
            // Only the five entities of XML itself and characters by number: nothing that could expand.
            Event::GeneralRef(name) => match name.resolve_char_ref() {
                Ok(Some(c)) => parser.text.push(c),
                _ => {
                    let unknown =
                        || MetalinkError::Xml("an entity that XML does not have".to_owned());
                    parser.text.push_str(resolve_xml_entity(&name).ok_or_else(unknown)?);
                }
            },
            Event::End(_) => parser.end()?,
            Event::Eof => break,
            _ => {}
        }
    }
    if parser.files.is_empty() { Err(MetalinkError::Other) } else { Ok(parser.files) }
}

impl Parser {
    fn start(&mut self, start: &BytesStart<'_>) -> Result<(), MetalinkError> {
        let name = start.local_name().into_inner().to_owned();
        if self.path.len() >= DEPTH_MAX || self.path.is_empty() && name != "metalink" {
            return Err(MetalinkError::Other);
        }
        self.path.push(name);
        self.text.clear();
        let attribute = |name: &str| {
            let found = start.attributes().flatten();
            let mut found = found.filter(|attribute| attribute.key.into_inner() == name);
            Some(found.next()?.value.into_owned())
        };
        let function = || attribute("type").as_deref().and_then(Function::parse);
        match self.place().as_str() {
            "file" => {
                if self.files.len() >= FILES_MAX {
                    return Err(MetalinkError::Many);
                }
                let name = attribute("name").unwrap_or_default();
                let name = unescape(&name).map_or_else(|_| name.clone(), |name| name.into_owned());
                self.files.push(Described { name, ..Described::default() });
                self.mirrors.clear();
                self.pieces = None;
            }
            "file/hash" => self.function = function(),
            "file/url" => {
                let priority = attribute("priority").and_then(|text| text.trim().parse().ok());
                // RFC 5854, section 4.2.16.1: without one it is the last.
                self.priority = priority.unwrap_or(999_999);
            }
            "file/pieces" => {
                let length = attribute("length").unwrap_or_default();
                let length = length.trim().parse().ok().filter(|&length: &u64| length > 0);
                let length = length.ok_or_else(|| MetalinkError::Value("pieces".to_owned()))?;
                let pieces = Pieces { length, digests: Vec::new() };
                self.pieces = function().map(|function| (function, pieces));
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), MetalinkError> {
        let place = self.place();
        self.path.pop();
        let text = std::mem::take(&mut self.text);
        let text = text.trim();
        let Some(file) = self.files.last_mut() else { return Ok(()) };
        let value = || MetalinkError::Value(text.chars().take(80).collect());
        match place.as_str() {
            "file/size" => file.expect.size = Some(text.parse().map_err(|_| value())?),
            "file/hash" => {
                if let Some(function) = self.function.take() {
                    let digest = Digest::parse(function, text).ok_or_else(value)?;
                    file.expect.digests.push(digest);
                }
            }
            "file/pieces/hash" => {
                if let Some((function, pieces)) = &mut self.pieces {
                    pieces.digests.push(Digest::parse(*function, text).ok_or_else(value)?);
                }
            }
            "file/url" => {
                // Mirrors of other kinds, such as ftp, are for other programs.
                if let Ok(url) = Url::parse(text) {
                    self.mirrors.push((self.priority, url));
                }
            }
            "file" => {
                file.expect.pieces = self.pieces.take().map(|(_, pieces)| pieces);
                self.mirrors.sort_by_key(|(priority, _)| *priority);
                let urls = self.mirrors.drain(..).map(|(_, url)| url);
                file.urls = urls.take(MIRRORS_MAX).collect();
            }
            _ => {}
        }
        Ok(())
    }

    /// The path of the open element below the root.
    fn place(&self) -> String {
        self.path.iter().skip(1).map(String::as_str).collect::<Vec<_>>().join("/")
    }
}

impl Expect {
    /// The proof that parts of the file of an offer belong together.
    pub(crate) fn proof(&self, offer: &Offer) -> Proof {
        let has_pieces = || offer.total.is_some_and(|total| self.has_pieces_for(total));
        if !self.digests.is_empty() || has_pieces() { Proof::Digest } else { offer.proof() }
    }

    /// Whether the digests of pieces cover a file of this size exactly.
    pub(crate) fn has_pieces_for(&self, size: u64) -> bool {
        let count = |pieces: &Pieces| size.div_ceil(pieces.length);
        self.pieces.as_ref().is_some_and(|pieces| count(pieces) == pieces.digests.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<metalink xmlns="urn:ietf:params:xml:ns:metalink">
  <file name="a &amp; b.iso">
    <size>10</size>
    <hash type="md5">00</hash>
    <hash type="sha-256">e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855</hash>
    <pieces length="8" type="sha-1">
      <hash>da39a3ee5e6b4b0d3255bfef95601890afd80709</hash>
      <hash>da39a3ee5e6b4b0d3255bfef95601890afd80709</hash>
    </pieces>
    <url location="de">http://c.org/x?a=1&amp;b=2</url>
    <url priority="2">ftp://b.org/x</url>
    <url priority="1">https://a.org/x</url>
  </file>
</metalink>"#;

    #[test]
    fn a_file_has_digests_and_mirrors() {
        let files = parse(EXAMPLE).unwrap();
        let [file] = files.as_slice() else { panic!("{files:?}") };
        assert_eq!((file.name.as_str(), file.expect.size), ("a & b.iso", Some(10)));
        assert_eq!(file.expect.digests.len(), 1);
        let targets: Vec<_> = file.urls.iter().map(|url| url.target.as_str()).collect();
        assert_eq!(targets, ["/x", "/x?a=1&b=2"]);
        assert!(file.expect.has_pieces_for(10) && !file.expect.has_pieces_for(17));
    }

    #[test]
    fn what_is_no_metalink_is_an_error() {
        let deep = format!("<metalink>{}", "<a>".repeat(100));
        let wrong = EXAMPLE.replace("<size>10", "<size>ten");
        let none = EXAMPLE.replace("length=\"8\"", "length=\"0\"");
        let bomb = EXAMPLE.replace("a=1&amp;", "&lol9;");
        for text in ["", "a", "<html></html>", "<metalink></metalink>", &deep, &wrong, &none, &bomb]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
