//! The two ends of a copy authenticate each other, and the secret of a copy appears in no log, argument or environment.

use crate::common::{Sshd, random};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_hikyaku");

/// A far side that runs the shell commands `does`.
fn far_side(sshd: &Sshd, does: &str) -> String {
    let script = sshd.at("far.sh");
    fs::write(&script, format!("#!/bin/sh\n{does}\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script.display().to_string()
}

/// What every user can see of the processes, command lines and environments, and the core size
/// limits.
#[derive(Default)]
struct Seen {
    texts: BTreeSet<Vec<u8>>,
    /// The last core size limit of each of our processes; a child inherits its parent's limit at
    /// first.
    cores: BTreeMap<OsString, String>,
    looks: u32,
}

impl Seen {
    fn look(&mut self) {
        self.looks += 1;
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let folder = entry.path();
            let Ok(command) = fs::read(folder.join("cmdline")) else { continue };
            let is_ours = command.starts_with(PROGRAM.as_bytes());
            self.texts.insert(command);
            self.texts.extend(fs::read(folder.join("environ")));
            let limits = fs::read_to_string(folder.join("limits")).unwrap_or_default();
            let core = limits.lines().find(|line| line.starts_with("Max core file size"));
            let core = core.filter(|_| is_ours).map(str::to_owned);
            self.cores.extend(core.map(|core| (entry.file_name(), core)));
        }
    }
}

/// All sequences of 64 hexadecimal digits, the form of a secret.
fn secrets(said: &[u8]) -> BTreeSet<Vec<u8>> {
    let words = said.split(|byte| !byte.is_ascii_hexdigit());
    words.filter(|word| word.len() == 64).map(<[u8]>::to_vec).collect()
}

fn all_files(folder: &Path, found: &mut Vec<Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all_files(&path, found);
        } else {
            found.extend(fs::read(&path));
        }
    }
}

#[test]
fn the_secret_of_a_copy_is_not_to_be_seen() {
    let sshd = Sshd::start("cp-secret");
    fs::write(sshd.at("a"), random(1, 3_000_000)).unwrap();
    // A copy of what the two ends send through ssh, to know the secret that must not appear
    // elsewhere.
    let ear = sshd.at("ear");
    fs::create_dir(&ear).unwrap();
    let at = ear.display();
    let far = far_side(
        &sshd,
        &format!("ulimit -S -c $(ulimit -H -c)\ntee {at}/in | {PROGRAM} \"$@\" | tee {at}/out"),
    );
    let is_over = AtomicBool::new(false);
    let (said, seen) = thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut seen = Seen::default();
            while !is_over.load(Ordering::Relaxed) {
                seen.look();
                thread::sleep(Duration::from_millis(1));
            }
            seen
        });
        let a = sshd.at("a").display().to_string();
        // Slow enough for the processes to be observed.
        let words = ["-v", "-l", "20m", &a, &sshd.far("b")];
        let output = sshd.cp(&words).args(["--remote-path", &far]).output().unwrap();
        is_over.store(true, Ordering::Relaxed);
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
        (said, watch.join().unwrap())
    });
    let heard = ["in", "out"].map(|name| fs::read(ear.join(name)).unwrap()).concat();
    let secrets = secrets(&heard);
    assert!(!secrets.is_empty(), "{}", String::from_utf8_lossy(&heard));
    fs::remove_dir_all(&ear).unwrap();
    let mut texts: Vec<Vec<u8>> = seen.texts.into_iter().collect();
    assert!(seen.looks > 50 && texts.iter().any(|text| text.starts_with(PROGRAM.as_bytes())));
    texts.push(said);
    all_files(&sshd.at(""), &mut texts);
    for secret in &secrets {
        for text in &texts {
            let shown = text.windows(secret.len()).any(|window| window == secret);
            assert!(!shown, "it is in {}", String::from_utf8_lossy(text));
        }
    }
    // A core dump would not contain it either.
    assert!(!seen.cores.is_empty());
    let is_none = |line: &String| line.split_whitespace().nth(4) == Some("0");
    assert!(seen.cores.values().all(is_none), "{:?}", seen.cores);
}

#[test]
fn who_has_another_key_than_ssh_says_gets_nothing() {
    let sshd = Sshd::start("cp-impostor");
    fs::write(sshd.at("a"), random(1, 3_000_000)).unwrap();
    let other = format!("SHA256:{}", "A".repeat(43));
    // Simulates another listener at the far side's address: its key is not the one received through
    // ssh.
    let edit = format!("sed -u 's|SHA256:[A-Za-z0-9+/]*|{other}|'");
    let impostor = format!("{edit} | {PROGRAM} \"$@\" | {edit}");
    let far = far_side(&sshd, &impostor);
    let a = sshd.at("a").display().to_string();
    let output = sshd.cp(&[&a, &sshd.far("b")]).args(["--remote-path", &far]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains(&other), "{said}");
    assert!(!sshd.at("b").exists());
}
