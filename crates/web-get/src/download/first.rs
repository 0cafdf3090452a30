//! The first answer of a file: the server that gives it, and its offer.

use super::Tools;
use crate::fetch::Unfetched;
use crate::metalink::Expect;
use crate::offer::{Known, Offer, Parts, Proof};
use crate::source::{Fate, Source, Waited};
use crate::worker::tell_dropped;
use hikyaku_console::causes;
use hikyaku_http::{Answer, Fault, Part};
use std::ops::Range;
use std::time::Duration;

/// Bytes of the first range: enough to be worth a round trip, and few enough that its connection serves again soon.
const FIRST_BYTES: u64 = 4 << 20;

/// The first answer to be used.
pub(crate) struct First {
    pub(crate) source: usize,
    pub(crate) answer: Answer,
    pub(crate) offer: Offer,
    /// The range that it has; `None`: all.
    pub(crate) range: Option<Range<u64>>,
}

impl First {
    /// The offer of the server, and the digests and the size that the user expects.
    pub(crate) fn known(&self, expect: &Expect) -> (Known, Expect) {
        let (mut offer, proof) = (self.offer.clone(), self.offer.proof(expect));
        offer.digests.extend(expect.digests.iter().cloned());
        offer.total = offer.total.or(expect.size);
        let expect = Expect { digests: offer.digests.clone(), ..expect.clone() };
        (Known { offer, proof }, expect)
    }
}

/// Asks one server after the other until one gives a part of the file, and says which version it is of. If none does, the
/// first that gives anything is used.
pub(crate) fn ask(
    tools: &Tools<'_>,
    sources: &[Source],
    fates: &mut [Fate],
    expect: &Expect,
) -> Result<First, Unfetched> {
    let (mut failures, mut waited) = (0, Waited::default());
    loop {
        let mut last = Fault::Stopped;
        let mut whole = None;
        for (at, source) in sources.iter().enumerate() {
            if fates[at] != Fate::Used {
                continue;
            }
            match ask_one(tools, source, expect) {
                Ok((answer, offer, range)) => {
                    let is_part = range.is_some() && offer.proof(expect) != Proof::None;
                    let first = First { source: at, answer, offer, range };
                    if is_part {
                        return Ok(first);
                    }
                    whole.get_or_insert(first);
                }
                Err(Fault::Stopped) => return Err(Unfetched::Fault(Fault::Stopped)),
                Err(fault) => {
                    let others = fates.iter().filter(|fate| **fate == Fate::Used).count();
                    if !fault.may_pass() && others > 1 {
                        fates[at] = Fate::Dropped;
                        let place = source.place.first.to_string();
                        tell_dropped(tools.show, &place, &fault.into());
                    } else {
                        last = fault;
                    }
                }
            }
        }
        if let Some(first) = whole {
            return Ok(first);
        }
        failures += 1;
        // No program listens on the port: that rarely passes within the time of the attempts.
        let retries = match last.is_port_closed() {
            true => tools.conduct.retries_of_closed_port,
            false => tools.conduct.retries,
        };
        let wait = waited.next(&last, tools.conduct.retry.wait(failures));
        let (true, Some(wait)) = (last.may_pass() && failures <= retries, wait) else {
            return Err(Unfetched::Fault(last));
        };
        tell_waiting(tools, last, wait);
        tools.interrupted.sleep(wait);
        if tools.interrupted.is_set() {
            return Err(Unfetched::Fault(Fault::Stopped));
        }
    }
}

/// Shows that another attempt follows.
pub(crate) fn tell_waiting(tools: &Tools<'_>, fault: Fault, wait: Duration) {
    let (why, seconds) = (causes(&fault.into()), wait.as_secs_f32().ceil());
    tools.show.remark(format!("{why}; another attempt in {seconds} s"));
}

type Asked = (Answer, Offer, Option<Range<u64>>);

fn ask_one(tools: &Tools<'_>, source: &Source, expect: &Expect) -> Result<Asked, Fault> {
    let asked = 0..FIRST_BYTES;
    let wanted = Part { range: asked.clone(), if_range: None };
    let get = |wanted| tools.client.get(None, &source.place, wanted, tools.interrupted);
    let (answer, asked) = match get(Some(&wanted)) {
        // An empty file has no range.
        Err(Fault::Status { code: 416, .. }) => (get(None)?, None),
        answer => (answer?, Some(asked)),
    };
    let offer = Offer::of(&answer.head, asked.as_ref())?;
    if let (Some(size), Some(total)) = (expect.size, offer.total)
        && size != total
    {
        return Err(Fault::OtherFile(format!("{total} bytes in place of {size}")));
    }
    let range = match (offer.parts, asked) {
        (Parts::Sent, Some(asked)) => Some(offer.check_part(&answer.head, &asked, Proof::None)?),
        _ => None,
    };
    source.set_offer(Some(offer.clone()));
    Ok((answer, offer, range))
}
