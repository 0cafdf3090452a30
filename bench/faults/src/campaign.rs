//! Runs: one after the other in each of some places, each judged as it ends.

use crate::director::{Counts, Director};
use crate::fault::{Fault, Lasting};
use crate::judge::{Before, Leftovers, Struck, leftovers};
use crate::place::{Area, Place};
use crate::plan::Run;
use crate::scene::Scene;
use crate::tracer::{End, Finished, Job, run, run_free};
use crate::unsynced::Loss;
use anyhow::{Context, Result, ensure};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// When a program has hung.
const DEADLINE: Duration = Duration::from_secs(60);
/// The receiver's step of syncing, in milliseconds: a copy of a second has several.
const SYNC_PERIOD: &str = "100";

/// What is needed to run anything.
pub struct Rig<'a> {
    /// The program of these rigs.
    pub stage: &'a Path,
    /// The program under test.
    pub program: &'a Path,
    /// Where places are made.
    pub scratch: &'a Path,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its name: `SCENE/FAULT`.
    pub name: String,
    /// The scene's name.
    pub scene: &'static str,
    /// How the run with the fault ended.
    pub end: End,
    /// Whether the program met the fault.
    pub was_struck: bool,
    /// What was wrong.
    pub wrong: Vec<String>,
    /// How long all of it took.
    pub took: Duration,
}

impl Rig<'_> {
    /// How many calls of each kind a scene makes, and how many in all.
    pub(crate) fn count(&self, scene: &Scene) -> Result<(Counts, u32)> {
        let place = Place::make(self.scratch, &format!("count-{}", scene.name))?;
        let (finished, (_, counts, all)) = self.play(scene, &place, &Fault::None)?.1;
        ensure!(finished.end == End::Exit(0), "{:?}: {}", finished.end, finished.stderr);
        Ok((counts, all))
    }

    /// Runs all of `runs`, two at a time, and gives each outcome to `told`.
    pub fn run_all(&self, runs: Vec<Run>, told: &(dyn Fn(&Outcome) + Sync)) -> Result<()> {
        let queue = Mutex::new(VecDeque::from(runs));
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        thread::scope(|scope| {
            let workers: Vec<_> = (0..WORKERS)
                .map(|number| {
                    scope.spawn(move || -> Result<()> {
                        let place = Place::make(self.scratch, &format!("worker-{number}"))?;
                        while let Some(run) = next() {
                            told(&self.run_one(&run, &place).with_context(|| run.to_string())?);
                        }
                        Ok(())
                    })
                })
                .collect();
            workers.into_iter().try_for_each(|worker| {
                worker.join().map_err(|_| anyhow::anyhow!("a worker panicked"))?
            })
        })
    }

    fn run_one(&self, run: &Run, place: &Place) -> Result<Outcome> {
        let begin = Instant::now();
        let scene = run.scene;
        let (before, (finished, (struck, ..))) = self.play(scene, place, &run.fault)?;
        let mut wrong = before.judge(scene, (&run.fault, struck), place, &finished)?;
        if finished.end != End::Exit(0) || leftovers(&run.fault) == Leftovers::Later {
            let repaired = self.run_free(scene, place)?;
            wrong.extend(before.judge_repair(
                scene.closeness,
                Leftovers::Wrong,
                place,
                &repaired,
            )?);
        }
        Ok(Outcome {
            name: run.to_string(),
            scene: scene.name,
            end: finished.end,
            was_struck: struck.times > 0,
            wrong,
            took: begin.elapsed(),
        })
    }

    #[allow(clippy::type_complexity, reason = "used twice, here")]
    fn play(
        &self,
        scene: &Scene,
        place: &Place,
        fault: &Fault,
    ) -> Result<(Before, (Finished, (Struck, Counts, u32)))> {
        scene.set(place)?;
        let before = Before::look(place)?;
        if let Some(first) = scene.before {
            self.watched(scene, place, &first.parse()?)?;
        }
        Ok((before, self.watched(scene, place, fault)?))
    }

    pub(crate) fn watched(
        &self,
        scene: &Scene,
        place: &Place,
        fault: &Fault,
    ) -> Result<(Finished, (Struck, Counts, u32))> {
        // Both happen; which of them a run sees is the same each time.
        let loss = match fault {
            Fault::Call { nth, lasting: Lasting::Once, .. } if nth % 2 == 0 => Loss::AtOnce,
            _ => Loss::AtEnd,
        };
        let mut director = Director::new(fault, loss, scene.pace);
        let finished = run(&self.job(scene, place), &mut director)?;
        Ok((finished, director.end()?))
    }

    /// The copy, unwatched.
    pub(crate) fn run_free(&self, scene: &Scene, place: &Place) -> Result<Finished> {
        run_free(&self.job(scene, place))
    }

    pub(crate) fn job<'p>(&'p self, scene: &Scene, place: &'p Place) -> Job<'p> {
        Job {
            stage: self.stage,
            command: scene.command(self.program, place),
            environment: environment(place),
            place,
            deadline: DEADLINE,
        }
    }
}

const WORKERS: usize = 2;

fn environment(place: &Place) -> Vec<(OsString, OsString)> {
    let at = |name: &str| place.root().join(name).into_os_string();
    let set = |name: &str, value: OsString| (OsString::from(name), value);
    vec![
        set("XDG_STATE_HOME", place.area(Area::State).into_os_string()),
        set("XDG_CACHE_HOME", at("cache")),
        set("XDG_CONFIG_HOME", at("config")),
        set("HOME", at("home")),
        set("HIKYAKU_SYNC_PERIOD_MS", SYNC_PERIOD.into()),
    ]
}
