//! Gfarm file systems and buckets as real ends of `hikyaku cp`: what each option that protects something does there, of the
//! program's own table. An option that is honoured there and has no row here fails the test.

use crate::common::dressed;
use crate::common::moto::{MISSING, Moto};
use hikyaku_console::{Class, Effect, Way};
use hikyaku_copy::TABLE;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};
use xtask::servers::gfarm::{Gfarm, NEEDS, Plan};

const WAYS: [Way; 4] = [Way::FromGfarm, Way::ToGfarm, Way::FromBucket, Way::ToBucket];

/// Storage with a tree `source` or an own, younger file `b` in a tree `target`.
enum Storage {
    Gfarm(Gfarm),
    Bucket(Moto),
}

struct Rig {
    storage: Storage,
    dir: PathBuf,
}

/// What an option does with a tree of `a.tmp`, `b` and `d/c` that is copied onto a tree with an own, younger `b`.
struct Row {
    ids: &'static [&'static str],
    options: &'static [&'static str],
    /// Names at the target afterwards.
    names: &'static [&'static str],
    b: &'static str,
}

const ALL: &[&str] = &["a.tmp", "b", "d/c"];

const fn row(
    ids: &'static [&'static str],
    options: &'static [&'static str],
    names: &'static [&'static str],
    b: &'static str,
) -> Row {
    Row { ids, options, names, b }
}

/// The first has nothing but the tree: the others differ from it, but for the last five, whose trees are the same.
const ROWS: [Row; 14] = [
    row(&["recursive"], &["-r"], ALL, "new"),
    row(&[], &[], &["b"], "own"),
    row(&["dry_run"], &["-r", "-n"], &["b"], "own"),
    row(&["update"], &["-r", "-u"], ALL, "own"),
    row(&["ignore_existing"], &["-r", "--ignore-existing"], ALL, "own"),
    row(&["exclude"], &["-r", "--exclude", "*.tmp"], &["b", "d/c"], "new"),
    row(&["include"], &["-r", "--exclude", "*", "--include", "a.tmp"], &["a.tmp", "b"], "own"),
    row(&["files_from"], &["-r", "--files-from", "lines"], &["b", "d/c"], "own"),
    row(&["from0"], &["-r", "--files-from", "zeros", "-0"], &["b", "d/c"], "own"),
    row(&["no_udp"], &["-r", "--no-udp"], ALL, "new"),
    row(&["fresh"], &["-r", "--fresh"], ALL, "new"),
    row(&["verify"], &["-r", "--verify"], ALL, "new"),
    row(&["inplace"], &["-r", "--inplace"], ALL, "new"),
    row(&["manifest"], &["-r", "--manifest", "hashes"], ALL, "new"),
];

/// Options with a test of their own: `a_limit_holds`, and those of daemons on the nodes of Gfarm in `gfarm`.
const ELSEWHERE: [&str; 6] = ["limit", "rate", "via", "server_rate", "v4", "v6"];

impl Rig {
    /// Tells what is not run where the storage of this way is missing.
    fn up(way: Way) -> Option<Self> {
        let storage = match way {
            Way::FromGfarm | Way::ToGfarm => gfarm(),
            _ => bucket(),
        };
        let flags: Vec<&str> = honoured(way).map(|(_, flag)| flag).collect();
        let what = format!("{}: {}", TABLE.named(way), flags.join(" "));
        let storage = storage.map_err(|why| crate::common::skipped(&what, why)).ok()?;
        let dir = crate::common::scratch("stores");
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("lines"), "d/c\n").unwrap();
        fs::write(dir.join("zeros"), "d/c\0").unwrap();
        Some(Self { storage, dir })
    }

    fn cp(&self, options: &[&str]) -> (Output, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        command.arg("cp").args(options).current_dir(&self.dir).stdin(Stdio::null());
        command.env("XDG_STATE_HOME", self.dir.join("state"));
        command.env("XDG_CONFIG_HOME", self.dir.join("config")).env("HOME", &self.dir);
        match &self.storage {
            Storage::Gfarm(gfarm) => drop(command.env("GFARM_CONFIG_FILE", gfarm.config())),
            Storage::Bucket(moto) => {
                Moto::credentials(&mut command);
                command.args(["--endpoint", &moto.endpoint()]);
            }
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output, said)
    }

    fn copied(&self, options: &[&str]) {
        let (output, said) = self.cp(options);
        assert_eq!(output.status.code(), Some(0), "{options:?}: {said}");
    }

    /// A path of the storage on the command line.
    fn far(&self, name: &str) -> String {
        match self.storage {
            Storage::Gfarm(_) => format!("gfarm:///{name}"),
            Storage::Bucket(_) => format!("s3://bucket/{name}"),
        }
    }

    fn ends(&self, way: Way, source: &str, target: &str) -> [String; 2] {
        match way {
            Way::FromGfarm | Way::FromBucket => [self.far(source), target.to_owned()],
            _ => [source.to_owned(), self.far(target)],
        }
    }

    /// Removes what this way has written, and leaves a tree at its source and an own file at its target.
    fn prepare(&self, way: Way, into: &str) {
        let is_down = matches!(way, Way::FromGfarm | Way::FromBucket);
        for name in ["source", "target"] {
            let _ = fs::remove_dir_all(self.dir.join(name));
            self.clear(name);
        }
        let source = self.dir.join("source");
        fs::create_dir_all(source.join("d")).unwrap();
        for name in ALL {
            fs::write(source.join(name), "new").unwrap();
        }
        let old = SystemTime::now() - Duration::from_secs(100);
        fs::File::open(source.join("b")).unwrap().set_modified(old).unwrap();
        if is_down {
            // A bucket has the time at which a file was written there, and what is written later is younger.
            self.copied(&["-r", "source", &self.far("")]);
            fs::remove_dir_all(&source).unwrap();
            fs::create_dir_all(self.dir.join("target").join(into)).unwrap();
            let younger = SystemTime::now() + Duration::from_secs(100);
            let own = self.dir.join("target").join(into).join("b");
            fs::write(&own, "own").unwrap();
            fs::File::open(own).unwrap().set_modified(younger).unwrap();
        } else {
            let own = ["target", into, "b"].map(|part| format!("{part}/")).concat();
            self.put_own(own.replace("//", "/").trim_end_matches('/'));
        }
    }

    fn put_own(&self, path: &str) {
        match &self.storage {
            Storage::Gfarm(gfarm) => {
                let own = self.dir.join("own");
                fs::write(&own, "own").unwrap();
                let dir = path.rsplit_once('/').unwrap().0;
                gfarm.run("gfmkdir", &["-p", &format!("/{dir}")]).unwrap();
                gfarm.run("gfreg", &[own.to_str().unwrap(), &format!("/{path}")]).unwrap();
            }
            Storage::Bucket(moto) => moto.put(path, b"own"),
        }
    }

    fn clear(&self, name: &str) {
        match &self.storage {
            // It is no error that nothing is there.
            Storage::Gfarm(gfarm) => drop(gfarm.run("gfrm", &["-rf", &format!("/{name}")])),
            Storage::Bucket(moto) => moto.remove(&format!("{name}/")),
        }
    }

    /// Files at the target of a way, and their contents.
    fn found(&self, way: Way, dir: &str) -> Vec<(String, Vec<u8>)> {
        match (&self.storage, way) {
            (_, Way::FromGfarm | Way::FromBucket) => {
                let all = crate::common::listing(&self.dir.join(dir)).into_iter();
                all.map(|(name, bytes)| (name.display().to_string(), bytes)).collect()
            }
            (Storage::Bucket(moto), _) => {
                let keys = moto.keys(&format!("{dir}/")).into_iter();
                let files = keys.filter(|key| !key.ends_with('/'));
                files.map(|key| (key[dir.len() + 1..].to_owned(), moto.get(&key))).collect()
            }
            (Storage::Gfarm(gfarm), _) => walk(gfarm, dir),
        }
    }
}

/// The files below a directory of Gfarm.
fn walk(gfarm: &Gfarm, dir: &str) -> Vec<(String, Vec<u8>)> {
    let listed = gfarm.run("gfls", &["-RF", &format!("/{dir}")]).unwrap();
    let (mut at, mut all) = (format!("/{dir}"), Vec::new());
    for line in listed.lines().filter(|line| !line.is_empty()) {
        match line.strip_suffix(':') {
            Some(path) => at = path.to_owned(),
            None if line.ends_with('/') => {}
            None => {
                let path = format!("{at}/{line}");
                let bytes = gfarm.run("gfexport", &[&path]).unwrap().into_bytes();
                all.push((path[dir.len() + 2..].to_owned(), bytes));
            }
        }
    }
    all.sort();
    all
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Storage::Gfarm(gfarm) = &self.storage {
            gfarm.down().unwrap();
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn gfarm() -> Result<Storage, &'static str> {
    if !NEEDS.iter().all(xtask::Need::is_present) {
        return Err("no Gfarm here (try: apt-get install gfmd gfsd gfarm-client)");
    }
    let dir = crate::common::scratch("stores-gfarm");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    Ok(Storage::Gfarm(Gfarm::up(&dir, &Plan { nodes: 2, ..Plan::default() }).unwrap()))
}

fn bucket() -> Result<Storage, &'static str> {
    if !cfg!(feature = "s3") {
        return Err("this program is built without S3 (try: --features s3)");
    }
    Moto::up().map(Storage::Bucket).ok_or(MISSING)
}

/// Options that protect something and are honoured on this way, if need be with others.
fn honoured(way: Way) -> impl Iterator<Item = (&'static str, &'static str)> {
    let protects = TABLE.rows.iter().filter(|row| row.class == Class::Protects);
    let effect = move |row| TABLE.effect(row, way, &["gfarm_daemons"]);
    protects.filter(move |row| effect(row) == Effect::Honoured).map(|row| (row.id, row.flag))
}

#[test]
fn each_option_that_protects_something_is_honoured_by_gfarm_and_by_buckets() {
    let known: BTreeSet<&str> =
        ROWS.iter().flat_map(|row| row.ids).chain(&ELSEWHERE).copied().collect();
    for way in WAYS {
        let lacks: Vec<_> = honoured(way).filter(|(id, _)| !known.contains(id)).collect();
        assert!(lacks.is_empty(), "{way:?}: no row has {lacks:?}");
        let Some(rig) = Rig::up(way) else { continue };
        let possible: BTreeSet<&str> = honoured(way).map(|(id, _)| id).collect();
        for Row { ids, options, names, b } in &ROWS {
            if !ids.iter().all(|id| possible.contains(id)) {
                continue;
            }
            // With a list the contents come into the target, and else the tree.
            let into = if options.contains(&"--files-from") { "" } else { "source" };
            rig.prepare(way, into);
            let ends = rig.ends(way, "source", "target");
            let all = [*options, &[&ends[0], &ends[1]]].concat();
            let (output, said) = rig.cp(&all);
            let code = if options.is_empty() { 6 } else { 0 };
            assert_eq!(output.status.code(), Some(code), "{way:?} {options:?}: {said}");
            let dir = ["target", into].join("/");
            let found = rig.found(way, dir.trim_end_matches('/'));
            let there: Vec<&str> = found.iter().map(|(name, _)| &**name).collect();
            assert_eq!(there, *names, "{way:?} {options:?}: {said}");
            let (_, own) = found.iter().find(|(name, _)| name == "b").unwrap();
            assert_eq!(String::from_utf8_lossy(own), *b, "{way:?} {options:?}: {said}");
        }
    }
}

/// A tree is brought into Gfarm, onto another one, and back: each direction has to do what a copy within this machine does.
#[test]
fn modes_and_times_of_gfarm_are_those_of_a_copy_within_this_machine() {
    for option in ["-r", "-rp"] {
        let Some(rig) = Rig::up(Way::ToGfarm) else { return };
        let Storage::Gfarm(gfarm) = &rig.storage else { unreachable!("it was asked for") };
        gfarm.run("gfmkdir", &["/up", "/down"]).unwrap();
        let at = |name: &str| rig.dir.join(name).join("t");
        dressed::source(&at("source"));
        dressed::target(&at("before"));
        dressed::target(&at("down"));
        fs::create_dir(rig.dir.join("up")).unwrap();
        rig.copied(&["-rp", "before/t", &rig.far("up")]);
        rig.copied(&["-rp", "source/t", &rig.far("down")]);
        rig.copied(&[option, "source/t", &rig.far("up")]);
        rig.copied(&["-rp", &rig.far("up/t"), "up"]);
        rig.copied(&[option, &rig.far("down/t"), "down"]);
        let is_kept = option == "-rp";
        dressed::check(&at("up"), is_kept, "into Gfarm");
        dressed::check(&at("down"), is_kept, "from Gfarm");
        let listed = gfarm.run("gfls", &["-ld", "/up/t/shared"]).unwrap();
        let wanted = if is_kept { "drwxrwxrwt" } else { "drwxr-xr-t" };
        assert!(listed.starts_with(wanted), "{listed}");
    }
}

#[test]
fn a_limit_holds_for_gfarm_and_for_buckets() {
    for way in WAYS {
        let Some(rig) = Rig::up(way) else { continue };
        fs::write(rig.dir.join("source"), vec![7; 3_000_000]).unwrap();
        rig.copied(&["source", &rig.far("source")]);
        let ends = rig.ends(way, "source", "target");
        let begin = Instant::now();
        rig.copied(&["-l", "8m", &ends[0], &ends[1]]);
        // Three seconds, less what may go at once.
        assert!(begin.elapsed() > Duration::from_secs(1), "{way:?}: {:?}", begin.elapsed());
    }
}
