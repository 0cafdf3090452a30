//! Deciding on one name of the source.

use super::deletion::Way;
use super::{NoPlan, Pair, Pending, Sink, Skipped, Target, Told, Walk};
use crate::item::{Change, Comparison, Content, change};
use crate::options::{Copied, Existing, Modes, Sources};
use crate::plan::{Doomed, End, Link, Plan, Reason, SetDir, When};
use crate::side::{Done, Item, Kind, Setting, shown};

/// Set-user-id, set-group-id and sticky bit.
const SPECIAL_BITS: u32 = 0o7000;

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
        if kind == Kind::Dir {
            sink.plan.source_dirs.extend(pair.source.meta.identity);
        }
        if self.is_left_alone(pair, sink) {
            return Ok(None);
        }
        if is_left_out {
            let what = if kind == Kind::Dir { Skipped::Directory } else { Skipped::NoFile };
            (sink.tell)(Told::Skipped(what, pair.path))?;
            return Ok(None);
        }
        if kind == Kind::File {
            sink.plan.all.add(pair.source.meta.size);
        }
        let same = pair.target.filter(|target| target.meta.kind == kind);
        let (content, link) = match Self::compared(pair, same) {
            Ok(compared) => compared,
            Err(why) => return sink.failed(pair.path, why).map(|()| None),
        };
        let there = same.map(|same| &same.meta);
        let found = change(&pair.source.meta, there, self.known(content), self.options);
        if kind == Kind::Dir {
            if !self.gives_way(pair, sink)? {
                return Ok(None);
            }
            sink.hold(pair.path)?;
            let target = if same.is_some() { Target::There } else { Target::Absent };
            return Ok(Some(self.pending(pair, found, target)));
        }
        let Some(found) = found else { return Ok(None) };
        sink.hold(pair.path)?;
        let is_late = pair.target.is_some_and(|other| other.meta.kind == Kind::Dir);
        if found.content == Content::Goes && !self.gives_way(pair, sink)? {
            return Ok(None);
        }
        if self.options.sources == Sources::Removed && found.content == Content::Goes {
            // What the target had before may be the source itself, by another way.
            let (path, meta) = (pair.path.to_vec(), pair.source.meta);
            let (end, reason) = (End::Removed, Reason::Extra);
            sink.plan.sources.push(Doomed { path, meta, end, reason });
        }
        let mut line = pair.path.to_vec();
        if let Some(text) = &link {
            line.extend([b" -> ", &text[..]].concat());
        }
        (sink.tell)(Told::Change(&found.letters, &line))?;
        if kind == Kind::File && found.content == Content::Goes {
            sink.plan.copied.add(pair.source.meta.size);
        }
        if is_late {
            self.add_late(pair, &found, link, sink);
        } else {
            self.add(pair, found, link, sink);
        }
        Ok(None)
    }

    /// Whether a name stays as it is because of what the target has, or has not, under it.
    fn is_left_alone(&self, pair: Pair<'_>, sink: &mut Sink<'_>) -> bool {
        let kinds = pair.target.map(|target| (pair.source.meta.kind, target.meta.kind));
        match (self.options.existing, kinds) {
            (Existing::All, _) | (Existing::OnlyThese, Some(_)) | (Existing::LeftAlone, None) => {
                false
            }
            (Existing::LeftAlone, Some((Kind::Dir, Kind::Dir))) => false,
            (Existing::OnlyThese, None) => true,
            (Existing::LeftAlone, Some((kind, _))) => {
                if kind == Kind::Dir {
                    let text = "it is no directory at the target, and stays";
                    sink.plan.failures.push(format!("{}: {text}", shown(pair.path)));
                }
                true
            }
        }
    }

    /// What came of a comparison of contents, and what a link of the source says.
    fn compared(pair: Pair<'_>, same: Option<&Item>) -> Done<(Comparison, Option<Vec<u8>>)> {
        let Some(link) = &pair.source.link else {
            let content = pair.content.cloned().transpose()?;
            return Ok((content.unwrap_or(Comparison::None), None));
        };
        let text = link.clone()?;
        let there = same.and_then(|same| same.link.clone()).transpose()?;
        let is_same = there.as_ref() == Some(&text);
        Ok((if is_same { Comparison::Same } else { Comparison::Differs }, Some(text)))
    }

    /// Whether what has a name at the target makes way: it is kept if it is to be. A directory that is of another kind does
    /// so only if it is deleted with all that is in it.
    fn gives_way(&self, pair: Pair<'_>, sink: &mut Sink<'_>) -> Result<bool, NoPlan> {
        let kind = pair.source.meta.kind;
        let is_other = |other: &&Item| other.meta.kind != kind || pair.backup.is_some();
        let Some(other) = pair.target.filter(is_other) else { return Ok(true) };
        if other.meta.kind == Kind::Special && self.options.backup.is_none() {
            let text = "not a regular file; it is left unchanged";
            sink.plan.failures.push(format!("{}: {text}", shown(pair.path)));
            return Ok(false);
        }
        if other.meta.kind != Kind::Dir {
            match pair.backup {
                Some(to) => {
                    let is_free = self.frees(pair.path, to, sink)?;
                    if is_free {
                        sink.plan.backups.push((pair.path.to_vec(), to.path.to_vec()));
                    }
                    return Ok(is_free);
                }
                None => sink.plan.clear.push((pair.path.to_vec(), other.meta.kind)),
            }
            return Ok(true);
        }
        let way = self.make_way((pair.path, &other.meta), Reason::Within, sink)?;
        if way == Way::Blocked {
            let text = match self.options.deletion {
                None => "a directory has this name at the target, and is not empty; try: --delete",
                Some(_) => "a directory has this name at the target, and something in it is kept",
            };
            sink.plan.failures.push(format!("{}: {text}", shown(pair.path)));
        }
        Ok(way == Way::Free)
    }

    pub(super) fn pending(
        &self,
        pair: Pair<'_>,
        change: Option<Change>,
        target: Target,
    ) -> Pending {
        let options = self.options;
        let is_made = target == Target::Absent;
        let mode = pair.source.meta.mode;
        // It is made such that this may write in it, and gets its own bits at the end. The root was made for all.
        let made_for = match target {
            Target::Absent => mode & 0o777 | 0o700,
            Target::New => 0o777,
            Target::There => mode & 0o777,
        };
        let has_modes = options.modes != Modes::None && !options.keeps_modes;
        let is_other = has_modes && mode & 0o777 != made_for;
        let kept = is_other.then_some(mode & 0o777);
        let setting = Setting {
            mode: options.keeps_modes.then_some(options.modes.of(mode)),
            modified: options.keeps_times_of(Kind::Dir).then_some(pair.source.meta.modified),
        };
        let when = if change.is_some() { When::Always } else { When::Touched };
        let set = SetDir { path: pair.path.to_vec(), setting, kept, when };
        // A directory that gets its mode at the end is closed to others until then.
        let mode = if options.keeps_modes { 0o700 } else { pair.source.meta.mode & 0o777 };
        Pending {
            path: pair.path.to_vec(),
            target,
            change,
            set: (!setting.is_nothing() || kept.is_some()).then_some(set),
            made: is_made.then_some(mode),
        }
    }

    fn add(&self, pair: Pair<'_>, found: Change, link: Option<Vec<u8>>, sink: &mut Sink<'_>) {
        let (plan, kind, setting) = (&mut sink.plan, pair.source.meta.kind, found.setting);
        // A time that the target cannot be told comes with the content, if a copy brings it.
        let is_told = setting.modified.is_none_or(|time| self.target.sets_time(time));
        let comes = kind == Kind::File && !is_told && self.options.copies_odd_times();
        if found.content == Content::Stays && !comes {
            plan.set.push((pair.path.to_vec(), kind, setting));
            return;
        }
        plan.touch(pair.path);
        if let Some(text) = link {
            plan.links.push(Link { path: pair.path.to_vec(), text, setting: self.of_new(pair) });
            return;
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
            modified: (self.options.keeps_times_of(Kind::Link))
                .then_some(pair.source.meta.modified),
        }
    }

    /// What a copy does not keep is set afterwards: set-id bits, what [`Copied`] leaves out, and by SFTP times beyond 32
    /// bits.
    fn set_copied(&self, pair: Pair<'_>, plan: &mut Plan) {
        let (options, source) = (self.options, &pair.source.meta);
        let there = pair.target.filter(|there| there.meta.kind == Kind::File);
        let mode = match (options.keeps_modes, there) {
            (true, _) => Some(options.modes.of(source.mode))
                .filter(|mode| options.copied != Copied::All || mode & SPECIAL_BITS != 0),
            // As in rsync, a file that is replaced hands its mode on.
            (false, Some(there))
                if pair.backup.is_some() || there.meta.mode & SPECIAL_BITS != 0 =>
            {
                Some(there.meta.mode)
            }
            (false, _) => None,
        };
        let is_usual = i32::try_from(source.modified.secs).is_ok_and(|secs| secs >= 0);
        let is_due = options.keeps_times && (options.copied == Copied::Nothing || !is_usual);
        let setting = Setting { mode, modified: is_due.then_some(source.modified) };
        if !setting.is_nothing() {
            plan.set_copied.push((pair.path.to_vec(), setting));
        }
    }
}
