//! What is printed: names as the user wants them, and at the end what there was.

use crate::args::{Printing, SyncArgs};
use crate::line::Escape;
use crate::plan::{Plan, Reason, dir_line};
use crate::side::Kind;
use crate::walk::{Skipped, Told};
use anyhow::Result;
use hikyaku_console::{Audience, print_event, unwritten};
use hikyaku_units::counted;
use serde_json::{Value, json};
use std::io::{self, BufWriter, Stdout, Write, stdout};

/// Prints names as the user wants them.
pub(crate) struct Printer {
    audience: Audience,
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
        let (audience, is_quiet, escape) = (args.audience(), args.is_quiet(), args.escape());
        let (printing, ending) = match audience.is_program() {
            true => (Printing::Nothing, Ending::Nothing),
            false => (args.printing(), args.ending()),
        };
        Self { audience, printing, is_quiet, escape, out, ending }
    }

    /// Tells what the walk has found.
    pub(crate) fn tell(&mut self, told: &Told<'_>) -> io::Result<()> {
        if self.audience.is_program() {
            return print_event(self.audience, &event(told));
        }
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
            match self.audience.is_program() {
                true => self.tell(&Told::Deletion(&name)).map_err(unwritten)?,
                false => self.line(&[self.deleting(), &name].concat())?,
            }
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

/// For a program.
fn event(told: &Told<'_>) -> Value {
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    match told {
        Told::Change(letters, name) => {
            json!({ "event": "change", "letters": letters, "path": text(name) })
        }
        Told::Deletion(name) => json!({ "event": "deletion", "path": text(name) }),
        Told::Skipped(what, name) => {
            let kind = match what {
                Skipped::Directory => "directory",
                Skipped::NoFile => "special",
            };
            json!({ "event": "skipped", "kind": kind, "path": text(name) })
        }
    }
}
