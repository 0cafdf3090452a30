//! What differs between a source and its target, and the eleven letters that say so (`-i`, as of rsync(1)).

use crate::options::{Options, Quick, Times, Window};
use crate::side::{Kind, Meta, Setting};
use hikyaku_store::Time;
use std::cmp::Ordering;

/// Whether the content goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    /// It is the same.
    Stays,
    /// It is made or copied.
    Goes,
}

/// What becomes of a name of the source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    pub(crate) content: Content,
    /// What differs of the metadata and is kept.
    pub(crate) setting: Setting,
    /// Eleven letters.
    pub(crate) letters: String,
}

/// Which way the data go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// To the other machine.
    Sent,
    /// To this machine, or within it.
    Received,
}

/// What is known of a pair of names beside their metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Known {
    pub(crate) way: Way,
    /// Whether two links say the same, or two files have the same content.
    pub(crate) content: Comparison,
}

/// What came of a comparison of contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comparison {
    /// There was none.
    None,
    Same,
    Differs,
}

/// The letter of a kind.
const fn kind_letter(kind: Kind) -> char {
    match kind {
        Kind::File => 'f',
        Kind::Dir => 'd',
        Kind::Link => 'L',
        Kind::Special => 'S',
    }
}

const fn sent(way: Way) -> char {
    match way {
        Way::Sent => '<',
        Way::Received => '>',
    }
}

/// How the times of two files compare, where those that differ by no more than the window are equal.
fn compare(a: Time, b: Time, window: Window) -> Ordering {
    match window {
        Window::Exact => a.cmp(&b),
        Window::Seconds(window) if a.secs.abs_diff(b.secs) <= window => Ordering::Equal,
        Window::Seconds(_) => a.secs.cmp(&b.secs),
    }
}

/// Whether a file of the target stays because it is newer (`-u`). As in rsync it does if that of the source is newer by
/// less than the window.
fn is_newer(target: Time, source: Time, window: Window) -> bool {
    match window {
        Window::Seconds(window) if source.secs >= target.secs => {
            source.secs.abs_diff(target.secs) < window
        }
        Window::Seconds(_) => true,
        Window::Exact => source < target,
    }
}

/// Compares a name with what has the name at the target, which is of the same kind. `None` if nothing is to be done.
pub(crate) fn change(
    source: &Meta,
    target: Option<&Meta>,
    known: Known,
    options: &Options,
) -> Option<Change> {
    let (kind, is_file) = (source.kind, source.kind == Kind::File);
    if is_file && !(options.sizes.min..=options.sizes.max).contains(&source.size) {
        return None;
    }
    let Some(target) = target else {
        let first = if is_file { sent(known.way) } else { 'c' };
        let letters = format!("{first}{}+++++++++", kind_letter(kind));
        let setting = Setting {
            mode: (options.keeps_modes && kind != Kind::Link)
                .then_some(options.modes.of(source.mode)),
            modified: options.keeps_times_of(kind).then_some(source.modified),
        };
        return Some(Change { content: Content::Goes, setting, letters });
    };
    let order = compare(source.modified, target.modified, options.window);
    if is_file && options.is_update && is_newer(target.modified, source.modified, options.window) {
        return None;
    }
    let (is_same_time, is_same_size) = (order == Ordering::Equal, source.size == target.size);
    let goes = match kind {
        Kind::File => match options.quick {
            Quick::SizeAndTime => !is_same_size || !is_same_time,
            Quick::Size => !is_same_size,
            Quick::Never => true,
            Quick::Content => !is_same_size || known.content == Comparison::Differs,
        },
        Kind::Link => known.content == Comparison::Differs,
        Kind::Dir | Kind::Special => false,
    };
    let is_other_mode = options.modes.of(source.mode) != options.modes.of(target.mode);
    let sets_mode = options.keeps_modes && kind != Kind::Link && is_other_mode;
    let can_set_time = goes || options.times != Times::OfCopies;
    let sets_time = options.keeps_times_of(kind) && can_set_time && !is_same_time;
    if !goes && !sets_mode && !sets_time {
        return None;
    }
    let first = match (goes, kind) {
        (true, Kind::File) => sent(known.way),
        (true, _) => 'c',
        (false, _) => '.',
    };
    let is_compared = kind == Kind::Link || is_file && options.quick == Quick::Content;
    let content = if goes && is_compared { 'c' } else { '.' };
    let size = if is_file && !is_same_size { 's' } else { '.' };
    let time = match goes {
        _ if sets_time => 't',
        // The target gets the time of the transfer.
        true if !options.keeps_times => 'T',
        _ => '.',
    };
    let mode = if sets_mode { 'p' } else { '.' };
    Some(Change {
        content: if goes { Content::Goes } else { Content::Stays },
        setting: Setting {
            mode: sets_mode.then_some(options.modes.of(source.mode)),
            modified: sets_time.then_some(source.modified),
        },
        letters: format!("{first}{}{content}{size}{time}{mode}.....", kind_letter(kind)),
    })
}

#[cfg(test)]
mod tests;
