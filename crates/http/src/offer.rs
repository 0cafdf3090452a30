//! The offer of a server for a URL: the size and the version of the file, and whether the server sends parts.

use crate::digest::{Digest, digests_of};
use crate::fault::Fault;
use crate::head::Head;
use crate::range::ContentRange;
use std::ops::Range;
use std::time::SystemTime;

/// The version of a file (RFC 9110, section 8.8).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Version {
    /// The value of `ETag`, strong or weak.
    pub etag: Option<String>,
    /// The value of `Last-Modified`.
    pub modified: Option<String>,
    /// The value of `If-Range`: a strong ETag, or a date that is strong by section 8.8.2.2.
    pub if_range: Option<String>,
}

/// The description of a file in an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// Bytes of the whole file.
    pub total: Option<u64>,
    /// Whether the server sends parts.
    pub parts: Parts,
    /// The version of the file.
    pub version: Version,
    /// The date in `Last-Modified`.
    pub modified: Option<SystemTime>,
    /// The value of `Content-Encoding`, in lower case: all sizes and offsets are those of the coded file.
    pub encoding: Option<String>,
    /// Digests of the whole file.
    pub digests: Vec<Digest>,
    /// The value of `Content-Disposition`.
    pub disposition: Option<String>,
}

/// The first offer for a file, and the proof that its parts belong together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// The offer.
    pub offer: Offer,
    /// The proof.
    pub proof: Proof,
}

/// The proof that the parts of several answers are of one file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proof {
    /// None: two versions of the file look the same.
    None,
    /// Each answer names the version.
    Version,
    /// A digest of the whole, or of its pieces, is compared at the end.
    Digest,
}

/// Whether a server sends parts of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parts {
    /// The server has sent one.
    Sent,
    /// The server has sent the whole file instead of one.
    Refused,
}

impl Version {
    fn of(head: &Head) -> Self {
        let etag = head.one("etag").filter(|etag| !etag.is_empty()).map(str::to_owned);
        let modified = head.one("last-modified").map(str::to_owned);
        let strong = etag.clone().filter(|etag| etag.starts_with('"'));
        let age = || {
            let (now, modified) = (head.one("date")?, head.one("last-modified")?);
            date(now)?.duration_since(date(modified)?).ok()
        };
        // A date is strong only if the file was not changed in the second of its answer.
        let age = age().map(|age| age.as_secs());
        let strong_date = modified.clone().filter(|_| age.is_some_and(|seconds| seconds >= 1));
        // With a weak tag the date may be as weak: a server makes both from the same time.
        let if_range = if etag.is_some() { strong } else { strong_date };
        // The file may change once more in that second, and keep the date.
        let modified = modified.filter(|_| age != Some(0));
        Self { etag, modified, if_range }
    }

    /// A strong entity tag.
    pub fn strong_tag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| etag.starts_with('"'))
    }

    /// Whether the server names the version, so that two versions differ.
    pub const fn is_named(&self) -> bool {
        self.etag.is_some() || self.modified.is_some()
    }

    /// Whether an answer with the version `other` may be of another version than this one.
    const fn is_lost_in(&self, other: &Self) -> bool {
        match (&self.etag, &other.etag) {
            (Some(_), None) => true,
            (Some(_), Some(_)) => false,
            // An answer to `If-Range` need not repeat the date (RFC 9110, section 15.3.7).
            (None, _) => self.if_range.is_none() && other.modified.is_none(),
        }
    }

    /// Whether the fields that both have are equal. `None` if there is no such field.
    fn is_same(&self, other: &Self) -> Option<bool> {
        let compare = |a: &Option<String>, b: &Option<String>| Some(a.as_ref()? == b.as_ref()?);
        let etags = compare(&self.etag, &other.etag);
        let dates = compare(&self.modified, &other.modified);
        match (etags, dates) {
            (None, None) => None,
            (etags, dates) => Some(etags.unwrap_or(true) && dates.unwrap_or(true)),
        }
    }
}

impl Offer {
    /// The offer of an answer to a request for the range `asked`, or for the whole file.
    ///
    /// # Errors
    ///
    /// The answer does not fit the request.
    pub fn of(head: &Head, asked: Option<&Range<u64>>) -> Result<Self, Fault> {
        let encoding = head.one("content-encoding").map(str::to_ascii_lowercase);
        let mut offer = Self {
            total: head.length,
            parts: Parts::Refused,
            version: Version::of(head),
            modified: head.one("last-modified").and_then(date),
            encoding: encoding.filter(|encoding| encoding != "identity"),
            digests: digests_of(head),
            disposition: head.one("content-disposition").map(str::to_owned),
        };
        if head.status == 206 {
            let asked = asked.ok_or(Fault::Lie("sends a part that was not asked for"))?;
            let (_, total) = part(head, asked)?;
            offer.total = total;
            offer.parts = Parts::Sent;
        }
        Ok(offer)
    }

    /// The proof that parts of this file belong together, for a caller that compares the digests of the offer.
    pub const fn proof(&self) -> Proof {
        match self.version.is_named() {
            _ if !self.digests.is_empty() => Proof::Digest,
            true => Proof::Version,
            false => Proof::None,
        }
    }

    /// Checks an answer with the whole file before a byte of it is used.
    ///
    /// # Errors
    ///
    /// The answer is of another version, or does not name its version and `proof` needs it.
    pub fn check_whole(&self, other: &Self, proof: Proof) -> Result<(), Fault> {
        if self.version.is_same(&other.version) == Some(false) || other.total != self.total {
            return Err(Fault::Changed);
        }
        self.check_more(other, proof)
    }

    /// Checks the coding of an answer, and whether it names its version if `proof` needs that.
    fn check_more(&self, other: &Self, proof: Proof) -> Result<(), Fault> {
        if other.encoding != self.encoding {
            return Err(Fault::Lie("sends a part in another coding than the file"));
        }
        match proof {
            Proof::Version if self.version.is_lost_in(&other.version) => Err(Fault::Unrecognised),
            Proof::None | Proof::Version | Proof::Digest => Ok(()),
        }
    }

    /// Checks an answer to a request for a range of this file before a byte of it is used. Its range may end earlier than
    /// the requested one.
    ///
    /// # Errors
    ///
    /// The answer has another file or range, or does not name its version and `proof` needs it.
    pub fn check_part(
        &self,
        head: &Head,
        asked: &Range<u64>,
        proof: Proof,
    ) -> Result<Range<u64>, Fault> {
        let other = Self::of(head, Some(asked))?;
        let is_same = self.version.is_same(&other.version);
        if is_same == Some(false) {
            return Err(Fault::Changed);
        }
        if other.parts == Parts::Refused {
            // A file with the same version was not changed: the server does not give a part of it.
            let is_whole = is_same == Some(true) && self.total == other.total;
            return Err(if is_whole { Fault::NoRanges } else { Fault::Changed });
        }
        if other.total.is_some() && other.total != self.total {
            return Err(Fault::Changed);
        }
        self.check_more(&other, proof)?;
        Ok(part(head, asked)?.0)
    }
}

/// Whether two servers have the same file, as far as their offers show.
pub(crate) fn check_same(offer: &Offer, known: &Offer) -> Result<(), Fault> {
    if let (Some(one), Some(other)) = (offer.total, known.total)
        && one != other
    {
        return Err(Fault::OtherFile(format!("{one} bytes in place of {other}")));
    }
    for digest in &offer.digests {
        let others = known.digests.iter().filter(|other| other.function == digest.function);
        if others.into_iter().any(|other| other != digest) {
            return Err(Fault::OtherFile(format!("it tells another {}", digest.function)));
        }
    }
    Ok(())
}

fn date(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text).ok()
}

/// The range of a 206 and the size of its file.
fn part(head: &Head, asked: &Range<u64>) -> Result<(Range<u64>, Option<u64>), Fault> {
    let text = head.one("content-range");
    let told = text.and_then(ContentRange::parse);
    let told = told.ok_or(Fault::Lie("sends a part and does not say which"))?;
    if told.range.start != asked.start || told.range.end > asked.end {
        return Err(Fault::Lie("sends another part than was asked for"));
    }
    let length = told.range.end - told.range.start;
    if head.length.is_some_and(|told| told != length) {
        return Err(Fault::Lie("sends a part whose length is another one than it says"));
    }
    Ok((told.range, told.total))
}

#[cfg(test)]
mod tests;
