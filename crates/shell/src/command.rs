//! The commands of the language, read from words.

mod flags;
#[cfg(test)]
mod tests;

use crate::line::{BadLine, unescaped, words};
use flags::Flags;

/// A command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    /// `bye`, `exit`, `quit`.
    Quit,
    /// `cd`: to a directory, or to the first one.
    ChangeDir(Option<Vec<u8>>),
    /// `lcd`: to a directory, or to the home directory.
    LocalChangeDir(Option<Vec<u8>>),
    /// `chmod`, `chown`, `chgrp`.
    Change(Change),
    /// `cp`, `copy`: within the server.
    Copy([Vec<u8>; 2]),
    /// `df`.
    Space {
        /// Where; `None` is the current directory.
        path: Option<Vec<u8>>,
        /// What is counted.
        unit: SpaceUnit,
    },
    /// `get`, `reget`, `mget`.
    Get(Transfer),
    /// `put`, `reput`, `mput`.
    Put(Transfer),
    /// `help`, `?`.
    Help,
    /// `ls`, `dir`.
    List {
        /// A pattern; `None` is the current directory.
        pattern: Option<Vec<u8>>,
        /// How it is printed.
        style: Style,
    },
    /// `lls`: the words after it, for the shell.
    LocalList(Vec<u8>),
    /// `lmkdir`.
    LocalMakeDir(Vec<u8>),
    /// `lpwd`.
    LocalDir,
    /// `lumask`.
    LocalMask(u32),
    /// `ln`, `symlink`: the old name, and the new one.
    Link(LinkKind, [Vec<u8>; 2]),
    /// `mkdir`.
    MakeDir(Vec<u8>),
    /// `progress`.
    Progress,
    /// `pwd`.
    Dir,
    /// `rename`.
    Rename(RenameKind, [Vec<u8>; 2]),
    /// `rm`, of a pattern.
    Remove(Vec<u8>),
    /// `rmdir`.
    RemoveDir(Vec<u8>),
    /// `version`.
    Version,
    /// `!`: a command for the shell, or the shell itself if it is empty.
    Shell(Vec<u8>),
}

/// What a transfer copies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Transfer {
    /// A pattern.
    pub(crate) from: Vec<u8>,
    /// Where to; `None` is the name of the source in the current directory.
    pub(crate) to: Option<Vec<u8>>,
    /// How.
    pub(crate) how: How,
}

/// How files are copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct How {
    /// Times and modes.
    pub(crate) attributes: Attributes,
    /// Directories.
    pub(crate) depth: Depth,
    /// What is there of the target.
    pub(crate) begin: Begin,
    /// When a file counts as copied.
    pub(crate) until: Until,
}

/// Whether times and modes are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Attributes {
    /// New ones.
    #[default]
    New,
    /// Those of the source (`-p`).
    Kept,
}

/// Whether directories are copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Depth {
    /// Files only.
    #[default]
    File,
    /// With all that is in them (`-r`).
    Tree,
}

/// Where in a file a transfer begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Begin {
    /// At its beginning.
    #[default]
    Anew,
    /// Where the target ends (`-a`).
    Resumed,
}

/// When a file counts as copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Until {
    /// When it is written.
    #[default]
    Written,
    /// When it is on the disk (`-f`).
    Synced,
}

impl How {
    /// What either of two says.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            attributes: self.attributes.max_of(other.attributes, Attributes::Kept),
            depth: self.depth.max_of(other.depth, Depth::Tree),
            begin: self.begin.max_of(other.begin, Begin::Resumed),
            until: self.until.max_of(other.until, Until::Synced),
        }
    }
}

/// One of two values of which one is stronger.
trait MaxOf: Copy + PartialEq {
    fn max_of(self, other: Self, strong: Self) -> Self {
        if other == strong { strong } else { self }
    }
}

impl MaxOf for Attributes {}
impl MaxOf for Depth {}
impl MaxOf for Begin {}
impl MaxOf for Until {}

/// A change of metadata.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    /// What of it.
    pub(crate) what: Changed,
    /// The new value.
    pub(crate) value: u32,
    /// A pattern of names.
    pub(crate) pattern: Vec<u8>,
    /// What is done of a link.
    pub(crate) links: Links,
}

/// What is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Changed {
    /// The mode.
    Mode,
    /// The user.
    Owner,
    /// The group.
    Group,
}

/// What a name stands for that is a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Links {
    /// What the link leads to.
    Followed,
    /// The link itself (`-h`).
    Themselves,
}

/// What `ln` makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkKind {
    /// A hard link.
    Hard,
    /// A symbolic link.
    Symbolic,
}

/// How `rename` does it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RenameKind {
    /// Over a name that is taken, where the server can do that.
    Replacing,
    /// As version 3 has it (`-l`), which fails if the name is taken.
    Plain,
}

/// What `df` counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SpaceUnit {
    /// Kibibytes.
    Kibibytes,
    /// Bytes with a unit that fits (`-h`).
    Scaled,
    /// Inodes (`-i`).
    Inodes,
}

/// How `ls` prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Style {
    /// The lines.
    pub(crate) form: Form,
    /// Names that begin with a dot.
    pub(crate) hidden: Hidden,
    /// The order.
    pub(crate) order: Order,
    /// Which way the order goes.
    pub(crate) direction: Direction,
}

/// The lines of `ls`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Names in columns.
    Columns,
    /// A name a line (`-1`).
    Single,
    /// Metadata as well (`-l`, `-n`, `-h`).
    Long(Long),
}

/// What long lines have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Long {
    /// Users and groups.
    pub(crate) owners: Owners,
    /// Sizes.
    pub(crate) sizes: Sizes,
}

/// How users and groups are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owners {
    /// By name.
    Named,
    /// By number (`-n`).
    Numbered,
}

/// How sizes are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sizes {
    /// In bytes.
    Bytes,
    /// With a unit that fits (`-h`).
    Scaled,
}

/// Whether names that begin with a dot are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hidden {
    /// They are left out.
    LeftOut,
    /// They are printed (`-a`).
    Shown,
}

/// The order of names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// By name.
    Name,
    /// The largest first (`-S`).
    Size,
    /// The newest first (`-t`).
    Time,
    /// As the server tells them (`-f`).
    None,
}

/// Which way an order goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// As it is.
    Forward,
    /// From its end (`-r`).
    Backward,
}

/// Why a line is no command, for the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NoCommand(pub(crate) String);

impl From<BadLine> for NoCommand {
    fn from(error: BadLine) -> Self {
        Self(error.text().to_owned())
    }
}

impl Command {
    /// Reads the text of a line that is not empty.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, NoCommand> {
        let words = words(text)?;
        if let Some(rest) = text.strip_prefix(b"!") {
            return Ok(Self::Shell(rest.trim_ascii_start().to_vec()));
        }
        let verb = words.first().map(|word| String::from_utf8_lossy(word).to_lowercase());
        let verb = verb.unwrap_or_default();
        let rest = words.get(1..).unwrap_or_default();
        let arguments = Arguments { verb: &verb, flags: Flags::new(&verb, rest) };
        arguments.command(text)
    }

    /// Names of commands, for `help` and completion.
    pub(crate) const NAMES: [&'static str; 36] = [
        "bye", "cd", "chdir", "chgrp", "chmod", "chown", "copy", "cp", "df", "dir", "exit", "get",
        "help", "lcd", "lchdir", "lls", "lmkdir", "ln", "lpwd", "ls", "lumask", "mget", "mkdir",
        "mput", "progress", "put", "pwd", "quit", "reget", "rename", "reput", "rm", "rmdir",
        "symlink", "version", "?",
    ];
}

/// The words after a verb.
struct Arguments<'a> {
    verb: &'a str,
    flags: Flags<'a>,
}

impl Arguments<'_> {
    fn command(mut self, text: &[u8]) -> Result<Command, NoCommand> {
        Ok(match self.verb {
            "bye" | "exit" | "quit" => self.alone(Command::Quit)?,
            "help" | "?" => self.alone(Command::Help)?,
            "version" => self.alone(Command::Version)?,
            "progress" => self.alone(Command::Progress)?,
            "pwd" => self.alone(Command::Dir)?,
            "lpwd" => self.alone(Command::LocalDir)?,
            "cd" | "chdir" => Command::ChangeDir(self.optional()?),
            "lcd" | "lchdir" => Command::LocalChangeDir(self.optional()?),
            "mkdir" => Command::MakeDir(unescaped(&self.one()?)),
            "rmdir" => Command::RemoveDir(unescaped(&self.one()?)),
            "lmkdir" => Command::LocalMakeDir(unescaped(&self.one()?)),
            "rm" => Command::Remove(self.one()?),
            "get" | "mget" | "reget" => Command::Get(self.transfer()?),
            "put" | "mput" | "reput" => Command::Put(self.transfer()?),
            "cp" | "copy" => {
                self.flags.take("")?;
                Command::Copy(self.two()?)
            }
            "rename" => {
                let plain = self.flags.take("l")?.contains(&b'l');
                let kind = if plain { RenameKind::Plain } else { RenameKind::Replacing };
                Command::Rename(kind, self.two()?)
            }
            "ln" | "symlink" => {
                let symbolic = self.flags.take("s")?.contains(&b's') || self.verb == "symlink";
                let kind = if symbolic { LinkKind::Symbolic } else { LinkKind::Hard };
                Command::Link(kind, self.two()?)
            }
            "chmod" => self.change(Changed::Mode)?,
            "chown" => self.change(Changed::Owner)?,
            "chgrp" => self.change(Changed::Group)?,
            "lumask" => {
                self.flags.take("")?;
                Command::LocalMask(self.number(8)?)
            }
            "df" => self.space()?,
            "ls" | "dir" => self.list()?,
            "lls" => Command::LocalList(text[self.verb.len()..].trim_ascii_start().to_vec()),
            _ => return Err(NoCommand("Invalid command.".to_owned())),
        })
    }

    /// A command that takes no words; those that are there have no meaning.
    fn alone(&mut self, command: Command) -> Result<Command, NoCommand> {
        self.flags.take("")?;
        Ok(command)
    }

    fn optional(&mut self) -> Result<Option<Vec<u8>>, NoCommand> {
        self.flags.take("")?;
        Ok(self.flags.word().map(|word| unescaped(&word)))
    }

    /// The text of a pattern.
    fn one(&mut self) -> Result<Vec<u8>, NoCommand> {
        self.flags.take("")?;
        let verb = self.verb;
        let missing = || NoCommand(format!("You must specify a path after a {verb} command."));
        self.flags.word().ok_or_else(missing)
    }

    fn two(&mut self) -> Result<[Vec<u8>; 2], NoCommand> {
        let paths = self.flags.word().zip(self.flags.word());
        let verb = self.verb;
        let missing = || NoCommand(format!("You must specify two paths after a {verb} command."));
        let (one, other) = paths.ok_or_else(missing)?;
        Ok([unescaped(&one), unescaped(&other)])
    }

    fn transfer(&mut self) -> Result<Transfer, NoCommand> {
        let flags = self.flags.take("afPpRr")?;
        let has = |flag: u8| flags.contains(&flag);
        let is_resumed = has(b'a') || matches!(self.verb, "reget" | "reput");
        let verb = self.verb;
        let missing =
            || NoCommand(format!("You must specify at least one path after a {verb} command."));
        let from = self.flags.word().ok_or_else(missing)?;
        Ok(Transfer {
            from,
            to: self.flags.word().map(|word| unescaped(&word)),
            how: How {
                attributes: if has(b'p') || has(b'P') { Attributes::Kept } else { Attributes::New },
                depth: if has(b'r') || has(b'R') { Depth::Tree } else { Depth::File },
                begin: if is_resumed { Begin::Resumed } else { Begin::Anew },
                until: if has(b'f') { Until::Synced } else { Until::Written },
            },
        })
    }

    fn change(&mut self, what: Changed) -> Result<Command, NoCommand> {
        let is_link = self.flags.take("h")?.contains(&b'h');
        let value = self.number(if what == Changed::Mode { 8 } else { 10 })?;
        let verb = self.verb;
        let missing = || NoCommand(format!("You must specify a path after a {verb} command."));
        let pattern = self.flags.word().ok_or_else(missing)?;
        let links = if is_link { Links::Themselves } else { Links::Followed };
        Ok(Command::Change(Change { what, value, pattern, links }))
    }

    fn number(&mut self, base: u32) -> Result<u32, NoCommand> {
        let verb = self.verb;
        let none =
            || NoCommand(format!("You must supply a numeric argument to the {verb} command."));
        let word = self.flags.word().ok_or_else(none)?;
        let digits = str::from_utf8(&word).map_err(|_| none())?;
        u32::from_str_radix(digits, base).ok().filter(|_| !digits.starts_with('+')).ok_or_else(none)
    }

    fn space(&mut self) -> Result<Command, NoCommand> {
        let mut unit = SpaceUnit::Kibibytes;
        for flag in self.flags.take("hi")? {
            match (flag, unit) {
                (b'i', _) => unit = SpaceUnit::Inodes,
                (_, SpaceUnit::Kibibytes) => unit = SpaceUnit::Scaled,
                _ => {}
            }
        }
        Ok(Command::Space { path: self.flags.word().map(|word| unescaped(&word)), unit })
    }

    fn list(&mut self) -> Result<Command, NoCommand> {
        let mut style = Style {
            form: Form::Columns,
            hidden: Hidden::LeftOut,
            order: Order::Name,
            direction: Direction::Forward,
        };
        let mut long = Long { owners: Owners::Named, sizes: Sizes::Bytes };
        for flag in self.flags.take("1Safhlnrt")? {
            match flag {
                b'1' => style.form = Form::Single,
                b'a' => style.hidden = Hidden::Shown,
                b'f' => style.order = Order::None,
                b'S' => style.order = Order::Size,
                b't' => style.order = Order::Time,
                b'r' => style.direction = Direction::Backward,
                // Sizes have a unit in long lines only.
                b'h' => long.sizes = Sizes::Scaled,
                b'n' => {
                    long.owners = Owners::Numbered;
                    style.form = Form::Long(long);
                }
                _ => style.form = Form::Long(long),
            }
        }
        if matches!(style.form, Form::Long(_)) {
            style.form = Form::Long(long);
        }
        Ok(Command::List { pattern: self.flags.word(), style })
    }
}
