//! Which runs there are: for each scene every kind of call that it makes, each error that this kind
//! may give, at the first, second and third call, once and for good; and kills all along it.

use crate::calls::Call;
use crate::campaign::Rig;
use crate::director::Counts;
use crate::fault::{Fault, Lasting, possible};
use crate::place::Area;
use crate::scene::Scene;
use anyhow::{Context, Result};
use std::fmt;
use std::str::FromStr;

/// A scene with a fault.
#[derive(Clone)]
pub struct Run {
    /// What is copied.
    pub(crate) scene: &'static Scene,
    /// What goes wrong.
    pub(crate) fault: Fault,
}

/// At how many points of a scene the program is killed.
const KILLS: u32 = 40;
/// Up to which call of a kind it fails.
const DEEPEST: u32 = 3;

/// All runs of `scenes`. Each is run once without a fault, to see what calls it makes.
pub fn plan(rig: &Rig<'_>, scenes: &[&'static Scene]) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for scene in scenes {
        let (counts, all) = rig.count(scene).with_context(|| format!("scene {}", scene.name))?;
        runs.extend(faults(&counts, all).into_iter().map(|fault| Run { scene, fault }));
    }
    Ok(runs)
}

/// `count` of them, the same ones for the same seed however many others there are: how often a copy makes
/// a call is not the same each time.
pub fn sample(mut runs: Vec<Run>, seed: u64, count: usize) -> Vec<Run> {
    runs.sort_by_cached_key(|run| *blake3::hash(format!("{seed} {run}").as_bytes()).as_bytes());
    runs.truncate(count);
    runs
}

fn faults(counts: &Counts, all: u32) -> Vec<Fault> {
    let mut faults = vec![Fault::None];
    for (&(call, area), &count) in counts {
        for error in possible(call, area) {
            for nth in 1..=DEEPEST.min(count) {
                let lasting = [Lasting::Once, Lasting::ForGood];
                let lasting =
                    lasting.into_iter().filter(|&l| l == Lasting::Once || error.may_last());
                faults.extend(lasting.map(|lasting| Fault::Call {
                    call,
                    area,
                    nth,
                    error,
                    lasting,
                }));
            }
        }
    }
    let writes = counts.get(&(Call::Write, Area::Target)).copied().unwrap_or(0);
    faults.extend((1..=writes).map(Fault::Full));
    let kills = KILLS.min(all);
    faults.extend((0..kills).map(|at| Fault::Kill(1 + at * all / kills)));
    faults
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.scene.name, self.fault)
    }
}

impl FromStr for Run {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (scene, fault) = text.split_once('/').context("not of the form SCENE/FAULT")?;
        let scene = Scene::named(scene).with_context(|| format!("{scene}: no such scene"))?;
        Ok(Self { scene, fault: fault.parse()? })
    }
}
