//! What is said of unfinished copies, to people and to programs.

use super::abandon::{Became, Dropped};
use super::{partial_path, progress, target};
use hikyaku_console::{Document, Form};
use hikyaku_fs::{Shown, sentence};
use hikyaku_job::{Journaled, Known, State, Unfinished};
use hikyaku_transfer::{EarlierFile, Remains};
use hikyaku_units::{DataSize, counted};
use serde::Serialize;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// Fields may be added; none is removed or changed without a new number.
const VERSION: u32 = 1;

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    /// A copy that has not come to its end.
    Unfinished {
        version: u32,
        #[serde(flatten)]
        copy: &'a Told,
    },
    /// One that was to be dropped.
    Abandoned {
        version: u32,
        #[serde(flatten)]
        copy: Abandoned,
    },
}

/// A copy that was to be dropped.
#[derive(Serialize)]
struct Abandoned {
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    journal: String,
    is_dropped: bool,
    removed_files: u64,
    freed_bytes: u64,
}

/// The content of a document.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum List {
    Unfinished(Vec<Told>),
    Abandoned(Vec<Abandoned>),
}

/// A copy as it is told.
#[derive(Serialize)]
struct Told {
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// The sources, in the sender's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    state: Stage,
    /// Why nothing more is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<String>,
    /// When it last said anything of itself, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    touched: Option<u64>,
    /// Files that have their names.
    done_files: usize,
    journal: String,
    files: Vec<File>,
}

/// What can become of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    /// The same command goes on with it.
    Waiting,
    UnderWay,
    /// Nothing goes on with it.
    EarlierVersion,
    Unreadable,
}

/// A file that has not got its name.
#[derive(Serialize)]
struct File {
    path: String,
    /// Its name until then.
    partial: String,
    size: u64,
    /// Of these, bytes that have reached the disk, and bytes that were written since.
    proven_bytes: u64,
    claimed_bytes: u64,
}

/// A copy in the list, in words or as a line.
pub(super) fn listed(copy: &Unfinished, form: Form) -> String {
    let told = Told::new(copy);
    match form {
        Form::Words => told.text(copy.touched.and_then(|at| at.elapsed().ok())),
        Form::Document | Form::Lines => line(&Event::Unfinished { version: VERSION, copy: &told }),
    }
}

/// The document of the list.
pub(super) fn list(all: &[&Unfinished]) -> String {
    Document::new(List::Unfinished(all.iter().map(|copy| Told::new(copy)).collect())).line()
}

/// The document of those that were to be dropped.
pub(super) fn abandoned_list(all: &[(&Unfinished, Dropped)]) -> String {
    let all = all.iter().map(|(copy, dropped)| Abandoned::new(copy, dropped));
    Document::new(List::Abandoned(all.collect())).line()
}

/// What became of one that was to be dropped, in words or as a line.
pub(super) fn abandoned(copy: &Unfinished, dropped: &Dropped, form: Form) -> String {
    match form {
        Form::Document | Form::Lines => {
            line(&Event::Abandoned { version: VERSION, copy: Abandoned::new(copy, dropped) })
        }
        Form::Words => {
            let size = DataSize::from_bytes(dropped.freed);
            let remarks = dropped.remarks.iter().map(|remark| format!("  {remark}\n"));
            let said = match (dropped.became, dropped.files) {
                (Became::Dropped, _) => format!("dropped, {size} freed"),
                (Became::Gone, _) => "has come to its end meanwhile".to_owned(),
                (Became::Kept, 0) => return remarks.collect(),
                (Became::Kept, _) => format!("dropped in part, {size} freed"),
            };
            format!("{}: {said}\n{}", name(copy), remarks.collect::<String>())
        }
    }
}

/// What a copy is called.
pub(super) fn name(copy: &Unfinished) -> String {
    let told = Told::new(copy);
    told.target.unwrap_or(told.journal)
}

fn line(event: &Event<'_>) -> String {
    // Nothing in it can fail to be written.
    format!("{}\n", serde_json::to_string(event).unwrap_or_default())
}

fn shown(path: &Path) -> String {
    Shown::new(path.as_os_str().as_bytes()).to_string()
}

impl Abandoned {
    fn new(copy: &Unfinished, dropped: &Dropped) -> Self {
        let Told { target, journal, .. } = Told::new(copy);
        Self {
            target,
            journal,
            is_dropped: dropped.became == Became::Dropped,
            removed_files: dropped.files,
            freed_bytes: dropped.freed,
        }
    }
}

impl Told {
    fn new(copy: &Unfinished) -> Self {
        let since = copy.touched.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let state = match (&copy.content, copy.state) {
            (_, State::UnderWay) => Stage::UnderWay,
            (Journaled::Known(_), State::Waiting) => Stage::Waiting,
            (Journaled::Earlier(_), State::Waiting) => Stage::EarlierVersion,
            (Journaled::Unreadable(_), State::Waiting) => Stage::Unreadable,
        };
        let told = Self {
            target: None,
            from: None,
            state,
            unreadable: None,
            touched: since.map(|time| time.as_secs()),
            done_files: 0,
            journal: shown(&copy.path),
            files: Vec::new(),
        };
        match &copy.content {
            Journaled::Known(known) => told.known(known),
            Journaled::Earlier(files) => Self {
                files: files.iter().map(|(path, file)| earlier(path, file)).collect(),
                ..told
            },
            Journaled::Unreadable(why) => Self { unreadable: Some(why.clone()), ..told },
        }
    }

    fn known(self, known: &Known) -> Self {
        let base = super::base(known);
        let file = |(path, remains): (&Vec<u8>, &Remains)| {
            let (record, (proven_bytes, claimed_bytes)) = match remains {
                Remains::Part(part) => (&part.record, progress(part)),
                Remains::Void(record) => (record, (0, 0)),
                Remains::Whole(_) => return None,
            };
            Some(File {
                path: shown(&base.join(OsStr::from_bytes(path))),
                partial: shown(&partial_path(base, path, &record.partial)),
                size: record.size,
                proven_bytes,
                claimed_bytes,
            })
        };
        let files: Vec<File> = known.files.iter().filter_map(file).collect();
        Self {
            target: Some(shown(&target(known))),
            from: Some(sentence(&known.begun.from)),
            done_files: known.files.len() - files.len(),
            files,
            ..self
        }
    }

    fn text(&self, since: Option<Duration>) -> String {
        let mut text = String::new();
        let mut row = |name: &str, value: &str| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "  {name:<9}{value}");
        };
        if let Some(from) = &self.from {
            row("from", from);
        }
        row("state", &self.state());
        if let Some(since) = since {
            row("touched", &format!("{} ago", ago(since)));
        }
        for File { path, partial, size, proven_bytes, claimed_bytes } in &self.files {
            row("file", path);
            row("", &format!("is {partial}"));
            row("", &part(*size, *proven_bytes, *claimed_bytes));
        }
        if self.done_files > 0 {
            row("done", &format!("{} with the final name", counted(self.done_files, "file")));
        }
        row("journal", &self.journal);
        let name = self.target.as_deref().unwrap_or("to a target that its journal does not name");
        format!("{name}\n{text}")
    }

    fn state(&self) -> String {
        match self.state {
            Stage::Waiting => "waits for the same command, which goes on with it".to_owned(),
            Stage::UnderWay => "under way".to_owned(),
            Stage::EarlierVersion => "of an earlier version; nothing goes on with it".to_owned(),
            Stage::Unreadable => {
                format!("cannot be read: {}", self.unreadable.as_deref().unwrap_or_default())
            }
        }
    }
}

/// What was written may have reached the disk or not: that journal does not tell for sure.
fn earlier(path: &[u8], file: &EarlierFile) -> File {
    let partial = partial_path(Path::new(""), path, &file.partial);
    let path = Shown::new(path).to_string();
    let (size, claimed_bytes) = (file.size, file.written);
    File { path, partial: shown(&partial), size, proven_bytes: 0, claimed_bytes }
}

fn part(size: u64, proven: u64, claimed: u64) -> String {
    let size_of = DataSize::from_bytes;
    let claimed = match claimed {
        0 => String::new(),
        claimed => format!(", {} to be read again", size_of(claimed)),
    };
    format!("{} of {} proven{claimed}", size_of(proven), size_of(size))
}

/// A time as people say it.
fn ago(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}
