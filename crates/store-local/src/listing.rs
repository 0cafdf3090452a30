//! Listing a directory by pages.

use crate::convert::Sizes;
use hikyaku_fs::{Dir, Name, Token as Copy};
use hikyaku_store::{Cursor, Doing, ErrorKind, Item, Page, Result};

/// The content of a cursor: a position of the file system, or the last name of a listing in order
/// of names.
enum Position {
    Offset(u64),
    After(Vec<u8>),
}

impl Position {
    fn write(&self) -> Cursor {
        Cursor(match self {
            Self::Offset(offset) => [&b"o"[..], &offset.to_le_bytes()].concat(),
            Self::After(name) => [&b"n"[..], name].concat(),
        })
    }

    fn read(cursor: &Cursor) -> Option<Self> {
        match cursor.0.split_first()? {
            (b'o', rest) => Some(Self::Offset(u64::from_le_bytes(rest.try_into().ok()?))),
            (b'n', rest) => Some(Self::After(rest.to_vec())),
            _ => None,
        }
    }
}

/// The entries after `after`, at most `room` of them.
pub(crate) fn page(
    (dir, sizes): (&Dir, Sizes),
    after: Option<&Cursor>,
    room: usize,
    doing: Doing<'_>,
) -> Result<Page> {
    let position = match after.map(Position::read) {
        Some(None) => return doing.fail(ErrorKind::Gone),
        Some(position) => position,
        None => None,
    };
    if !dir.has_lasting_positions() {
        return by_name((dir, sizes), position.as_ref(), room, doing);
    }
    let offset = match position {
        Some(Position::Offset(offset)) => Some(offset),
        Some(Position::After(_)) => return doing.fail(ErrorKind::Gone),
        None => None,
    };
    let listed = doing.or(dir.names_from(offset, room))?;
    let items = items((dir, sizes), listed.names, doing)?;
    let next = listed.next.map(|offset| Position::Offset(offset).write());
    Ok(Page { items, next, skipped: listed.skipped })
}

/// Reads all names for each page. This is needed on file systems whose directory positions are not
/// stable.
fn by_name(
    (dir, sizes): (&Dir, Sizes),
    position: Option<&Position>,
    room: usize,
    doing: Doing<'_>,
) -> Result<Page> {
    let after = match position {
        Some(Position::After(name)) => name.as_slice(),
        Some(Position::Offset(_)) => return doing.fail(ErrorKind::Gone),
        None => b"",
    };
    let all = doing.or(dir.names_from(None, usize::MAX))?;
    let mut names = all.names;
    names.retain(|name| name.as_bytes() > after);
    names.sort_unstable();
    let is_last = names.len() <= room;
    names.truncate(room);
    let next = names.last().filter(|_| !is_last);
    let next = next.map(|name| Position::After(name.as_bytes().to_vec()).write());
    Ok(Page { items: items((dir, sizes), names, doing)?, next, skipped: all.skipped })
}

/// The metadata of each name, without drafts and without names that were removed in the meantime.
fn items(
    (dir, sizes): (&Dir, Sizes),
    names: impl IntoIterator<Item = Name>,
    doing: Doing<'_>,
) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    for name in names {
        if Copy::of(&name).is_none()
            && let Some(meta) = doing.or(dir.meta(&name))?
        {
            items.push(Item { name, found: sizes.found(&meta, dir) });
        }
    }
    Ok(items)
}
