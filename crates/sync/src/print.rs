//! What is printed: names as the user wants them, and at the end what there was.

use crate::args::{Printing, SyncArgs};
use crate::line::Escape;
use crate::plan::{Plan, Reason, dir_line};
use crate::side::Kind;
use crate::walk::{Skipped, Told};
use anyhow::Result;
use hikyaku_console::unwritten;
use hikyaku_units::counted;
use std::io::{self, BufWriter, Stdout, Write, stdout};

/// Prints names as the user wants them.
pub(crate) struct Printer {
    printing: Printing,
    is_quiet: bool,
    escape: Escape,
    out: BufWriter<Stdout>,
    ending: Ending,
}

/// What is printed behind all names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    Nothing,
    /// What there was (`-v`).
    Summary,
    /// The same of a rehearsal.
    Rehearsal,
}

impl Printer {
    pub(crate) fn new(args: &SyncArgs) -> Self {
        let out = BufWriter::new(stdout());
        let (is_quiet, ending) = (args.is_quiet(), args.ending());
        Self { printing: args.printing(), is_quiet, escape: args.escape(), out, ending }
    }

    /// Tells what the walk has found.
    pub(crate) fn tell(&mut self, told: &Told<'_>) -> io::Result<()> {
        let line = match (told, self.printing) {
            // What is not copied is told without -v too.
            (Told::Skipped(..), _) if self.is_quiet => return Ok(()),
            (Told::Skipped(Skipped::Directory, path), _) => {
                [&b"skipping directory "[..], *path].concat()
            }
            (Told::Skipped(Skipped::NoFile, path), _) => {
                [&b"skipping non-regular file \""[..], *path, b"\""].concat()
            }
            (_, Printing::Nothing) => return Ok(()),
            (Told::Deletion(name), _) => [self.deleting(), *name].concat(),
            (Told::Change(_, name), Printing::Names) => name.to_vec(),
            (Told::Change(letters, name), Printing::Letters) => {
                [letters.as_bytes(), b" ", *name].concat()
            }
        };
        self.write(&line)
    }

    const fn deleting(&self) -> &'static [u8] {
        match self.printing {
            Printing::Letters => b"*deleting   ",
            Printing::Names | Printing::Nothing => b"deleting ",
        }
    }

    /// Tells what is deleted, but for what was told by the walk.
    pub(crate) fn deletions(&mut self, plan: &Plan) -> Result<()> {
        for doomed in plan.doomed().filter(|doomed| doomed.reason == Reason::Extra) {
            let is_dir = doomed.meta.kind == Kind::Dir;
            let name = if is_dir { dir_line(&doomed.path) } else { doomed.path.clone() };
            self.line(&[self.deleting(), &name].concat())?;
        }
        self.flush()
    }

    /// Tells what there was: what of it failed is told apart.
    pub(crate) fn summary(&mut self, plan: &Plan) -> Result<()> {
        let rehearsed = match self.ending {
            Ending::Nothing => return Ok(()),
            Ending::Summary => "",
            Ending::Rehearsal => " (DRY RUN)",
        };
        let (copied, all) = (plan.copied, plan.all);
        writeln!(
            self.out,
            "\n{} ({}) to copy, {} to delete; total size is {} in {}{rehearsed}",
            counted(copied.files, "file"),
            counted(copied.bytes, "byte"),
            counted(plan.deletions(), "name"),
            counted(all.bytes, "byte"),
            counted(all.files, "file"),
        )
        .map_err(unwritten)
    }

    /// Prints a line, if names are printed.
    pub(crate) fn line(&mut self, line: &[u8]) -> Result<()> {
        match self.printing {
            Printing::Nothing => Ok(()),
            Printing::Names | Printing::Letters => self.write(line).map_err(unwritten),
        }
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.out.write_all(&self.escape.line(line))?;
        self.out.write_all(b"\n")
    }

    /// What was printed is out then.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.out.flush().map_err(unwritten)
    }
}
