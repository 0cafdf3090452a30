//! All lies, in tables: what each is called, what was asked for when it is told, how the honest end ends.

pub mod greeting;
pub mod near;
pub mod receiver;
pub mod sender;

mod floods;
mod words;

/// What the honest end has asked for, or offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// One file.
    File,
    /// What fits a pattern.
    Pattern,
    /// What a list names.
    List,
    /// A tree, with `-r`.
    Tree,
    /// A tree, with `-a`.
    Archive,
    /// The same, to be told and not to be made.
    Rehearsal,
    /// Whatever the other end sends.
    Anything,
    /// A tree of which hashes are wanted, too.
    Manifest,
}

/// How the honest end must end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ends {
    /// By itself, with this exit code (`docs/cli.md`).
    With(i32),
    /// By itself, with any documented code.
    Somehow,
    /// When its user stops it: whoever says nothing may only be slow.
    Stopped,
}

/// A lie.
pub struct Lie<T> {
    /// What it is called.
    pub name: &'static str,
    /// What was asked for.
    pub asked: Asked,
    /// How the honest end ends.
    pub ends: Ends,
    /// Tells it.
    pub tell: T,
}

const fn lie<T>(name: &'static str, asked: Asked, ends: Ends, tell: T) -> Lie<T> {
    Lie { name, asked, ends, tell }
}

/// The lie of this name.
pub fn find<T>(all: impl IntoIterator<Item = Lie<T>>, name: &str) -> Option<T> {
    all.into_iter().find(|lie| lie.name == name).map(|lie| lie.tell)
}
