//! `ls` and `df`: what is printed of names, their metadata, and of space.

mod long;

use crate::command::{Direction, Form, Hidden, Long, Order, SpaceUnit, Style};
use crate::fault::{Done, failed, told, unfound};
use crate::glob::{Found, expand_all};
use crate::line::escaped;
use crate::path::{absolute, below, join};
use crate::shell::Shell;
use crate::show::Shown;
use crate::tree::{Remote, listed};
use hikyaku_console::scaled;
use hikyaku_sftp::{Attributes, Extension, Space};
use long::{Owned, long_line};
use std::io::{Write, stdin, stdout};

/// Columns of a terminal, where none is known.
const WIDTH: usize = 80;

/// A name to be printed.
struct Item {
    shown: Vec<u8>,
    attributes: Attributes,
    /// The server's own line; `None` of a name that was not listed by the server.
    line: Option<Vec<u8>>,
}

impl Shell {
    /// Prints what matches, or what is in the only directory that matches.
    pub(crate) fn list(&self, pattern: Option<&[u8]>, style: Style) -> Done {
        let Some(pattern) = pattern else {
            return self.list_dir(&self.dir, Some(&self.dir), style);
        };
        // Paths are printed as the user wrote them.
        let without = (!pattern.starts_with(b"/")).then_some(&self.dir[..]);
        let pattern = absolute(pattern, &escaped(&self.dir));
        let tree = Remote(&self.client);
        let found = expand_all(&tree, &pattern).map_err(unfound(&pattern))?;
        match &found[..] {
            [] => {
                let shown = Shown::new(&pattern);
                return Err(told(format!("Can't ls: \"{shown}\" not found")));
            }
            [one] if one.is_dir() => return self.list_dir(&one.path, without, style),
            _ => {}
        }
        let longest = found.iter().map(|one| one.path.len()).max().unwrap_or(0);
        // As by OpenSSH's sftp, directories among several names are marked.
        let mark = |one: &Found| {
            let is_marked = one.is_dir() && !one.path.ends_with(b"/");
            if is_marked { &b"/"[..] } else { b"" }
        };
        let items = found.into_iter().map(|one| Item {
            shown: [below(&one.path, without), mark(&one)].concat(),
            attributes: one.attributes,
            line: None,
        });
        self.print(items.collect(), longest, style)
    }

    fn list_dir(&self, dir: &[u8], without: Option<&[u8]>, style: Style) -> Done {
        let shown = Shown::new(dir);
        let entries =
            listed(&self.client, dir).map_err(failed(format!("remote readdir(\"{shown}\")")))?;
        let is_shown = |name: &[u8]| style.hidden == Hidden::Shown || !name.starts_with(b".");
        let mut longest = entries.iter().filter(|entry| is_shown(&entry.name));
        let longest = longest.by_ref().map(|entry| entry.name.len()).max().unwrap_or(0);
        let above = below(dir, without);
        let above = if Some(dir) == without { 0 } else { above.len() };
        let items = entries.into_iter().filter(|entry| is_shown(&entry.name)).map(|entry| Item {
            shown: below(&join(dir, &entry.name), without).to_vec(),
            attributes: entry.attributes,
            line: Some(entry.line),
        });
        self.print(items.collect(), longest + above, style)
    }

    fn print(&self, mut items: Vec<Item>, longest: usize, style: Style) -> Done {
        sort(&mut items, style);
        let mut out = stdout().lock();
        match style.form {
            Form::Long(long) => self.print_long(&items, long),
            Form::Single => {
                items.iter().try_for_each(|item| writeln!(out, "{}", Shown::new(&item.shown)))?;
                Ok(())
            }
            Form::Columns => {
                let width = rustix::termios::tcgetwinsize(stdin())
                    .map_or(WIDTH, |size| usize::from(size.ws_col).max(1));
                let columns = (width / (longest + 2)).max(1);
                let space = width / columns;
                for row in items.chunks(columns) {
                    for item in row {
                        write!(out, "{:<space$}", Shown::new(&item.shown).to_string())?;
                    }
                    writeln!(out)?;
                }
                Ok(())
            }
        }
    }

    fn print_long(&self, items: &[Item], long: Long) -> Done {
        let has_names = self.client.version().has(Extension::NamesById);
        let owned = if has_names {
            Owned::asked(&self.client, items.iter().map(|item| &item.attributes), long)?
        } else {
            Owned::default()
        };
        let mut out = stdout().lock();
        for item in items {
            match &item.line {
                Some(line) if !has_names && long == Long::PLAIN => {
                    writeln!(out, "{}", Shown::new(line))?;
                }
                _ => {
                    let shown = Shown::new(&item.shown).to_string();
                    writeln!(out, "{}", long_line(&shown, &item.attributes, &owned, long))?;
                }
            }
        }
        Ok(())
    }

    /// Prints the space of the file system with a path.
    pub(crate) fn space(&self, path: Option<&[u8]>, unit: SpaceUnit) -> Done {
        let path = absolute(path.unwrap_or(b""), &self.dir);
        if !self.client.version().has(Extension::Space) {
            return Err(told("Server does not support statvfs@openssh.com extension"));
        }
        let space = self.client.space(&path);
        let space = space.map_err(failed(format!("remote statvfs(\"{}\")", Shown::new(&path))))?;
        let mut out = stdout().lock();
        let [header, line] = space_lines(&space, unit);
        writeln!(out, "{header}\n{line}")?;
        Ok(())
    }
}

impl Long {
    /// Without a flag that changes it.
    const PLAIN: Self =
        Self { owners: crate::command::Owners::Named, sizes: crate::command::Sizes::Bytes };
}

fn sort(items: &mut [Item], style: Style) {
    let by_name = |a: &Item, b: &Item| a.shown.cmp(&b.shown);
    let time = |item: &Item| item.attributes.times.map(|(_, modified)| modified);
    match style.order {
        Order::None => return,
        Order::Name => items.sort_by(by_name),
        Order::Size => items
            .sort_by(|a, b| b.attributes.size.cmp(&a.attributes.size).then_with(|| by_name(a, b))),
        Order::Time => items.sort_by(|a, b| time(b).cmp(&time(a)).then_with(|| by_name(a, b))),
    }
    if style.direction == Direction::Backward {
        items.reverse();
    }
}

/// The two lines of `df`.
fn space_lines(space: &Space, unit: SpaceUnit) -> [String; 2] {
    let percent = |used: u64, all: u64| {
        if all == 0 {
            "ERR".to_owned()
        } else {
            (u128::from(used) * 100 / u128::from(all)).to_string()
        }
    };
    if unit == SpaceUnit::Inodes {
        let used = space.files.saturating_sub(space.files_free);
        let header = "     Inodes        Used       Avail      (root)    %Capacity";
        let percent = percent(used, space.files);
        let (files, available, free) = (space.files, space.files_available, space.files_free);
        return [
            header.to_owned(),
            format!("{files:>11} {used:>11} {available:>11} {free:>11}         {percent:>3}%"),
        ];
    }
    let used = space.blocks.saturating_sub(space.free);
    let percent = percent(used, space.blocks);
    let bytes = |blocks: u64| blocks.saturating_mul(space.block_bytes);
    let [all, used, available, free] = [space.blocks, used, space.available, space.free].map(bytes);
    if unit == SpaceUnit::Scaled {
        let header = "    Size     Used    Avail   (root)    %Capacity";
        let [all, used, available, free] = [all, used, available, free].map(scaled);
        return [
            header.to_owned(),
            format!("{all:>8} {used:>8} {available:>8} {free:>8}         {percent:>3}%"),
        ];
    }
    let header = "        Size         Used        Avail       (root)    %Capacity";
    let [all, used, available, free] = [all, used, available, free].map(|bytes| bytes >> 10);
    [
        header.to_owned(),
        format!("{all:>12} {used:>12} {available:>12} {free:>12}         {percent:>3}%"),
    ]
}
