//! A file on one server: what the server has offered of it, and the requests for it. No other place requests a range.

use crate::client::{Answer, Client, Part, Place, Turn};
use crate::fault::Fault;
use crate::head::Head;
use crate::offer::{Known, Offer, Parts, Proof, check_same};
use crate::wire::Stop;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// A file on one server.
#[derive(Debug)]
pub struct Source {
    /// Its URL.
    pub place: Place,
    offer: Mutex<Option<Offer>>,
    /// The server answers `If-Range` with the whole file although the file has not changed.
    is_without_if_range: AtomicBool,
}

/// The first answer of a server for a file.
pub struct First {
    /// The answer. Its body has not been read.
    pub answer: Answer,
    /// The offer in its head.
    pub offer: Offer,
    /// The part of the file that the body has. `None`: the body is the whole file.
    pub range: Option<Range<u64>>,
}

impl Source {
    /// A file of which no answer is known.
    pub fn new(place: Place) -> Self {
        Self { place, offer: Mutex::default(), is_without_if_range: AtomicBool::new(false) }
    }

    /// The offer of its first answer.
    pub fn offer(&self) -> Option<Offer> {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_offer(&self, offer: &Offer) {
        *self.offer.lock().unwrap_or_else(PoisonError::into_inner) = Some(offer.clone());
    }

    /// The value of `If-Range` for the next request.
    fn if_range(&self) -> Option<String> {
        if self.is_without_if_range.load(Ordering::Relaxed) {
            return None;
        }
        self.offer()?.version.if_range
    }

    /// Requests the first `bytes` bytes to learn what the server offers. Later answers are compared with this offer.
    ///
    /// # Errors
    ///
    /// Those of [`Client::get`], or the answer does not fit the request.
    pub fn first(&self, client: &Client, bytes: u64, how: (&Stop, Turn)) -> Result<First, Fault> {
        let part = Part { range: 0..bytes, if_range: None };
        let (answer, asked) = match client.get(&self.place, Some(&part), how) {
            // An empty file has no range.
            Err(Fault::Status { code: 416, .. }) => (client.get(&self.place, None, how)?, None),
            answer => (answer?, Some(part.range)),
        };
        let offer = Offer::of(&answer.head, asked.as_ref())?;
        let range = match (offer.parts, asked) {
            (Parts::Sent, Some(asked)) => {
                Some(offer.check_part(&answer.head, &asked, Proof::None)?)
            }
            _ => None,
        };
        self.set_offer(&offer);
        Ok(First { answer, offer, range })
    }

    /// Requests a range of the file that `known` describes. The body has the returned range, which may end earlier than the
    /// requested one.
    ///
    /// # Errors
    ///
    /// Those of [`Client::get`]; the server has another file or another version of it, or sends no ranges.
    pub fn part(
        &self,
        client: &Client,
        range: &Range<u64>,
        known: &Known,
        how: (&Stop, Turn),
    ) -> Result<(Answer, Range<u64>), Fault> {
        let if_range = self.if_range();
        let answer = self.request(client, range, if_range.as_deref(), how)?;
        match self.check(&answer.head, range, known) {
            Err(Fault::NoRanges) if if_range.is_some() => {
                // Without `If-Range` the answers themselves are compared.
                self.is_without_if_range.store(true, Ordering::Relaxed);
                let answer = self.request(client, range, None, how)?;
                let range = self.check(&answer.head, range, known)?;
                Ok((answer, range))
            }
            checked => Ok((answer, checked?)),
        }
    }

    fn request(
        &self,
        client: &Client,
        range: &Range<u64>,
        if_range: Option<&str>,
        how: (&Stop, Turn),
    ) -> Result<Answer, Fault> {
        let part = Part { range: range.clone(), if_range };
        client.get(&self.place, Some(&part), how).map_err(|fault| match fault {
            // The range is within the offered file.
            Fault::Status { code: 416, .. } if self.offer().is_some() => Fault::Changed,
            fault => fault,
        })
    }

    /// Requests the whole file.
    ///
    /// # Errors
    ///
    /// Those of [`Client::get`], or the head of the answer contradicts itself.
    pub fn whole(&self, client: &Client, how: (&Stop, Turn)) -> Result<(Answer, Offer), Fault> {
        let answer = client.get(&self.place, None, how)?;
        let offer = Offer::of(&answer.head, None)?;
        Ok((answer, offer))
    }

    /// Checks an answer before a byte of it is used. `known` is the offer of this or another source of the file.
    fn check(&self, head: &Head, asked: &Range<u64>, known: &Known) -> Result<Range<u64>, Fault> {
        if let Some(offer) = self.offer() {
            return offer.check_part(head, asked, known.proof);
        }
        let offer = Offer::of(head, Some(asked))?;
        check_same(&offer, &known.offer)?;
        if offer.parts == Parts::Refused {
            return Err(Fault::NoRanges);
        }
        if known.proof == Proof::Version && offer.proof() == Proof::None {
            return Err(Fault::Unrecognised);
        }
        let range = offer.check_part(head, asked, known.proof)?;
        self.set_offer(&offer);
        Ok(range)
    }
}
