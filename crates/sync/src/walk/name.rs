//! Deciding on one name of the source.

use super::{NoPlan, Pair, Pending, Sink, Target, Told, Walk};
use crate::item::{Change, Comparison, Content, change};
use crate::options::{Quick, Sources};
use crate::plan::{Doomed, Link, Plan, SetDir, When};
use crate::side::{Done, Item, Kind, Setting, Why};
use hikyaku_fs::Shown;
use std::thread;

impl Walk<'_> {
    /// Decides on one name of the source; a directory is given back, and has its turn later.
    pub(super) fn name(
        &self,
        pair: Pair<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Pending>, NoPlan> {
        let kind = pair.source.meta.kind;
        sink.plan.leaves += u64::from(kind != Kind::Dir);
        let is_left_out = match kind {
            Kind::File => false,
            Kind::Dir => !self.options.is_recursive,
            Kind::Link => !self.options.keeps_links,
            Kind::Special => true,
        };
        if is_left_out {
            let what = if kind == Kind::Dir { "directory" } else { "non-regular file" };
            (sink.tell)(Told::Skipped(what, pair.path))?;
            return Ok(None);
        }
        let same = pair.target.filter(|target| target.meta.kind == kind);
        let (content, link) = match self.compared(pair, same) {
            Ok(compared) => compared,
            Err(why) => return sink.failed(pair.path, why).map(|()| None),
        };
        let there = same.map(|same| &same.meta);
        let found = change(&pair.source.meta, there, self.known(content), self.options);
        if kind == Kind::Dir {
            if found.is_none() && same.is_none() || !self.gives_way(pair, sink)? {
                return Ok(None);
            }
            sink.hold(pair.path)?;
            let target = if same.is_some() { Target::There } else { Target::Absent };
            return Ok(Some(self.pending(pair, found, target)));
        }
        let Some(found) = found else { return Ok(None) };
        sink.hold(pair.path)?;
        let is_late = pair.target.is_some_and(|other| other.meta.kind == Kind::Dir);
        if !self.gives_way(pair, sink)? {
            return Ok(None);
        }
        if self.options.sources == Sources::Removed && found.content == Content::Goes {
            // What the target had before may be the source itself, by another way.
            sink.plan.sources.push(Doomed { path: pair.path.to_vec(), meta: pair.source.meta });
        }
        let mut line = pair.path.to_vec();
        if let Some(text) = &link {
            line.extend([b" -> ", &text[..]].concat());
        }
        (sink.tell)(Told::Change(&found.letters, &line))?;
        if is_late {
            self.add_late(pair, &found, link, sink);
        } else {
            self.add(pair, found, link, sink);
        }
        Ok(None)
    }

    /// What came of a comparison of contents, and what a link of the source says.
    fn compared(&self, pair: Pair<'_>, same: Option<&Item>) -> Done<(Comparison, Option<Vec<u8>>)> {
        let compared = |is_same: bool| match is_same {
            true => Comparison::Same,
            false => Comparison::Differs,
        };
        if let Some(link) = &pair.source.link {
            let text = link.clone()?;
            let there = same.and_then(|same| same.link.clone()).transpose()?;
            return Ok((compared(there.as_ref() == Some(&text)), Some(text)));
        }
        let is_due = self.options.quick == Quick::Content && pair.source.meta.kind == Kind::File;
        let same = same.filter(|same| is_due && same.meta.size == pair.source.meta.size);
        if same.is_none() {
            return Ok((Comparison::None, None));
        }
        let (source, target) = thread::scope(|scope| {
            let source = scope.spawn(|| self.source.hash(pair.path));
            let target = self.target.hash(pair.path);
            (source.join(), target)
        });
        let source = source.unwrap_or_else(|_| Err(Why::of_name("it cannot be read")))?;
        Ok((compared(source == target?), None))
    }

    /// Whether what has a name at the target, and is of another kind, makes way. A directory does so only if it is
    /// deleted with all that is in it.
    fn gives_way(&self, pair: Pair<'_>, sink: &mut Sink<'_>) -> Result<bool, NoPlan> {
        let Some(other) = pair.target.filter(|other| other.meta.kind != pair.source.meta.kind)
        else {
            return Ok(true);
        };
        if other.meta.kind == Kind::Special && self.options.backup.is_none() {
            let text = "not a regular file; it is left unchanged";
            sink.plan.failures.push(format!("{}: {text}", Shown::new(pair.path)));
            return Ok(false);
        }
        if other.meta.kind != Kind::Dir {
            if self.options.backup.is_some() {
                sink.plan.backups.push(pair.path.to_vec());
            } else {
                sink.plan.clear.push((pair.path.to_vec(), other.meta.kind));
            }
            return Ok(true);
        }
        let shown = Shown::new(pair.path);
        if self.options.deletion.is_none() {
            let text = "a directory has this name at the target; try: --delete";
            sink.plan.failures.push(format!("{shown}: {text}"));
            return Ok(false);
        }
        let before = sink.plan.delete.len();
        let is_deleted = self.delete(&[(pair.path.to_vec(), other.meta)], sink)?;
        let is_deleted = is_deleted.contains(&true);
        if !is_deleted {
            sink.plan.delete.truncate(before);
            let text = "a directory has this name at the target, and something in it is kept";
            sink.plan.failures.push(format!("{shown}: {text}"));
        }
        Ok(is_deleted)
    }

    pub(super) fn pending(
        &self,
        pair: Pair<'_>,
        change: Option<Change>,
        target: Target,
    ) -> Pending {
        let options = self.options;
        let is_made = target == Target::Absent;
        let setting = Setting {
            mode: options.keeps_modes.then_some(pair.source.meta.mode),
            modified: options.keeps_times.then_some(pair.source.meta.modified),
        };
        let when = if change.is_some() { When::Always } else { When::Touched };
        let set = SetDir { path: pair.path.to_vec(), setting, when };
        // A directory that gets its mode at the end is closed to others until then.
        let mode = if options.keeps_modes { 0o700 } else { pair.source.meta.mode };
        Pending {
            path: pair.path.to_vec(),
            target,
            change,
            set: (!setting.is_nothing()).then_some(set),
            made: is_made.then_some(mode),
            listed: None,
        }
    }

    fn add(&self, pair: Pair<'_>, found: Change, link: Option<Vec<u8>>, sink: &mut Sink<'_>) {
        let (plan, kind, setting) = (&mut sink.plan, pair.source.meta.kind, found.setting);
        if found.content == Content::Stays {
            plan.set.push((pair.path.to_vec(), kind, setting));
            return;
        }
        plan.touch(pair.path);
        if let Some(text) = link {
            plan.links.push(Link { path: pair.path.to_vec(), text, setting: self.of_new(pair) });
            return;
        }
        if pair.target.is_some_and(|there| there.meta.kind == kind) && self.options.backup.is_some()
        {
            plan.backups.push(pair.path.to_vec());
        }
        plan.files.extend([pair.path, b"\0"].concat());
        self.set_copied(pair, plan);
    }

    fn add_late(&self, pair: Pair<'_>, found: &Change, link: Option<Vec<u8>>, sink: &mut Sink<'_>) {
        debug_assert_eq!(found.content, Content::Goes);
        match link {
            Some(text) => {
                let link = Link { path: pair.path.to_vec(), text, setting: self.of_new(pair) };
                sink.plan.late_links.push(link);
            }
            None => {
                sink.plan.late_files.extend([pair.path, b"\0"].concat());
                self.set_copied(pair, &mut sink.plan);
            }
        }
    }

    /// What a new link gets.
    fn of_new(&self, pair: Pair<'_>) -> Setting {
        Setting {
            mode: None,
            modified: self.options.keeps_times.then_some(pair.source.meta.modified),
        }
    }

    /// A copy keeps modes and times together, or none of them. If one is wanted, it is set afterwards.
    fn set_copied(&self, pair: Pair<'_>, plan: &mut Plan) {
        let options = self.options;
        if options.keeps_modes == options.keeps_times {
            return;
        }
        let setting = Setting {
            mode: options.keeps_modes.then_some(pair.source.meta.mode),
            modified: options.keeps_times.then_some(pair.source.meta.modified),
        };
        plan.set_copied.push((pair.path.to_vec(), setting));
    }
}
