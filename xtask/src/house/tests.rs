//! Each count finds its job by its calls, whatever the file is called, and leaves out what only looks like it.

use super::*;

/// The counts of files with these paths and texts, as `JOB: PLACES`, without those that found nothing.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    found_with(files, &Uses::new())
}

fn found_with(files: &[(&str, &str)], uses: &Uses<'_>) -> Vec<String> {
    let sources: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
    let shown = |place: &Place| match place.name.as_str() {
        "" => place.files.join("+"),
        name => name.to_owned(),
    };
    let row = |count: &Count| {
        let places: Vec<String> = count.places.iter().map(shown).collect();
        (!places.is_empty()).then(|| format!("{}: {}", count.job, places.join(" ")))
    };
    counts(&sources, uses).iter().filter_map(row).collect()
}

/// What one file of the crate `a` has.
fn found_in(text: &str) -> Vec<String> {
    found(&[("crates/a/src/b.rs", text)])
}

const WALK: &str = "fn walk(dir: &Path) { for entry in read_dir(dir) { walk(&entry.path()); } }\n";
const MOVE: &str = "fn copy() { from.read_at(0, &mut block); to.write_at(0, &block); }\n";
const NAME: &str = "fn end() { draft.name(\n    Naming::Replace, &finish); }\n";
const IN_PLACE: &str = "fn open() { client.ask(&Request::Open { path }); }\n";

#[test]
fn a_crate_that_moves_bytes_and_names_files_is_an_engine() {
    let [one, two] = ["crates/a/src/c.rs", "crates/a/src/d.rs"];
    assert_eq!(found(&[(one, MOVE), (two, NAME)]), ["engines: a"]);
    assert_eq!(found(&[("crates/a/src/other.rs", &format!("{MOVE}{NAME}"))]), ["engines: a"]);
    assert!(found(&[(one, MOVE)]).is_empty() && found(&[(two, NAME)]).is_empty());
    assert!(found(&[("crates/a/src/c.rs", MOVE), ("crates/b/src/c.rs", NAME)]).is_empty());
    // A draft that has a name is asked for it.
    assert!(found(&[(one, MOVE), (two, "fn end() { draft.name(); }")]).is_empty());
}

#[test]
fn a_module_that_also_walks_is_an_engine_by_itself() {
    let files = [
        ("crates/a/src/up.rs", WALK),
        ("crates/a/src/up/lane.rs", MOVE),
        ("crates/a/src/up/end.rs", NAME),
        ("crates/a/src/down.rs", MOVE),
        ("crates/a/src/target.rs", NAME),
    ];
    assert_eq!(found(&files), ["engines: a/up a", "walks: crates/a/src/up.rs"]);
    // A file may be written under its final name.
    let text = format!("{WALK}{MOVE}{IN_PLACE}");
    assert_eq!(found_in(&text)[0], "engines: a/b");
    assert!(found_in(&format!("{MOVE}{IN_PLACE}")).is_empty());
}

#[test]
fn storages_and_servers_are_no_engines() {
    let text = format!("{MOVE}{NAME}");
    assert!(found_in(&format!("{text}pub struct Draft {{ file: File }}")).is_empty());
    assert!(found(&[("crates/remote/src/b.rs", &text)]).is_empty());
}

#[test]
fn a_walk_lists_again_what_a_listing_found() {
    let walks: [&str; 5] = [
        WALK,
        "fn down(&self, d: &Path) { let walk = |copy: &mut Self| copy.entries(d); self.within(d, walk); }
         fn entries(&self, d: &Path) { for e in fs::read_dir(d) { self.down(&e); } }",
        "fn next(&mut self) { let dir = self.open.pop(); self.list_one(dir); }
         fn list_one(&mut self, dir: Dir) { for e in client.entries(&dir) { self.open.push(e); } }",
        "fn all(&mut self) { for dir in take(&mut self.pending) { let page = store.list(&dir, 10);
         self.pending.extend(page.items); } }",
        "fn all() { while !level.is_empty() { level = below(session, &level)?; } }
         fn below(session: &Session, dirs: &[Dir]) { session.list(&dirs) }",
    ];
    for walk in walks {
        assert_eq!(found_in(walk), ["walks: crates/a/src/b.rs"], "{walk}");
    }
    let others = [
        "fn one(dir: &Path) { for entry in read_dir(dir) { show(entry); } }",
        "fn list(&self) { self.ask(|session| session.list(&[dir])); }",
        "fn list(&self) { self.inner.list(&self.dir) }",
        "fn twice(&self) { self.twice_more(); read_dir(a); }  fn twice_more(&self) { other.twice(); }",
        "fn work(&mut self) { let job = self.jobs.pop(); self.jobs.push(job); } fn one() { read_dir(a); }",
        "#[cfg(test)] mod tests { fn walk(d: &Path) { for e in read_dir(d) { walk(&e); } } }",
    ];
    for other in others {
        assert!(found_in(other).is_empty(), "{other}");
    }
}

#[test]
fn a_listing_may_be_in_another_file_of_the_crate() {
    let listing = "pub(crate) fn entries(dir: &Path) { client.entries(&handle) }";
    let walk = "use crate::listing::{entries, join};
                fn walk(&mut self) { while let Some(dir) = self.open.pop() {
                self.open.extend(entries(dir)); } }";
    let found = found(&[("crates/a/src/listing.rs", listing), ("crates/a/src/w.rs", walk)]);
    assert_eq!(found, ["walks: crates/a/src/w.rs"]);
}

#[test]
fn a_journal_is_written_and_read_in_the_crate_of_an_engine_or_below_it() {
    let journal =
        "fn open() { let path = Folder::State.of_user(); let text = fs::read_to_string(path); }
                   fn add() { file.write_all(line); } fn end() { fs::remove_file(path); }";
    let engine = format!("{MOVE}{NAME}");
    let files = [
        ("crates/a/src/b.rs", engine.as_str()),
        ("crates/a/src/memory.rs", journal),
        ("crates/base/src/c.rs", journal),
        ("crates/other/src/d.rs", journal),
    ];
    let uses = Uses::from([("a", vec!["between"]), ("between", vec!["base"])]);
    let found = found_with(&files, &uses);
    assert_eq!(found[1], "journals: crates/a/src/memory.rs crates/base/src/c.rs");
    assert!(found_with(&[files[0], files[3]], &uses).len() == 1, "no engine uses that crate");
    let only_read = journal.replace("write_all", "show");
    assert_eq!(found_with(&[files[0], ("crates/a/src/memory.rs", &only_read)], &uses).len(), 1);
}

#[test]
fn a_session_set_up_dials_and_chooses_the_key() {
    let text = "fn connect(&self) { self.dialler.dial(\n    &self.address,\n    trust(&self.keys, known),\n    PATIENCE,\n) }";
    assert_eq!(found_in(text), ["session-set-ups: crates/a/src/b.rs"]);
    assert!(found_in("fn again(&self) { self.dial(server)?; trust(&keys, known); }").is_empty());
    assert!(found_in("fn again(&self) { dialler.dial(server, key, TIME)?; }").is_empty());
}

#[test]
fn a_back_off_grows_up_to_a_maximum() {
    for growth in [
        "pause = (pause * 2).min(PAUSE_MAX)",
        "let pause = PAUSE.saturating_mul(2_u32.saturating_pow(self.tries)).min(LONGEST)",
        "let factor = 1u32 << (self.count + 1).min(8)",
    ] {
        let text = format!("use std::time::Duration;\nfn next(&mut self) {{ {growth}; }}");
        assert_eq!(found_in(&text), ["back-offs: crates/a/src/b.rs"], "{growth}");
        let packets = found(&[("crates/proto/src/b.rs", text.as_str())]);
        assert!(packets.is_empty(), "{packets:?}");
    }
    assert!(found_in("fn grow(&mut self) { size = (size * 2).min(BYTES_MAX); }").is_empty());
    let text =
        "use std::time::Duration;\nfn next() { let left = left.min(LOOK); let half = all * 2; }";
    assert!(found_in(text).is_empty());
}

#[test]
fn a_file_that_is_written_and_named_is_a_replacement() {
    let text = "fn keep() { new.write_all(b\"x\")?; fs::rename(&new, &path) }";
    assert_eq!(found_in(text), ["file-replacements: crates/a/src/b.rs"]);
    assert!(found(&[("crates/fs/src/draft.rs", text)]).is_empty());
    // A log is rotated: its bytes have their name already.
    assert!(found_in("fn rotate() { fs::rename(&path, &older) }").is_empty());
    let whole = "pub fn write_whole(path: &Path, bytes: &[u8]) {}";
    assert_eq!(
        found(&[("crates/fs/src/whole.rs", whole)]),
        ["file-replacements: crates/fs/src/whole.rs"]
    );
}

#[test]
fn three_of_the_flags_of_ssh_make_a_set() {
    let set = "#[derive(clap::Args)]
        pub struct Ssh {
            /// Port of ssh.
            #[arg(short = 'P', long = \"ssh-port\", value_name = \"PORT\")]
            port: Option<u16>,
            #[arg(short, long)]
            identity: Vec<PathBuf>,
            #[arg(short = 'J')]
            jump: Option<String>,
        }";
    assert_eq!(found_in(set), ["ssh-flag-sets: Ssh"]);
    assert!(found_in(&set.replace("short = 'J'", "short = 'x'")).is_empty());
    assert!(found_in(&set.replace("identity:", "verbose:")).is_empty());
    let long = "#[derive(clap::Args)]
        pub struct Ssh {
            #[arg(long, value_name = \"PORT\")]
            ssh_port: Option<u16>,
            #[arg(long)]
            identity: Vec<PathBuf>,
            #[arg(long)]
            jump: Option<String>,
        }";
    assert_eq!(found_in(long), ["ssh-flag-sets: Ssh"]);
    assert!(found_in(&long.replace("#[arg(long", "#[serde(long")).is_empty());
}

#[test]
fn lines_of_code_are_those_with_code() {
    let text = "//! Head.\n\nfn a() {\n    // Why.\n    b();\n}\n#[cfg(test)]\nmod tests {\n    fn c() {}\n}\n";
    assert_eq!(code_lines(&[Source::new("crates/a/src/b.rs", text)]), 3);
    assert_eq!(code_lines(&[Source::new("crates/a/tests/b.rs", text)]), 0);
}

#[test]
fn a_count_may_fall_and_not_grow() {
    let count = |number: usize| {
        let places = (0..number).map(|_| Place::file("crates/a/src/b.rs")).collect();
        vec![Count { job: "walks", goal: 2, places }]
    };
    let list = "# job, places that do it\nwalks 3\n";
    assert!(growths(list, &count(3)).is_empty() && growths(list, &count(2)).is_empty());
    assert_eq!(growths(list, &count(4)).len(), 1);
    assert_eq!(growths("", &count(1)).len(), 1);
    assert_eq!(lowered(list, &count(2)), "# job, places that do it\nwalks 2\n");
    assert_eq!(lowered(list, &count(4)), list);
}
