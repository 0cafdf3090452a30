//! `hikyaku sftp`: an unfinished file has its final name, and `-a` continues it.

use super::{interrupted, stopped};
use crate::common::{Sshd, listing, random, scratch};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const SERVER: &str = "/usr/lib/openssh/sftp-server";
const SENTENCE: &str =
    "stopped; the unfinished file has its final name, and the same transfer with -a continues it";
const BYTES: usize = 20_000_000;
/// A transfer is stopped after this number of bytes.
const SOME: u64 = 4_000_000;
/// The bytes that are compared before a transfer is continued, and all messages without contents.
const BESIDE: u64 = 2_000_000;

/// Both ends, and a server on this machine whose pipes are counted.
struct Rig(PathBuf);

impl Rig {
    fn new(name: &str) -> Option<Self> {
        if !Path::new(SERVER).exists() {
            println!("SKIPPED: no {SERVER}");
            return None;
        }
        let rig = Self(scratch(name));
        for end in ["near", "far"] {
            fs::create_dir_all(rig.at(end)).unwrap();
        }
        let (up, down, far) = (rig.at("up"), rig.at("down"), rig.at("far"));
        let text = format!(
            "#!/bin/sh\ntee {} | {SERVER} -d {} | tee {}\n",
            up.display(),
            far.display(),
            down.display()
        );
        fs::write(rig.at("server"), text).unwrap();
        fs::set_permissions(rig.at("server"), fs::Permissions::from_mode(0o755)).unwrap();
        Some(rig)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A session that is given these lines.
    fn session(&self, options: &[&str], lines: &str) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        command.args(["sftp", "-D"]).arg(self.at("server")).args(options);
        command.current_dir(self.at("near")).env("XDG_STATE_HOME", self.at("state"));
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        child
    }

    /// The bytes that the last session has moved in both directions together.
    fn moved(&self) -> u64 {
        ["up", "down"].map(|name| fs::metadata(self.at(name)).unwrap().len()).iter().sum()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

#[test]
fn a_stopped_transfer_of_a_batch_is_continued_with_a() {
    for (verb, from, to) in [("get", "far", "near"), ("put", "near", "far")] {
        for first in [&["-b", "-"][..], &["-a", "-b", "-"], &[]] {
            let Some(rig) = Rig::new("stopped-sftp") else { return };
            let source = rig.at(from);
            fs::write(source.join("big"), random(2, BYTES)).unwrap();
            fs::write(source.join("other"), "other").unwrap();
            let copy = rig.at(to).join("big");
            let lines = format!("{verb} big\n{verb} other\n");
            let child = rig.session(&[&["-l", "16m"], first].concat(), &lines);
            let said = interrupted(child, &mut || length(&copy) > SOME);
            assert_eq!(said.matches(SENTENCE).count(), 1, "{verb} {first:?}: {said}");
            assert!(!rig.at(to).join("other").exists(), "{verb} {first:?}: the session went on");
            let has = length(&copy);
            let again = rig.session(&["-a", "-b", "-"], &lines).wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&again.stderr);
            assert!(again.status.success(), "{verb} {first:?}: {said}");
            assert!(listing(&rig.at(to)) == listing(&source), "{verb} {first:?}");
            let (moved, left) = (rig.moved(), BYTES as u64 - has);
            assert!(moved < left + BESIDE, "{verb} {first:?}: {moved} bytes for {left}");
        }
    }
}

#[test]
fn a_stopped_tree_is_continued_with_a() {
    for (verb, from, to) in [("get", "far", "near"), ("put", "near", "far")] {
        let Some(rig) = Rig::new("stopped-sftp-tree") else { return };
        let source = rig.at(from);
        fs::create_dir_all(source.join("t/d")).unwrap();
        for name in ["t/a", "t/big", "t/d/x", "t/z"] {
            let bytes = if name == "t/big" { BYTES } else { 3_000 };
            fs::write(source.join(name), random(bytes as u64, bytes)).unwrap();
        }
        let copy = rig.at(to).join("t/big");
        let lines = format!("{verb} -r t\n");
        let child = rig.session(&["-l", "16m", "-b", "-"], &lines);
        let said = interrupted(child, &mut || length(&copy) > SOME);
        assert!(said.contains(SENTENCE), "{verb}: {said}");
        let has = length(&copy);
        // The last run finds a complete tree.
        for left in [BYTES as u64 - has, 0] {
            let again = rig.session(&["-a", "-b", "-"], &lines).wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&again.stderr);
            assert!(again.status.success(), "{verb}: {said}");
            assert!(listing(&rig.at(to)) == listing(&source), "{verb}");
            let moved = rig.moved();
            assert!(moved < left + BESIDE, "{verb}: {moved} bytes for {left}");
        }
    }
}

#[test]
fn a_stopped_fetch_of_a_destination_is_continued_with_a() {
    let sshd = Sshd::with_lines("stopped-sftp-ssh", "Subsystem sftp internal-sftp\n");
    fs::write(sshd.at("big"), random(2, BYTES)).unwrap();
    for via in ["native", "sftp"] {
        let copy = sshd.at(via);
        let words = ["--via", via, &sshd.far("big"), via];
        let mut command = sshd.sftp(&[&["-l", "16m"], &words[..]].concat());
        let said = stopped(command.stdin(Stdio::null()), || length(&copy) > SOME);
        assert!(said.contains(SENTENCE), "{via}: {said}");
        let has = fs::read(&copy).unwrap();
        assert!(has.len() < BYTES && has == random(2, BYTES)[..has.len()], "{via}");
        let mut again = sshd.sftp(&[&["-a"], &words[..]].concat());
        let again = again.stdin(Stdio::null()).output().unwrap();
        assert!(again.status.success(), "{via}: {}", String::from_utf8_lossy(&again.stderr));
        assert!(fs::read(&copy).unwrap() == random(2, BYTES), "{via}");
    }
}
