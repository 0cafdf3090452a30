//! What is right after a run, however it went.

use crate::calls::Call;
use crate::fault::{Fault, Lasting, Wrong};
use crate::place::{Area, Place};
use crate::scene::{Durable, Manner, Scene};
use crate::tracer::{End, Finished};
use crate::tree::{self, Closeness, Content, Tree, differences, is_partial};
use anyhow::Result;
use nix::sys::signal::Signal;
use std::fs;

/// What stood where before the program was run for the first time.
pub(crate) struct Before {
    /// What is to be copied.
    pub(crate) source: Tree,
    /// What stood at the target.
    pub(crate) target: Tree,
}

/// What happened to a fault.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Struck {
    /// How often the program met it.
    pub(crate) times: u32,
    /// A directory's sync failed, and with it what a name had been promised.
    pub(crate) names_lost: bool,
}

impl Before {
    /// Looks around.
    pub(crate) fn look(place: &Place) -> Result<Self> {
        let source = tree::read(&place.area(Area::Source))?;
        Ok(Self { source, target: tree::read(&place.area(Area::Target))? })
    }

    /// What is wrong after the run with the fault. A run that was killed says nothing.
    pub(crate) fn judge(
        &self,
        scene: &Scene,
        (fault, struck): (&Fault, Struck),
        place: &Place,
        finished: &Finished,
    ) -> Result<Vec<String>> {
        let mut said = Vec::new();
        if finished.stderr.contains("panicked") {
            said.push("it panicked".to_owned());
        }
        match finished.end {
            End::Hung => said.push("it hung".to_owned()),
            End::Exit(0) => {
                said.extend(self.is_done(scene.closeness, leftovers(fault), place)?);
                if struck.names_lost && scene.durable == Durable::Yes {
                    said.push("exit 0, and the sync of a directory has failed".to_owned());
                }
            }
            End::Exit(_) => {
                said.extend(self.is_old_or_new(scene, place)?);
                said.extend(explains(fault, struck, &finished.stderr));
            }
            End::Signal(Signal::SIGKILL) if kills(fault) => {
                said.extend(self.is_old_or_new(scene, place)?);
            }
            End::Signal(signal) => said.push(format!("it ended by {signal}")),
        }
        Ok(said)
    }

    /// What is wrong after the same command without a fault.
    pub(crate) fn judge_repair(
        &self,
        closeness: Closeness,
        leftovers: Leftovers,
        place: &Place,
        finished: &Finished,
    ) -> Result<Vec<String>> {
        let mut said = match finished.end {
            End::Exit(0) => self.is_done(closeness, leftovers, place)?,
            ref end => vec![format!("{end:?}: {}", finished.stderr.trim())],
        };
        said.iter_mut().for_each(|words| *words = format!("again without faults: {words}"));
        Ok(said)
    }

    /// The target is the source, and nothing else is left.
    fn is_done(
        &self,
        closeness: Closeness,
        leftovers: Leftovers,
        place: &Place,
    ) -> Result<Vec<String>> {
        let found = tree::read(&place.area(Area::Target))?;
        let mut said = Vec::new();
        let (partial, found): (Tree, Tree) =
            found.into_iter().partition(|(path, _)| is_partial(path));
        for words in differences(&self.source, &found, closeness) {
            said.push(format!("exit 0, and {words}"));
        }
        if leftovers == Leftovers::Wrong {
            said.extend(partial.keys().map(|path| format!("exit 0 leaves {}", path.display())));
            said.extend(journals(place).map(|name| format!("exit 0 leaves {name}")));
        }
        Ok(said)
    }

    /// Each name is what it was or what it is to be.
    fn is_old_or_new(&self, scene: &Scene, place: &Place) -> Result<Vec<String>> {
        let found = tree::read(&place.area(Area::Target))?;
        let mut said = Vec::new();
        for (path, have) in found.iter().filter(|(path, _)| !is_partial(path)) {
            let is =
                |tree: &Tree| tree.get(path).is_some_and(|entry| entry.content == have.content);
            let was_file = matches!(self.target.get(path), Some(old) if matches!(old.content, Content::File(..)));
            let is_written_over = scene.manner == Manner::InPlace && was_file;
            if !is(&self.source) && !is(&self.target) && !is_written_over {
                said.push(format!("{} is neither the old nor the new one", path.display()));
            }
        }
        let lost = self.target.keys().filter(|path| !found.contains_key(*path));
        said.extend(lost.map(|path| format!("the old {} is gone", path.display())));
        Ok(said)
    }
}

/// Journals that are there.
pub(crate) fn journals(place: &Place) -> impl Iterator<Item = String> + use<> {
    let folder = place.area(Area::State).join("hikyaku/copies");
    let listing = fs::read_dir(folder).into_iter().flatten().flatten();
    listing.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// A program that failed says why, in words of the cause.
fn explains(fault: &Fault, struck: Struck, stderr: &str) -> Option<String> {
    let Some(error) = fault.wrong().filter(|_| struck.times > 0) else {
        return Some(format!("failed without a fault: {}", stderr.trim()));
    };
    let said = stderr.to_lowercase();
    if said.trim().is_empty() {
        return Some("failed without a word".to_owned());
    }
    let words = error.words();
    let names_it = words.is_empty() || words.iter().any(|word| said.contains(word));
    (!names_it).then(|| format!("does not name the cause: {}", stderr.trim().replace('\n', " | ")))
}

/// Whether the fault is that the program is killed.
pub(crate) fn kills(fault: &Fault) -> bool {
    matches!(fault, Fault::Kill(_) | Fault::Call { error: Wrong::Killed, .. })
}

/// What of unfinished copies may be left when all is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leftovers {
    /// Nothing.
    Wrong,
    /// They could not be removed, or what says of them could not be read: a later copy removes them.
    Later,
}

/// What a fault excuses.
pub(crate) fn leftovers(fault: &Fault) -> Leftovers {
    match fault {
        Fault::Call { call, area, .. } if *call == Call::Unlink || *area == Area::State => {
            Leftovers::Later
        }
        // What cannot be listed cannot be looked through.
        Fault::Call { call: Call::List, lasting: Lasting::ForGood, .. } | Fault::Full(_) => {
            Leftovers::Later
        }
        _ => Leftovers::Wrong,
    }
}
