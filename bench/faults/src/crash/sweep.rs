//! Records copies, cuts each at every point in many ways, and looks at what is left: all states in memory,
//! and some on a disk, where the program itself goes on from them.

use super::disk::{Disk, Lasting, Node};
use super::promise::{Held, Promise, Told};
use super::record::{Event, Number, Recorder};
use super::state::{ALWAYS, Failure};
use crate::campaign::Rig;
use crate::judge::{Before, Leftovers};
use crate::place::{Area, Place};
use crate::scene::{Durable, Scene};
use crate::tracer::{End, run};
use crate::tree::{self, Closeness, is_partial};
use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// How much is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// States of each scene in memory.
    pub states: usize,
    /// Of these, how many the program goes on from.
    pub again: usize,
    /// What chance is drawn by.
    pub seed: u64,
}

/// What came of a scene.
pub struct Swept {
    /// Its name.
    pub scene: &'static str,
    /// What the copy did to the disk, in calls.
    pub events: usize,
    /// States that were looked at.
    pub states: usize,
    /// States from which the program went on.
    pub again: usize,
    /// What was wrong, each thing once.
    pub wrong: Vec<String>,
}

/// Sweeps over one scene.
pub fn sweep(rig: &Rig<'_>, scene: &'static Scene, effort: Effort) -> Result<Swept> {
    let place = Place::make(rig.scratch, &format!("crash-{}", scene.name))?;
    let story = Story::record(rig, scene, &place)?;
    let mut rng = Rng::with_seed(effort.seed);
    let mut sweep = Sweep { story: &story, wrong: Vec::new(), seen: BTreeSet::new() };
    let points = story.events.len() + 1;
    let by_chance = effort.states.saturating_sub(points * ALWAYS.len()).div_ceil(points);
    let total = points * (ALWAYS.len() + by_chance);
    let (mut disk, mut told) = (story.begin.clone(), Told::Nothing);
    let (mut states, mut again) = (0, 0);
    for point in 0..points {
        let chosen = (0..by_chance).map(|_| Failure::any(&mut rng)).collect::<Vec<_>>();
        for failure in ALWAYS.into_iter().chain(chosen) {
            let left = failure.strike(&disk, &mut rng);
            sweep.look(&left, told, (point, failure));
            // Spread evenly over the states, whatever their number.
            if states * effort.again / total != (states + 1) * effort.again / total {
                sweep.go_on(rig, &place, &left, (point, failure))?;
                again += 1;
            }
            states += 1;
        }
        if let Some(event) = story.events.get(point) {
            disk.handle(event);
            if *event == Event::Told && scene.durable == Durable::Yes {
                told = Told::Done;
            }
        }
    }
    let wrong = sweep.wrong;
    Ok(Swept { scene: scene.name, events: story.events.len(), states, again, wrong })
}

/// A recorded copy.
struct Story {
    scene: &'static Scene,
    before: Before,
    promise: Promise,
    begin: Disk,
    events: Vec<Event>,
}

impl Story {
    fn record(rig: &Rig<'_>, scene: &'static Scene, place: &Place) -> Result<Self> {
        scene.set(place)?;
        let before = Before::look(place)?;
        if let Some(first) = scene.before {
            rig.watched(scene, place, &first.parse()?)?;
        }
        let held = |area| -> Result<(Lasting, Number)> {
            let mut lasting = Lasting::default();
            let root = lasting.take_up(&place.area(area))?;
            Ok((lasting, root))
        };
        let own = |(lasting, root): &(Lasting, Number)| -> Held {
            lasting.below(*root).into_iter().map(|(path, node)| (path, node.clone())).collect()
        };
        let (target, state) = (held(Area::Target)?, held(Area::State)?);
        let (source, old) = (own(&held(Area::Source)?), own(&target));
        let ended = BTreeMap::new();
        let mut promise = Promise { scene, source, old, ended, target: target.1, state: state.1 };
        let mut lasting = target.0;
        lasting.nodes.extend(state.0.nodes);
        let mut recorder = Recorder::new(scene.pace);
        let finished = run(&rig.job(scene, place), &mut recorder)?;
        ensure!(finished.end == End::Exit(0), "{:?}: {}", finished.end, finished.stderr);
        let mut events = recorder.events;
        events.push(Event::Told);
        let begin = Disk::new(lasting);
        let end = ends_as_seen(&begin, &events, place, (promise.target, promise.state))?;
        let files = promise.source.keys();
        let ended = files.filter_map(|path| Some((path.clone(), end.find(promise.target, path)?)));
        promise.ended = ended.collect();
        Ok(Self { scene, before, promise, begin, events })
    }
}

/// The record is right: if everything lasts, it gives what is there.
fn ends_as_seen(
    begin: &Disk,
    events: &[Event],
    place: &Place,
    (target, state): (Number, Number),
) -> Result<Lasting> {
    let mut disk = begin.clone();
    events.iter().for_each(|event| disk.handle(event));
    disk.handle(&Event::SyncAll);
    for (area, root) in [(Area::Target, target), (Area::State, state)] {
        let mut real = Lasting::default();
        let number = real.take_up(&place.area(area))?;
        let is_it = real.below(number) == disk.lasting.below(root);
        ensure!(is_it, "the record of the {area} lacks something");
    }
    Ok(disk.lasting)
}

type At = (usize, Failure);

struct Sweep<'s> {
    story: &'s Story,
    wrong: Vec<String>,
    seen: BTreeSet<String>,
}

impl Sweep<'_> {
    fn look(&mut self, left: &Lasting, told: Told, at: At) {
        for words in self.story.promise.broken(left, told) {
            self.say(words, at);
        }
    }

    /// The program goes on from there, and ends well. Modes and times are not recorded.
    fn go_on(&mut self, rig: &Rig<'_>, place: &Place, left: &Lasting, at: At) -> Result<()> {
        let promise = &self.story.promise;
        for (area, root) in [(Area::Target, promise.target), (Area::State, promise.state)] {
            lay(left, root, &place.area(area)).context("cannot make what is left")?;
        }
        // An unfinished file without a journal may be another machine's, and is left alone for a day.
        for leftovers in [Leftovers::Later, Leftovers::Wrong] {
            let finished = rig.run_free(self.story.scene, place)?;
            let (before, near) = (&self.story.before, Closeness::Content);
            for words in before.judge_repair(near, leftovers, place, &finished)? {
                self.say(words, at);
            }
            if !grow_old(&place.area(Area::Target))? {
                break;
            }
        }
        Ok(())
    }

    /// Each thing once: the same hole is seen at many points.
    fn say(&mut self, words: String, (point, failure): At) {
        if self.seen.insert(words.clone()) {
            let last = point.checked_sub(1).map(|at| shown(&self.story.events[at]));
            let last = last.unwrap_or_default();
            self.wrong.push(format!("{words} [after call {point} ({last}), {failure:?}]"));
        }
    }
}

fn shown(event: &Event) -> String {
    match event {
        Event::Write(number, at, bytes) => format!("Write({number}, {at}, {} bytes)", bytes.len()),
        other => format!("{other:?}"),
    }
}

/// Two days pass for what is unfinished; whether there is anything.
fn grow_old(target: &Path) -> Result<bool> {
    let old = SystemTime::now() - Duration::from_secs(48 * 3600);
    let mut is_there = false;
    for path in tree::read(target)?.keys().filter(|path| is_partial(path)) {
        let times = Timespec { tv_sec: since_epoch(old)?, tv_nsec: 0 };
        let times = Timestamps { last_access: times, last_modification: times };
        utimensat(CWD, target.join(path), &times, AtFlags::SYMLINK_NOFOLLOW)?;
        is_there = true;
    }
    Ok(is_there)
}

fn since_epoch(time: SystemTime) -> Result<i64> {
    Ok(i64::try_from(time.duration_since(SystemTime::UNIX_EPOCH)?.as_secs())?)
}

/// Makes what is left, in place of what stands there.
fn lay(left: &Lasting, root: Number, at: &Path) -> Result<()> {
    fs::remove_dir_all(at)?;
    fs::create_dir(at)?;
    for (path, node) in left.below(root) {
        let path = at.join(path);
        match node {
            Node::Dir(_) => fs::create_dir(&path)?,
            Node::File(bytes) => fs::write(&path, bytes.as_slice())?,
            Node::Link(to) => symlink(to, &path)?,
        }
    }
    Ok(())
}

impl fmt::Display for Swept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scene, events, states, again, wrong } = self;
        write!(f, "{scene:<10}{events:>8}{states:>8}{again:>8}{:>8}", wrong.len())
    }
}
