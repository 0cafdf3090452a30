//! `hikyaku cp --unfinished` and `--abandon`: the remains of interrupted copies are listed and can
//! be removed.

use crate::common::{Sshd, listing, partials, random, wait_until};
use serde_json::Value;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

fn text(path: PathBuf) -> String {
    path.display().to_string()
}

fn journals(sshd: &Sshd) -> Vec<PathBuf> {
    let folder = fs::read_dir(sshd.at("state/hikyaku/copies")).into_iter().flatten();
    folder.flatten().map(|entry| entry.path()).collect()
}

fn length(sshd: &Sshd) -> u64 {
    journals(sshd).iter().filter_map(|path| fs::metadata(path).ok()).map(|meta| meta.len()).sum()
}

/// Runs `hikyaku cp` with these arguments. Returns exit code, standard output and standard error.
fn ask(sshd: &Sshd, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
    command.arg("cp").args(arguments).env("XDG_STATE_HOME", sshd.at("state"));
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn listed(sshd: &Sshd) -> Vec<Value> {
    let (code, lines, said) = ask(sshd, &["--unfinished", "--json-lines"]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Starts a copy to `target` and waits until part of it has been written.
fn begin(sshd: &Sshd, arguments: &[&str]) -> Child {
    let before = length(sshd);
    let child = sshd.cp(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("progress", || length(sshd) > before + 600);
    child
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_interrupted_copy_can_be_listed_and_removed_completely() {
    let sshd = Sshd::start("unfinished");
    fs::write(sshd.at("big"), random(1, 60_000_000)).unwrap();
    let (from, to) = (text(sshd.at("big")), text(sshd.at("copy")));
    kill(begin(&sshd, &["-l", "100m", &from, &to]));
    let all = listed(&sshd);
    assert_eq!(all.len(), 1, "{all:?}");
    let found = &all[0];
    assert_eq!((&found["target"], &found["from"]), (&to.as_str().into(), &from.as_str().into()));
    assert_eq!((&found["state"], &found["version"]), (&"waiting".into(), &1.into()));
    assert!(found["touched"].as_u64().unwrap() > 1_700_000_000, "{found}");
    let file = &found["files"][0];
    assert_eq!((&file["path"], &file["size"]), (&to.as_str().into(), &60_000_000.into()));
    let written = ["proven_bytes", "claimed_bytes"].map(|key| file[key].as_u64().unwrap());
    assert!(written.iter().sum::<u64>() >= 1 << 20, "{file}");
    let partial = PathBuf::from(file["partial"].as_str().unwrap());
    assert!(partial.exists(), "{file}");
    let (_, document, _) = ask(&sshd, &["--unfinished", "--json"]);
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["unfinished"][0]["files"], found["files"]);
    let (_, person, _) = ask(&sshd, &["--unfinished"]);
    assert!(person.starts_with(&format!("{to}\n")), "{person}");
    for wanted in [&from, file["partial"].as_str().unwrap(), "of 60.0 MB proven"] {
        assert!(person.contains(wanted), "{wanted}: {person}");
    }
    let (code, _, said) = ask(&sshd, &["--abandon", &text(sshd.at("other"))]);
    assert_eq!(code, Some(6), "{said}");
    assert!(
        said.contains("no unfinished copy has this target") && said.contains("try: "),
        "{said}"
    );
    assert!(partial.exists());
    // A rehearsal lists what would be dropped.
    let (code, told, said) = ask(&sshd, &["-n", "--abandon", &to]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert!(told.contains(&to) && partial.exists(), "{told}");
    assert_eq!(journals(&sshd).len(), 1);
    let (code, line, said) = ask(&sshd, &["--json", "--abandon", &to]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let document: Value = serde_json::from_str(&line).unwrap();
    let line = &document["abandoned"][0];
    assert_eq!((&line["is_dropped"], &line["removed_files"]), (&true.into(), &1.into()), "{line}");
    assert!(line["freed_bytes"].as_u64().unwrap() >= 1 << 20, "{line}");
    assert_eq!((partials(&sshd.at("")), journals(&sshd)), (Vec::new(), Vec::new()));
    assert_eq!(listed(&sshd), Vec::<Value>::new());
    assert_eq!(ask(&sshd, &["--abandon"]), (Some(0), String::new(), String::new()));
    let (code, _, said) = ask(&sshd, &["--abandon", "far:x"]);
    assert!(code == Some(6) && said.contains("try: ssh far hikyaku cp --abandon x"), "{said}");
}

#[test]
fn unfinished_small_files_without_a_journal_entry_are_removed_too() {
    let sshd = Sshd::start("unfinished-tree");
    for dir in ["run7/deep/a", "run7/b"] {
        fs::create_dir_all(sshd.at(dir)).unwrap();
        for n in 0..300 {
            fs::write(sshd.at(dir).join(n.to_string()), random(n, 30_000)).unwrap();
        }
    }
    fs::write(sshd.at("run7/z"), random(1000, 60_000_000)).unwrap();
    let from = text(sshd.at("run7"));
    let child = begin(&sshd, &["-r", "-l", "100m", &from, &text(sshd.at("copy"))]);
    wait_until("the large file", || !listed(&sshd)[0]["files"].as_array().unwrap().is_empty());
    kill(child);
    // Unfinished files as a killed copy may leave them, and one of another copy.
    let token = {
        let partial = listed(&sshd)[0]["files"][0]["partial"].as_str().unwrap().to_owned();
        let end = partial.strip_suffix(".hikyaku").unwrap().len() - 5;
        partial[end - 8..end].to_owned()
    };
    fs::create_dir_all(sshd.at("copy/deep/new")).unwrap();
    fs::write(sshd.at(&format!("copy/deep/new/.7.{token}abcde.hikyaku")), b"x").unwrap();
    let other = format!("copy/deep/new/.7.{}abcde.hikyaku", "z".repeat(8));
    fs::write(sshd.at(&other), b"x").unwrap();
    let finished: Vec<_> = listing(&sshd.at("copy")).into_iter().map(|(name, _)| name).collect();
    let (code, told, said) = ask(&sshd, &["--abandon"]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert!(told.contains(": dropped, ") && told.contains(" freed"), "{told}");
    assert_eq!(partials(&sshd.at("")), [PathBuf::from(other)]);
    let is_final = |name: &PathBuf| name.extension().is_none_or(|end| end != "hikyaku");
    assert!(
        finished
            .iter()
            .filter(|name| is_final(name))
            .all(|name| sshd.at("copy").join(name).exists())
    );
    assert_eq!(journals(&sshd), Vec::<PathBuf>::new());
}

#[test]
fn a_running_copy_is_not_removed() {
    let sshd = Sshd::start("unfinished-busy");
    let big = random(3, 30_000_000);
    fs::write(sshd.at("big"), &big).unwrap();
    let (from, to) = (text(sshd.at("big")), text(sshd.at("copy")));
    let child = begin(&sshd, &["-l", "60m", &from, &to]);
    assert_eq!(listed(&sshd)[0]["state"], "under_way");
    for arguments in [&["--abandon"][..], &["--abandon", &to]] {
        let (code, told, said) = ask(&sshd, arguments);
        assert_eq!((code, told.as_str()), (Some(5), ""), "{said}");
        assert!(said.contains(&format!("{to}: its copy is under way")), "{said}");
    }
    assert!(child.wait_with_output().unwrap().status.success());
    assert!(fs::read(sshd.at("copy")).unwrap() == big, "the running copy was damaged");
    assert_eq!((partials(&sshd.at("")), journals(&sshd)), (Vec::new(), Vec::new()));
}

#[test]
fn a_locked_file_is_kept_with_its_journal() {
    let sshd = Sshd::start("unfinished-locked");
    fs::write(sshd.at("big"), random(4, 60_000_000)).unwrap();
    let (from, to) = (text(sshd.at("big")), text(sshd.at("copy")));
    kill(begin(&sshd, &["-l", "100m", &from, &to]));
    let partial = sshd.at("").join(&partials(&sshd.at(""))[0]);
    let file = File::open(&partial).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let (code, _, said) = ask(&sshd, &["--abandon"]);
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("another program is writing to it") && partial.exists(), "{said}");
    assert_eq!(journals(&sshd).len(), 1);
    drop(file);
    assert_eq!(ask(&sshd, &["--abandon"]).0, Some(0));
    assert_eq!((partials(&sshd.at("")), journals(&sshd)), (Vec::new(), Vec::new()));
}

#[test]
fn files_written_in_place_are_kept() {
    let sshd = Sshd::start("unfinished-inplace");
    fs::write(sshd.at("big"), random(5, 60_000_000)).unwrap();
    fs::write(sshd.at("copy"), b"old").unwrap();
    let (from, to) = (text(sshd.at("big")), text(sshd.at("copy")));
    kill(begin(&sshd, &["--inplace", "-l", "100m", &from, &to]));
    let (code, told, said) = ask(&sshd, &["--abandon", &to]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert!(told.contains("in place, and stays as it is") && sshd.at("copy").exists(), "{told}");
    assert_eq!(journals(&sshd), Vec::<PathBuf>::new());
}

#[test]
fn unusable_journals_are_listed_and_removed() {
    let sshd = Sshd::start("unfinished-earlier");
    let folder = sshd.at("state/hikyaku/copies");
    fs::create_dir_all(&folder).unwrap();
    for (name, bytes) in
        [("1.journal", &b"hikyaku1"[..]), ("2.journal2", b""), ("3.journal2", b"x")]
    {
        fs::write(folder.join(name), bytes).unwrap();
    }
    let all = listed(&sshd);
    let states: Vec<_> = all.iter().map(|copy| copy["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["earlier_version", "unreadable", "unreadable"]);
    let first = all[0]["journal"].as_str().unwrap();
    let (code, told, said) = ask(&sshd, &["--abandon", first]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert!(told.starts_with(&format!("{first}: dropped, ")), "{told}");
    assert_eq!(listed(&sshd).len(), 2);
    assert_eq!(ask(&sshd, &["--abandon"]).0, Some(0));
    assert_eq!(journals(&sshd), Vec::<PathBuf>::new());
}

#[test]
fn a_copy_whose_target_is_refused_leaves_nothing_to_continue() {
    let sshd = Sshd::start("unfinished-refused");
    let (from, to) = (text(sshd.at("f")), format!("{}/", text(sshd.at("none"))));
    fs::write(&from, "bytes").unwrap();
    let refused = sshd.cp(&[&from, &to]).output().unwrap();
    assert_eq!(refused.status.code(), Some(6), "{refused:?}");
    assert_eq!(listed(&sshd), Vec::<Value>::new());
}
