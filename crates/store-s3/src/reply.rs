//! Answers of a server: listings, errors, and the states of uploads, all in XML; and times in headers.

use hikyaku_store::Time;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::Event;
use quick_xml::reader::Reader;

/// An object of a listing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Object {
    pub(crate) key: String,
    pub(crate) size: u64,
    pub(crate) e_tag: Option<String>,
    /// The time of its upload, in whole seconds: not all answers have more.
    pub(crate) written: Time,
}

/// A page of a listing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Listing {
    pub(crate) objects: Vec<Object>,
    /// Common prefixes of further objects, each with the delimiter at its end.
    pub(crate) prefixes: Vec<String>,
    /// The token of the next page.
    pub(crate) next: Option<String>,
}

/// Why a server refuses a request, in its words.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Refusal {
    /// A word such as `NoSuchBucket`.
    pub(crate) code: String,
    pub(crate) message: String,
    /// The region of the bucket, where the request went to another one.
    pub(crate) region: Option<String>,
}

/// The answer is not what it should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the answer is not what an S3 service gives")]
pub(crate) struct BadReply;

/// Elements within each other.
const DEPTH_MAX: usize = 8;

/// Reads a page of a listing (ListObjectsV2).
// fuzz: web
pub(crate) fn listing(text: &str) -> Result<Listing, BadReply> {
    let (mut listing, mut object) = (Listing::default(), Object::default());
    let (mut is_encoded, mut is_listing) = (false, false);
    walk(text, |path, content| {
        match path {
            "ListBucketResult" => is_listing = true,
            "ListBucketResult/EncodingType" => is_encoded = content == "url",
            "ListBucketResult/NextContinuationToken" => listing.next = Some(content.to_owned()),
            "ListBucketResult/Contents/Key" => content.clone_into(&mut object.key),
            "ListBucketResult/Contents/Size" => {
                object.size = content.trim().parse().map_err(|_| BadReply)?;
            }
            "ListBucketResult/Contents/ETag" => object.e_tag = Some(content.trim().to_owned()),
            "ListBucketResult/Contents/LastModified" => {
                object.written = timestamp(content.trim()).unwrap_or_default();
            }
            "ListBucketResult/Contents" => listing.objects.push(std::mem::take(&mut object)),
            "ListBucketResult/CommonPrefixes/Prefix" => listing.prefixes.push(content.to_owned()),
            _ => {}
        }
        Ok(())
    })?;
    if !is_listing {
        return Err(BadReply);
    }
    if is_encoded {
        // The order of the elements is free, so this waits for the end.
        for key in listing.objects.iter_mut().map(|object| &mut object.key) {
            *key = decoded(key).ok_or(BadReply)?;
        }
        for prefix in &mut listing.prefixes {
            *prefix = decoded(prefix).ok_or(BadReply)?;
        }
    }
    Ok(listing)
}

/// Reads the reason of a refusal; empty if the answer has none.
// fuzz: web
pub(crate) fn refusal(text: &str) -> Refusal {
    let mut refusal = Refusal::default();
    let read = walk(text, |path, content| {
        let content = content.trim();
        match path {
            "Error/Code" => content.clone_into(&mut refusal.code),
            "Error/Message" => content.clone_into(&mut refusal.message),
            "Error/Region" => refusal.region = Some(content.to_owned()),
            _ => {}
        }
        Ok(())
    });
    match read {
        Ok(()) => refusal,
        Err(BadReply) => Refusal::default(),
    }
}

/// Reads the number of an upload that has begun.
// fuzz: web
pub(crate) fn upload_id(text: &str) -> Result<String, BadReply> {
    element(text, "InitiateMultipartUpload", "UploadId")
}

/// Reads the entity tag of an upload that is complete. A server may answer with success and an error in the body, if it
/// began to answer before it knew; that is a [`BadReply`] here, and [`refusal`] reads it.
// fuzz: web
pub(crate) fn completed(text: &str) -> Result<String, BadReply> {
    element(text, "CompleteMultipartUpload", "ETag")
}

/// The text of an element directly below the root, whose name begins with `root`: there are servers that leave out its
/// end, `Result`.
fn element(text: &str, root: &str, wanted: &str) -> Result<String, BadReply> {
    let mut found = None;
    walk(text, |path, content| {
        if path.starts_with(root) && path.split('/').skip(1).eq([wanted]) {
            found = Some(content.trim().to_owned());
        }
        Ok(())
    })?;
    found.filter(|found| !found.is_empty()).ok_or(BadReply)
}

/// Calls a function with the path and the text of each element at its end.
fn walk(
    text: &str,
    mut each: impl FnMut(&str, &str) -> Result<(), BadReply>,
) -> Result<(), BadReply> {
    let mut reader = Reader::from_str(text);
    let (mut path, mut ends, mut content) = (String::new(), Vec::new(), String::new());
    loop {
        match reader.read_event().map_err(|_| BadReply)? {
            Event::Start(start) => {
                if ends.len() >= DEPTH_MAX {
                    return Err(BadReply);
                }
                ends.push(path.len());
                if !path.is_empty() {
                    path.push('/');
                }
                path.push_str(start.local_name().into_inner());
                content.clear();
            }
            Event::End(_) => {
                each(&path, &content)?;
                path.truncate(ends.pop().ok_or(BadReply)?);
                content.clear();
            }
            Event::Text(text) => content.push_str(&text),
            Event::CData(text) => content.push_str(&text),
            // Only the five entities of XML itself and characters by number: nothing that could expand.
            Event::GeneralRef(name) => match name.resolve_char_ref() {
                Ok(Some(c)) => content.push(c),
                _ => content.push_str(resolve_xml_entity(&name).ok_or(BadReply)?),
            },
            Event::Eof => break,
            _ => {}
        }
    }
    if ends.is_empty() { Ok(()) } else { Err(BadReply) }
}

/// A key as `encoding-type=url` encodes it: `+` is a space, as in forms.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| (byte? as char).to_digit(16);
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => (digit(rest.next())? << 4 | digit(rest.next())?) as u8,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// A time of a listing in UTC (RFC 3339: `2026-11-26T09:43:51.123Z`), in whole seconds.
// fuzz: web
pub(crate) fn timestamp(text: &str) -> Option<Time> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let time = time.split('.').next().unwrap_or(time);
    let [year, month, day] = numbers(date, '-')?;
    let [hours, minutes, seconds] = numbers(time, ':')?;
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month);
    if !is_date || !(1..=31).contains(&day) || hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    // Years begin in March here, so that a leap day is the last day of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + of_year - DAYS_BEFORE_1970;
    Some(Time { secs: ((days * 24 + hours) * 60 + minutes) * 60 + seconds, nanos: 0 })
}

/// Days from 1 March of the year 0 to 1 January 1970.
const DAYS_BEFORE_1970: i64 = 719_468;

/// Three numbers.
fn numbers(text: &str, between: char) -> Option<[i64; 3]> {
    let mut parts = text.split(between);
    let mut number = || {
        let part = parts.next()?;
        let is_number = part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse().ok().filter(|_| is_number)
    };
    Some([number()?, number()?, number()?])
}

/// A time of a header (RFC 9110, section 5.6.7).
// fuzz: web
pub(crate) fn http_date(text: &str) -> Option<Time> {
    let time = httpdate::parse_http_date(text).ok()?;
    let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Time { secs: i64::try_from(since.as_secs()).ok()?, nanos: 0 })
}

/// The time of a file as other programs note it in the metadata of its object (`x-amz-meta-mtime`): seconds since 1970
/// with a fraction.
// fuzz: web
pub(crate) fn mtime(text: &str) -> Option<Time> {
    let text = text.trim();
    let (secs, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_negative = secs.starts_with('-');
    let secs: i64 = secs.parse().ok()?;
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanos = format!("{:0<9}", fraction.get(..9).unwrap_or(fraction));
    match nanos.parse().ok()? {
        nanos @ 1.. if is_negative => {
            Some(Time { secs: secs.checked_sub(1)?, nanos: 1_000_000_000 - nanos })
        }
        nanos => Some(Time { secs, nanos }),
    }
}

/// The text of a time for `x-amz-meta-mtime`.
pub(crate) fn mtime_text(time: Time) -> String {
    match time {
        Time { secs: ..0, nanos: 1.. } => {
            format!("-{}.{:09}", -(time.secs + 1), 1_000_000_000 - time.nanos)
        }
        Time { secs, nanos } => format!("{secs}.{nanos:09}"),
    }
}

/// The range of a `Content-Range` header, and the size of the whole.
// fuzz: web
pub(crate) fn content_range(text: &str) -> Option<(std::ops::Range<u64>, u64)> {
    let (range, size) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let size = size.parse().ok()?;
    (first <= last && last < size).then(|| (first..last + 1, size))
}

/// Parses `bytes` as each kind of answer. Malformed input is an error and never a panic.
// fuzz: web
pub fn read_anything(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let _ = (listing(text), refusal(text), upload_id(text), completed(text));
    let _ = (timestamp(text), http_date(text));
    if let Some(time) = mtime(text) {
        assert_eq!(mtime(&mtime_text(time)), Some(time));
    }
    if let Some((range, size)) = content_range(text) {
        assert!(range.start < range.end && range.end <= size);
    }
}

#[cfg(test)]
mod tests;
