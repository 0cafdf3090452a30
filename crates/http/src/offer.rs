//! What a server has under a URL: its size, its version, and whether parts of it can be asked for.

use crate::digest::{Digest, digests_of};
use crate::metalink::Expect;
use hikyaku_http::{ContentRange, Fault, Head};
use std::ops::Range;

/// How a file is recognised as the same one (RFC 9110, section 8.8).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Version {
    /// The value of `ETag`, strong or weak.
    pub(crate) etag: Option<String>,
    /// The value of `Last-Modified`.
    pub(crate) modified: Option<String>,
    /// What may stand in `If-Range`: a strong ETag, or a date that is strong by section 8.8.2.2.
    pub(crate) if_range: Option<String>,
}

/// What an answer says of its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Offer {
    /// Bytes of the whole file.
    pub(crate) total: Option<u64>,
    pub(crate) parts: Parts,
    pub(crate) version: Version,
    /// The value of `Content-Encoding`: the bytes that are counted are coded.
    encoding: Option<String>,
    /// Digests of the whole file.
    pub(crate) digests: Vec<Digest>,
    /// The value of `Content-Disposition`.
    pub(crate) disposition: Option<String>,
}

/// A file as its first server has told of it, and how its parts are known to belong together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Known {
    pub(crate) offer: Offer,
    pub(crate) proof: Proof,
}

/// How parts that come by several answers are known to be of one file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Proof {
    /// They are not: two versions of the file could not be told apart.
    None,
    /// Each answer names the version.
    Version,
    /// A digest of the whole, or of its pieces, is compared at the end.
    Digest,
}

/// Whether parts of a file can be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Parts {
    /// The server has sent one.
    Sent,
    /// The server has sent the whole file in place of one.
    Refused,
}

impl Version {
    fn of(head: &Head) -> Self {
        let etag = head.one("etag").filter(|etag| !etag.is_empty()).map(str::to_owned);
        let modified = head.one("last-modified").map(str::to_owned);
        let strong = etag.clone().filter(|etag| etag.starts_with('"'));
        let age = || {
            let (date, modified) = (head.one("date")?, head.one("last-modified")?);
            let time = |text| httpdate::parse_http_date(text).ok();
            time(date)?.duration_since(time(modified)?).ok()
        };
        // A date is strong only if the file was not changed in the second of its answer.
        let age = age().map(|age| age.as_secs());
        let date = modified.clone().filter(|_| age.is_some_and(|seconds| seconds >= 1));
        // With a weak tag the date may be as weak: a server makes both from the same time.
        let if_range = if etag.is_some() { strong } else { date };
        // The file may change once more in that second, and keep the date.
        let modified = modified.filter(|_| age != Some(0));
        Self { etag, modified, if_range }
    }

    /// Whether two versions of the file differ in what the server tells of them.
    const fn is_told(&self) -> bool {
        self.etag.is_some() || self.modified.is_some()
    }

    /// Whether an answer that names the version `other` leaves open whether it is this one.
    const fn is_lost_in(&self, other: &Self) -> bool {
        match (&self.etag, &other.etag) {
            (Some(_), None) => true,
            (Some(_), Some(_)) => false,
            // An answer to `If-Range` need not repeat the date (RFC 9110, section 15.3.7).
            (None, _) => self.if_range.is_none() && other.modified.is_none(),
        }
    }

    /// Whether both say the same in what both say. `None` if they have nothing in common to compare.
    pub(crate) fn is_same(&self, other: &Self) -> Option<bool> {
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
    /// What an answer offers. `asked` is the range that was asked for, if one was.
    ///
    /// # Errors
    /// The answer is not to the question.
    pub(crate) fn of(head: &Head, asked: Option<&Range<u64>>) -> Result<Self, Fault> {
        let encoding = head.one("content-encoding").map(str::to_ascii_lowercase);
        let mut offer = Self {
            total: head.content_length()?,
            parts: Parts::Refused,
            version: Version::of(head),
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

    /// How parts of this file are known to belong together.
    pub(crate) fn proof(&self, expect: &Expect) -> Proof {
        let has_digest = !self.digests.is_empty() || !expect.digests.is_empty();
        let has_pieces = || self.total.is_some_and(|total| expect.has_pieces_for(total));
        match self.version.is_told() {
            _ if has_digest || has_pieces() => Proof::Digest,
            true => Proof::Version,
            false => Proof::None,
        }
    }

    /// Checks an answer to the question for a range of this file before a byte of it is used. The range that it has may
    /// end earlier than the one that was asked for.
    ///
    /// # Errors
    /// It is another file, or another range, or `proof` is needed and not there.
    pub(crate) fn check_part(
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
        if other.encoding != self.encoding {
            return Err(Fault::Lie("sends a part in another coding than the file"));
        }
        let range = part(head, asked)?.0;
        match proof {
            Proof::Version if self.version.is_lost_in(&other.version) => Err(Fault::Unrecognised),
            Proof::None | Proof::Version | Proof::Digest => Ok(range),
        }
    }
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
    if head.content_length()?.is_some_and(|told| told != length) {
        return Err(Fault::Lie("sends a part whose length is another one than it says"));
    }
    Ok((told.range, told.total))
}

#[cfg(test)]
mod tests;
