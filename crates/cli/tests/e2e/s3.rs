//! Copies from and to a bucket, of a program with the feature `s3`: `hikyaku cp s3://BUCKET/KEY DIR`. The server is moto's,
//! from a registry of Python packages:
//!
//! ```text
//! PATH=VENV/bin:$PATH cargo test -p hikyaku-cli --features s3 --test e2e -- --ignored s3
//! ```

use crate::common::moto::{MISSING, Moto};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// A server with one bucket, and a directory; both end with the test.
struct Rig {
    moto: Moto,
    dir: PathBuf,
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Rig {
    /// `None` if there is no such server.
    fn up(name: &str) -> Option<Self> {
        let Some(moto) = Moto::up() else {
            crate::common::skipped("buckets", MISSING);
            return None;
        };
        let dir = crate::common::scratch(&format!("s3-{name}"));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Some(Self { moto, dir })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn cp(&self, arguments: &[&str]) -> Output {
        self.run("cp", arguments)
    }

    fn run(&self, verb: &str, arguments: &[&str]) -> Output {
        self.command(verb, arguments).output().unwrap()
    }

    fn command(&self, verb: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        Moto::credentials(&mut command);
        command
            .env("HOME", &self.dir)
            .env("XDG_STATE_HOME", self.at("state"))
            .env("XDG_CONFIG_HOME", self.at("config"))
            .current_dir(&self.dir)
            .args([verb, "--endpoint", &self.moto.endpoint()])
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    /// Copies, and returns the last event.
    fn copied(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.cp(&[&["--json"], arguments].concat());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}{text}");
        serde_json::from_str(text.lines().last().unwrap()).unwrap()
    }

    fn fails(&self, arguments: &[&str], code: i32, words: &[&str]) {
        let output = self.cp(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(words.iter().all(|word| errors.contains(word)), "{arguments:?}: {errors}");
    }
}

/// Bytes that tell where they belong.
fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n ^ (n >> 8) ^ (n >> 16)) as u8).collect()
}

/// A tree of large, small and empty files.
fn fill(dir: &Path) -> Vec<(&'static str, Vec<u8>)> {
    let files = vec![
        ("large.bin", bytes((20 << 20) + 7)),
        ("a b/\u{e4}+%2e", bytes(300)),
        ("a b/deep/er/empty", Vec::new()),
        ("small", bytes(70_000)),
    ];
    let old = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_234_567_890_500_000_000);
    for (name, bytes) in &files {
        fs::create_dir_all(dir.join(name).parent().unwrap()).unwrap();
        fs::write(dir.join(name), bytes).unwrap();
        fs::File::options().write(true).open(dir.join(name)).unwrap().set_modified(old).unwrap();
    }
    fs::create_dir(dir.join("nothing")).unwrap();
    files
}

#[test]
#[ignore = "needs moto_server, from a registry of Python packages"]
fn a_bucket_is_listed() {
    let Some(rig) = Rig::up("ls") else { return };
    fs::create_dir_all(rig.at("run/deep")).unwrap();
    fs::write(rig.at("run/a"), "12345").unwrap();
    fs::write(rig.at("run/deep/b"), vec![7; 1536]).unwrap();
    rig.copied(&["-r", "run", "s3://bucket/archive/"]);
    let ls = |arguments: &[&str]| {
        let output = rig.run("ls", arguments);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(ls(&["s3://bucket"]), "archive\n");
    assert_eq!(ls(&["-r", "s3://bucket/archive/run"]), "a\ndeep\ndeep/b\n");
    assert!(ls(&["-lh", "s3://bucket/archive/run/deep/"]).contains(" 1.5K "));
    let missing = rig.run("ls", &["s3://bucket/none"]);
    assert_eq!(missing.status.code(), Some(6));
    let text = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(text.contains("s3://bucket/none: no such file or directory"), "{text}");
}

#[test]
#[ignore = "needs moto_server, from a registry of Python packages"]
fn a_tree_goes_into_a_bucket_and_comes_back() {
    let Some(rig) = Rig::up("tree") else { return };
    let files = fill(&rig.at("run"));
    let total: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    let first = rig.copied(&["-r", "run", "s3://bucket/archive/"]);
    assert_eq!((&first["bytes"], &first["kept_bytes"]), (&total.into(), &0.into()), "{first}");
    let again = rig.copied(&["-r", "run", "s3://bucket/archive"]);
    assert_eq!(again["kept_bytes"], total, "{again}");
    fs::create_dir(rig.at("back")).unwrap();
    rig.copied(&["-rp", "s3://bucket/archive/run", "back"]);
    for (name, bytes) in &files {
        let path = rig.at("back/run").join(name);
        assert!(fs::read(&path).unwrap() == *bytes, "{name}");
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let since = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(since.as_nanos(), 1_234_567_890_500_000_000, "{name}");
    }
    assert!(rig.at("back/run/nothing").is_dir());
    let kept = rig.copied(&["-rp", "s3://bucket/archive/run", "back"]);
    assert_eq!(kept["kept_bytes"], total, "{kept}");
    // One object, under another name, over two connections.
    rig.copied(&["--connections", "2", "s3://bucket/archive/run/large.bin", "one"]);
    assert!(fs::read(rig.at("one")).unwrap() == files[0].1);
    rig.copied(&["one", "s3://bucket/new/place/two"]);
    rig.copied(&["s3://bucket/new/place/two", "three"]);
    assert!(fs::read(rig.at("three")).unwrap() == files[0].1);
}

#[test]
#[ignore = "needs moto_server, from a registry of Python packages"]
fn what_cannot_be_copied_is_told_with_what_to_do() {
    let Some(rig) = Rig::up("told") else { return };
    fs::write(rig.at("f"), "x").unwrap();
    rig.copied(&["f", "s3://bucket/d/f"]);
    rig.fails(&["f", "s3://none/f"], 6, &["s3://none/f", "NoSuchBucket", "try: check the name"]);
    rig.fails(&["s3://bucket/nothing", "."], 6, &["s3://bucket/nothing"]);
    rig.fails(&["s3://bucket/d", "."], 6, &["-r was not given"]);
    rig.copied(&["s3://bucket/d/f", "s3://bucket/e"]);
    rig.copied(&["s3://bucket/e", "again"]);
    assert_eq!(fs::read(rig.at("again")).unwrap(), b"x");
    rig.fails(&["s3://bucket/d/f", "none/f"], 6, &["none"]);
}

#[test]
#[ignore = "needs moto_server, from a registry of Python packages"]
fn objects_are_chosen_kept_and_limited_in_both_directions() {
    let Some(rig) = Rig::up("choice") else { return };
    fill(&rig.at("run"));
    let up = rig.copied(&["-r", "--exclude", "small", "run", "s3://bucket/run"]);
    assert_eq!(up["files"], 3, "{up}");
    rig.fails(&["s3://bucket/run/small", "."], 6, &["s3://bucket/run/small"]);
    fs::write(rig.at("list"), "large.bin\n").unwrap();
    rig.copied(&["--files-from", "list", "s3://bucket/run", "listed"]);
    assert!(rig.at("listed/large.bin").exists() && !rig.at("listed/a b").exists());
    rig.copied(&["-n", "-r", "s3://bucket/run", "told"]);
    assert!(!rig.at("told").exists());
    for option in ["--ignore-existing", "-u"] {
        fs::write(rig.at("listed/large.bin"), "mine").unwrap();
        rig.copied(&[option, "s3://bucket/run/large.bin", "listed"]);
        assert_eq!(fs::read(rig.at("listed/large.bin")).unwrap(), b"mine", "{option}");
    }
    let begin = Instant::now();
    rig.copied(&["-l", "80m", "s3://bucket/run/large.bin", "slow"]);
    assert!(begin.elapsed() > Duration::from_secs(1), "{:?}", begin.elapsed());
    rig.fails(&["--verify", "slow", "s3://bucket/run/"], 1, &["--verify", "try: "]);
}

#[test]
#[ignore = "needs moto_server, from a registry of Python packages"]
fn standard_input_goes_into_a_bucket() {
    let Some(rig) = Rig::up("piped") else { return };
    for length in [0, 5, 300_000, (20 << 20) + 7] {
        let bytes = bytes(length);
        fs::write(rig.at("input"), &bytes).unwrap();
        let mut command = rig.command("cp", &["-", "s3://bucket/new/key"]);
        let output = command.stdin(fs::File::open(rig.at("input")).unwrap()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(rig.moto.get("new/key") == bytes, "{length}");
    }
}
