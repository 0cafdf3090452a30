//! What is drawn of a command: its way, the form of its ends, and its options.

use fastrand::Rng;

/// Where source and target are, and what carries the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Local,
    Push,
    Pull,
    PushBySftp,
    PullBySftp,
}

impl Way {
    /// Whether the target is on the far side.
    pub(super) const fn is_push(self) -> bool {
        matches!(self, Self::Push | Self::PushBySftp)
    }
}

/// How source and target are named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// What is in the directory, into one that is there.
    Contents,
    /// What is in the directory, into one that the run makes.
    Made,
    /// The directory itself.
    Directory,
    /// One file, into a directory.
    File,
    /// One file, under a new name.
    Renamed,
    /// Names of a list.
    Listed,
}

/// What the target has before the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Before {
    /// A tree of its own.
    Another,
    /// What the source has, changed.
    Changed,
    /// What the source has.
    Same,
}

/// A draw.
pub(super) struct Draw {
    pub(super) seed: u64,
    pub(super) way: Way,
    pub(super) form: Form,
    pub(super) before: Before,
    pub(super) words: Vec<String>,
    /// The umask of both programs, in octal digits; `None` is that of the test.
    pub(super) umask: Option<&'static str>,
}

const KEEPS: [&str; 12] = [
    "-rlpti",
    "-rlpti",
    "-ai",
    "-ai",
    "-rlti",
    "-rpti",
    "-rti",
    "-rlpi",
    "-ri",
    "-lpti",
    "-ai --no-p",
    "-ai --no-l --no-t",
];
const RULES: [&str; 14] = [
    "- *.tmp", "+ *", "P a", "P *.tmp", "- /b", "- d/", "H c", "S a", "R b", "- a/**", "+ */",
    "- e*", "!", "- **",
];
/// Parts of patterns between slashes.
const PARTS: [&str; 18] = [
    "a", "b", "c", "d", "e d", "f.tmp", "*.tmp", "*", "?", "**", "[a-c]", "[!a-c]", "*d", "é",
    "-n", "j\\\\", "h\\\\#*", "??",
];

/// A pattern of rsync(1).
fn pattern(rng: &mut Rng) -> String {
    let parts = 1 + rng.usize(..6).saturating_sub(3);
    let parts: Vec<&str> = (0..parts).map(|_| PARTS[rng.usize(..PARTS.len())]).collect();
    let begin = ["", "", "/"][rng.usize(..3)];
    let end = ["", "", "/", "/***"][rng.usize(..4)];
    format!("{begin}{}{end}", parts.join("/"))
}

/// Words that make a rule.
fn rule(rng: &mut Rng) -> Vec<String> {
    match rng.u8(0..10) {
        0..4 => vec!["-f".to_owned(), RULES[rng.usize(..RULES.len())].to_owned()],
        4 | 5 => vec![format!("--exclude={}", pattern(rng))],
        6 | 7 => vec!["--include".to_owned(), pattern(rng)],
        _ => {
            let verb = ["-", "+", "P", "R", "H", "S", "exclude", "protect"][rng.usize(..8)];
            vec![format!("--filter={verb} {}", pattern(rng))]
        }
    }
}

impl Draw {
    pub(super) fn new(seed: u64, ways: &[Way]) -> Self {
        let mut rng = Rng::with_seed(seed);
        let way = ways[rng.usize(..ways.len())];
        let form = match rng.u8(0..20) {
            0 | 1 => Form::Made,
            2 | 3 => Form::Directory,
            4 => Form::File,
            5 => Form::Renamed,
            6 | 7 => Form::Listed,
            _ => Form::Contents,
        };
        let before = [Before::Another, Before::Changed, Before::Same][rng.usize(..3)];
        let keeps = KEEPS[rng.usize(..KEEPS.len())];
        let is_tree = !matches!(form, Form::File | Form::Renamed | Form::Listed);
        let can_delete = is_tree && (keeps.contains('r') || keeps.contains('a'));
        let mut words: Vec<String> = keeps.split(' ').map(str::to_owned).collect();
        // With rsync, -a has devices and FIFOs in it.
        words.extend(keeps.contains('a').then(|| "--no-D".to_owned()));
        let mut add = |chance: u32, all: &[&str]| {
            if rng.u32(..100) < chance {
                words.extend(all.iter().map(ToString::to_string));
            }
        };
        add(if can_delete { 55 } else { 0 }, &["--delete"]);
        add(if can_delete { 6 } else { 0 }, &["--delete-excluded"]);
        add(25, &["-b"]);
        add(8, &["-b", "--suffix", ".bak"]);
        add(4, &["--suffix=.tmp"]);
        add(10, &["-u"]);
        add(5, &["--existing"]);
        add(8, &["--ignore-existing"]);
        add(6, &["--size-only"]);
        add(5, &["-I"]);
        add(4, &["--max-size", "2"]);
        add(3, &["--min-size=1b"]);
        add(4, &["--modify-window", "1"]);
        add(if way == Way::Local { 3 } else { 0 }, &["-@", "-1"]);
        add(8, &["-c"]);
        add(3, &["-z", "--partial"]);
        if words.iter().any(|word| word == "--existing") {
            words.retain(|word| word != "--ignore-existing");
        }
        for _ in 0..rng.usize(0..7).saturating_sub(2) {
            words.extend(rule(&mut rng));
        }
        let umask = [None, None, Some("027"), Some("002"), Some("077")][rng.usize(..5)];
        Self { seed, way, form, before, words, umask: umask.filter(|_| !way.is_push()) }
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|one| one == word)
    }

    /// Whether names are deleted that the source does not have.
    pub(super) fn deletes(&self) -> bool {
        self.has("--delete") || self.has("--delete-excluded")
    }
}
