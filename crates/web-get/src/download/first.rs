//! The first answer of a file: the server that gives it, and its offer.

use super::{Tools, Unfetched};
use crate::metalink::Expect;
use hikyaku_console::{causes, causes_of};
use hikyaku_http::{Attempts, Fault, First, Known, Offer, Proof, Source, Turn};
use std::time::Duration;

/// The range of the first request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FirstRange {
    /// A small file comes with it, and the first part of any other file.
    Part,
    /// It is for the version and the size of a file whose first part an earlier attempt has left.
    Byte,
}

impl FirstRange {
    const fn bytes(self) -> u64 {
        match self {
            Self::Part => 1 << 20,
            Self::Byte => 1,
        }
    }
}

/// The offer of the server, and the digests and the size that the user expects.
pub(crate) fn known(offer: &Offer, expect: &Expect) -> (Known, Expect) {
    let (mut offer, proof) = (offer.clone(), expect.proof(offer));
    offer.digests.extend(expect.digests.iter().cloned());
    offer.total = offer.total.or(expect.size);
    let expect = Expect { digests: offer.digests.clone(), ..expect.clone() };
    (Known { offer, proof }, expect)
}

/// Asks one server after the other until one gives a part of the file, and says which version it is of. If none does, the
/// first that gives anything is used.
pub(crate) fn ask(
    tools: &Tools<'_>,
    sources: &[Source],
    used: &mut [bool],
    (expect, range): (&Expect, FirstRange),
) -> Result<(usize, First), Unfetched> {
    let mut attempts = Attempts::new(tools.conduct.retry);
    loop {
        let mut last = Fault::Stopped;
        let mut whole = None;
        for (at, source) in sources.iter().enumerate() {
            if !used[at] {
                continue;
            }
            // The answer of another server holds a connection, perhaps to the same host.
            let turn = if whole.is_some() { Turn::AtOnce } else { Turn::Waits };
            match ask_one(tools, source, (expect, range), turn) {
                Ok(first) => {
                    let is_part =
                        first.range.is_some() && expect.proof(&first.offer) != Proof::None;
                    if is_part {
                        return Ok((at, first));
                    }
                    whole.get_or_insert((at, first));
                }
                Err(Fault::Stopped) => return Err(Unfetched::Fault(Fault::Stopped)),
                Err(fault) => {
                    let others = used.iter().filter(|is_used| **is_used).count();
                    if !fault.may_pass() && others > 1 {
                        used[at] = false;
                        let (place, why) = (&source.place.first, causes_of(&fault));
                        tools.show.remark(format!("{place} is not used any more: {why}"));
                    } else {
                        last = fault;
                    }
                }
            }
        }
        if let Some(first) = whole {
            return Ok(first);
        }
        // No program listens on the port: that rarely passes within the time of the attempts.
        let retries = match last.is_port_closed() {
            true => tools.conduct.retries_of_closed_port,
            false => tools.conduct.retries,
        };
        let Some(wait) = attempts.next(&last, retries) else {
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

fn ask_one(
    tools: &Tools<'_>,
    source: &Source,
    (expect, range): (&Expect, FirstRange),
    turn: Turn,
) -> Result<First, Fault> {
    let mut first = source.first(tools.client, range.bytes(), (tools.interrupted, turn))?;
    // Without its byte the connection is ready for the next request.
    let is_byte = first.range == Some(0..1) && first.offer.total != Some(1);
    if range == FirstRange::Byte && is_byte && !first.answer.connection.read(1)?.is_empty() {
        first.range = Some(1..1);
    }
    match (expect.size, first.offer.total) {
        (Some(size), Some(total)) if size != total => {
            Err(Fault::OtherFile(format!("{total} bytes in place of {size}")))
        }
        _ => Ok(first),
    }
}
