//! `hikyaku cp` where the far side has no hikyaku: by SFTP, with a real ssh and OpenSSH's server.

use crate::common::{Sshd, listing, partials, random, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

/// An ssh server whose sessions offer SFTP.
pub(crate) fn server(name: &str) -> Sshd {
    Sshd::with_lines(name, "Subsystem sftp internal-sftp\n")
}

/// `hikyaku cp` that finds no hikyaku at the far side.
fn cp(sshd: &Sshd, arguments: &[&str]) -> Command {
    let mut command = sshd.cp(arguments);
    command.args(["--remote-path", "no-such-hikyaku"]);
    command
}

fn run(command: &mut Command) -> (Output, String) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

fn tree(sshd: &Sshd, name: &str) -> String {
    fs::create_dir_all(sshd.at(name).join("deep/er")).unwrap();
    fs::create_dir_all(sshd.at(name).join("empty")).unwrap();
    fs::write(sshd.at(name).join("big"), random(1, 5_000_001)).unwrap();
    for n in 0..60 {
        fs::write(sshd.at(name).join(format!("deep/{n}")), random(n, n as usize * 100)).unwrap();
    }
    let odd = Path::new("deep/er").join(std::ffi::OsStr::from_bytes(b"not\xffutf8 \n"));
    fs::write(sshd.at(name).join(odd), b"x").unwrap();
    sshd.at(name).display().to_string()
}

#[test]
fn a_tree_goes_there_and_back() {
    let sshd = server("sftp-tree");
    let source = tree(&sshd, "run7");
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let big = fs::File::options().append(true).open(sshd.at("run7/big")).unwrap();
    big.set_times(fs::FileTimes::new().set_modified(old).set_accessed(old)).unwrap();
    fs::set_permissions(sshd.at("run7/deep/3"), fs::Permissions::from_mode(0o440)).unwrap();
    fs::set_permissions(sshd.at("run7/deep"), fs::Permissions::from_mode(0o550)).unwrap();
    let (output, said) = run(&mut cp(&sshd, &["-rp", &source, &sshd.far("put")]));
    assert!(output.status.success(), "{said}\n{}", sshd.log());
    assert!(said.contains("far has no hikyaku") && said.contains("by SFTP"), "{said}");
    assert!(said.contains("\ntry: --bootstrap, which installs it; or hikyaku far install far"));
    assert!(listing(&sshd.at("run7")) == listing(&sshd.at("put")));
    assert!(sshd.at("put/empty").is_dir());
    fs::create_dir(sshd.at("got")).unwrap();
    let target = sshd.at("got").display().to_string();
    let (output, said) = run(&mut cp(&sshd, &["-rp", &sshd.far("put"), &target]));
    assert!(output.status.success(), "{said}\n{}", sshd.log());
    assert!(listing(&sshd.at("run7")) == listing(&sshd.at("got/put")));
    for copy in ["put", "got/put"] {
        let meta = |name: &str| fs::metadata(sshd.at(copy).join(name)).unwrap();
        assert_eq!(meta("big").mtime(), 1_000_000_000, "{copy}");
        assert_eq!(meta("deep/3").mode() & 0o7777, 0o440, "{copy}");
        assert_eq!(meta("deep").mode() & 0o7777, 0o550, "{copy}");
        assert!(partials(&sshd.at(copy)).is_empty());
    }
}

#[test]
fn the_new_name_of_a_directory_may_end_with_a_slash_on_every_way() {
    let sshd = server("sftp-slash");
    let source = tree(&sshd, "run7");
    let here = |name: &str| format!("{}/", sshd.at(name).display());
    let there = |name: &str| format!("{}/", sshd.far(name));
    let (put, got) = (there("put"), here("got"));
    let ways = [(cp as fn(&Sshd, &[&str]) -> Command, "sftp"), (Sshd::cp, "ssh")];
    for (way, name) in ways {
        for arguments in [["-r", &source, &put], ["-r", &sshd.far("run7"), &got]] {
            let (output, said) = run(&mut way(&sshd, &arguments));
            assert!(output.status.success(), "{name} {arguments:?}: {said}\n{}", sshd.log());
        }
        for copy in ["put", "got"] {
            assert!(listing(&sshd.at("run7")) == listing(&sshd.at(copy)), "{name} {copy}");
            fs::remove_dir_all(sshd.at(copy)).unwrap();
        }
        // A file does not become a directory.
        let file = sshd.at("run7/big").display().to_string();
        let (output, said) = run(&mut way(&sshd, &["-r", &file, &put]));
        assert!(!output.status.success() && !sshd.at("put").exists(), "{name}: {said}");
    }
}

#[test]
fn files_are_placed_as_scp_places_them() {
    let sshd = server("sftp-places");
    for name in ["a1", "a2", "b"] {
        fs::write(sshd.at(name), name).unwrap();
    }
    let here = |name: &str| sshd.at(name).display().to_string();
    let read = |name: &str| fs::read_to_string(sshd.at(name)).unwrap();
    // A new name, a name that is taken, and a link to a file.
    fs::write(sshd.at("taken"), "old, and longer").unwrap();
    symlink("taken-too", sshd.at("link")).unwrap();
    fs::write(sshd.at("taken-too"), "old").unwrap();
    for target in ["new", "taken", "link"] {
        let (output, said) = run(&mut cp(&sshd, &["-q", &here("b"), &sshd.far(target)]));
        assert!(output.status.success() && said.is_empty(), "{target}: {said}");
        assert_eq!(read(target), "b", "{target}");
    }
    assert!(sshd.at("link").is_symlink());
    assert_eq!(read("taken-too"), "b");
    // Several go into a directory, and a pattern is matched there.
    fs::create_dir(sshd.at("into")).unwrap();
    let (output, said) = run(&mut cp(&sshd, &[&here("a1"), &here("b"), &sshd.far("into")]));
    assert!(output.status.success(), "{said}");
    assert_eq!((read("into/a1"), read("into/b")), ("a1".into(), "b".into()));
    fs::create_dir(sshd.at("globbed")).unwrap();
    let (output, said) = run(&mut cp(&sshd, &[&sshd.far("a*"), &here("globbed")]));
    assert!(output.status.success(), "{said}");
    let names: Vec<_> = listing(&sshd.at("globbed")).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [Path::new("a1"), Path::new("a2")]);
    // The contents of a directory.
    let (output, said) = run(&mut cp(&sshd, &["-r", &here("into/."), &sshd.far("globbed")]));
    assert!(output.status.success(), "{said}");
    assert_eq!(read("globbed/b"), "b");
}

#[test]
fn what_cannot_be_copied_is_said_and_leaves_nothing() {
    let sshd = server("sftp-errors");
    fs::write(sshd.at("a"), b"a").unwrap();
    fs::create_dir_all(sshd.at("tree/sub")).unwrap();
    fs::write(sshd.at("tree/a"), b"a").unwrap();
    fs::create_dir_all(sshd.at("taken/tree/a")).unwrap();
    let here = |name: &str| sshd.at(name).display().to_string();
    let cases: [(Vec<String>, i32, &str); 10] = [
        (vec![here("a"), sshd.far("no/such/b")], 6, "no such file"),
        (vec![sshd.far("nothing"), here("x")], 6, "nothing: no such file"),
        (vec![here("tree"), sshd.far("b")], 6, "-r was not given"),
        (vec![sshd.far("tree"), here("b")], 6, "-r was not given"),
        (vec!["-r".into(), here("tree"), sshd.far("taken")], 6, "a: is a directory"),
        (vec!["-r".into(), sshd.far("tree"), here("a")], 6, "a: is not a directory"),
        (vec!["-r".into(), sshd.far("tree/."), here("a")], 6, "a: is not a directory"),
        (vec!["-r".into(), here("tree"), sshd.far("a")], 6, "a: is not a directory"),
        (
            vec!["--policy".into(), "fair".into(), here("a"), sshd.far("b")],
            1,
            "--policy has no effect on a copy by SFTP",
        ),
        (vec!["--via".into(), "native".into(), here("a"), sshd.far("b")], 6, "try: --bootstrap"),
    ];
    for (arguments, code, wanted) in cases {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (output, said) = run(&mut cp(&sshd, &arguments));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(wanted), "{arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
    assert!(!sshd.at("b").exists());
    assert_eq!(fs::read(sshd.at("a")).unwrap(), b"a");
    assert!(sshd.at("taken/tree/a").is_dir() && sshd.at("taken/tree/sub").is_dir());
    assert!(partials(&sshd.at("")).is_empty(), "{:?}", partials(&sshd.at("")));
}

#[test]
fn an_account_with_sftp_only_is_served() {
    let lines = "Subsystem sftp internal-sftp\nForceCommand internal-sftp\n";
    let sshd = Sshd::with_lines("sftp-only", lines);
    let source = tree(&sshd, "run7");
    // Even where hikyaku is installed, it cannot be started.
    let (output, said) = run(&mut sshd.cp(&["-r", &source, &sshd.far("put")]));
    assert!(output.status.success(), "{said}\n{}", sshd.log());
    assert!(said.contains("by SFTP"), "{said}");
    assert!(listing(&sshd.at("run7")) == listing(&sshd.at("put")));
}

#[test]
fn an_account_that_answers_commands_with_words_of_its_own_is_served() {
    let program = "/usr/lib/openssh/sftp-server";
    if !Path::new(program).exists() {
        crate::common::skipped("an account with words of its own", "there is no sftp-server");
        return;
    }
    for (end, code) in [("for-files", 0), ("for-status", 1)] {
        let forced = format!(
            "case \"$SSH_ORIGINAL_COMMAND\" in {program}) exec {program};; \
             *) echo This account is for files only; exit {code};; esac"
        );
        let lines = format!("Subsystem sftp {program}\nForceCommand {forced}\n");
        let sshd = Sshd::with_lines(&format!("sftp-{end}"), &lines);
        fs::write(sshd.at("a"), random(7, 300_000)).unwrap();
        let a = sshd.at("a").display().to_string();
        let (output, said) = run(&mut sshd.cp(&[&a, &sshd.far("b")]));
        assert!(output.status.success(), "{said}\n{}", sshd.log());
        assert!(said.contains("data go by SFTP"), "{said}");
        assert!(fs::read(sshd.at("b")).unwrap() == random(7, 300_000));
    }
}

#[test]
fn a_server_without_sftp_is_named() {
    let sshd = Sshd::start("sftp-none");
    fs::write(sshd.at("a"), b"a").unwrap();
    let a = sshd.at("a").display().to_string();
    let (output, said) = run(&mut cp(&sshd, &[&a, &sshd.far("b")]));
    assert_eq!(output.status.code(), Some(6), "{said}");
    assert!(said.contains("far has neither hikyaku nor SFTP"), "{said}");
    assert!(said.contains("\ntry: install hikyaku on far"), "{said}");
}

#[test]
fn sftp_is_used_where_it_is_asked_for() {
    let sshd = server("sftp-via");
    fs::write(sshd.at("a"), random(7, 300_000)).unwrap();
    let a = sshd.at("a").display().to_string();
    let (output, said) = run(&mut sshd.cp(&["--via", "sftp", &a, &sshd.far("b")]));
    assert!(output.status.success(), "{said}");
    assert!(said.contains("by SFTP"), "{said}");
    assert!(fs::read(sshd.at("b")).unwrap() == random(7, 300_000));
    let (output, said) = run(&mut sshd.cp(&["--via", "sftp", &a, "broken:b"]));
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("broken: ssh did not log in"), "{said}");
    let (output, said) = run(&mut sshd.cp(&[&a, &sshd.far("c")]));
    assert!(output.status.success() && said.is_empty(), "{said}");
}

/// The way of a copy.
#[derive(Clone, Copy)]
enum Way {
    There,
    Here,
}

/// Journals of copies.
fn journals(sshd: &Sshd) -> usize {
    fs::read_dir(sshd.at("state/hikyaku/copies")).map_or(0, Iterator::count)
}

/// Whether an unfinished file of a directory has random bytes at this offset. It may get its name meanwhile.
pub(crate) fn has_begun(dir: &Path, offset: usize) -> bool {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut parts = entries.filter(|entry| entry.file_name().as_bytes().ends_with(b".hikyaku"));
    parts.any(|part| {
        let bytes = fs::read(part.path()).unwrap_or_default();
        bytes.get(offset..offset + 64).is_some_and(|some| some.iter().any(|&byte| byte != 0))
    })
}

#[test]
fn an_interrupted_copy_goes_on_where_it_stopped() {
    let sshd = server("sftp-resume");
    fs::create_dir_all(sshd.at("run7")).unwrap();
    fs::write(sshd.at("run7/a"), random(1, 3_000)).unwrap();
    fs::write(sshd.at("run7/big"), random(2, 20_000_000)).unwrap();
    let wanted = listing(&sshd.at("run7"));
    let run7 = sshd.at("run7").display().to_string();
    for (name, way, signal) in [
        ("put", Way::There, Signal::TERM),
        ("get", Way::Here, Signal::TERM),
        ("put-killed", Way::There, Signal::KILL),
        ("get-killed", Way::Here, Signal::KILL),
    ] {
        let (from, to) = match way {
            Way::There => (run7.clone(), sshd.far(name)),
            Way::Here => (sshd.far("run7"), sshd.at(name).display().to_string()),
        };
        fs::create_dir(sshd.at(name)).unwrap();
        let arguments = ["--via", "sftp", "-r", "-l", "16m", &from, &to];
        let mut child = sshd.cp(&arguments).stderr(std::process::Stdio::piped()).spawn().unwrap();
        // A draft may have its whole length at once, so its contents show the progress.
        wait_until("progress", || {
            assert!(child.try_wait().unwrap().is_none(), "{name}: it has ended");
            let into = sshd.at(name).join("run7");
            into.join("a").exists() && has_begun(&into, 12_000_000)
        });
        kill_process(Pid::from_child(&child), signal).unwrap();
        let mut said = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
        child.wait().unwrap();
        let is_told = said.contains("the same command continues from here");
        assert_eq!(is_told, signal == Signal::TERM, "{name}: {said}");
        assert_eq!((partials(&sshd.at(name)).len(), journals(&sshd)), (1, 1), "{name}");
        let (output, said) = run(&mut sshd.cp(&["--json", "--via", "sftp", "-r", &from, &to]));
        assert!(output.status.success(), "{name}: {said}");
        assert!(listing(&sshd.at(name).join("run7")) == wanted, "{name}");
        assert_eq!((partials(&sshd.at(name)).len(), journals(&sshd)), (0, 0), "{name}");
        let events = String::from_utf8(output.stdout).unwrap();
        let end: serde_json::Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
        let kept = end["kept_bytes"].as_u64().unwrap();
        assert!(kept >= 1_000_000, "{name}: {kept}");
    }
}

#[test]
fn a_tree_that_gets_another_name_is_continued_both_ways() {
    let sshd = server("sftp-new-name");
    fs::create_dir_all(sshd.at("run7")).unwrap();
    fs::write(sshd.at("run7/a"), random(1, 3_000)).unwrap();
    fs::write(sshd.at("run7/big"), random(2, 20_000_000)).unwrap();
    let run7 = sshd.at("run7").display().to_string();
    for (name, from, to) in [
        ("put", run7.clone(), sshd.far("put")),
        ("get", sshd.far("run7"), sshd.at("get").display().to_string()),
    ] {
        let arguments = ["--via", "sftp", "-r", "-l", "16m", &from, &to];
        let child = sshd.cp(&arguments).stderr(std::process::Stdio::piped()).spawn().unwrap();
        wait_until("progress", || sshd.at(name).join("a").exists());
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let said = child.wait_with_output().unwrap().stderr;
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("the same command continues from here"), "{name}: {said}");
        let (output, said) = run(&mut sshd.cp(&["--via", "sftp", "-r", &from, &to]));
        assert!(output.status.success(), "{name}: {said}");
        assert!(listing(&sshd.at("run7")) == listing(&sshd.at(name)), "{name}");
    }
}

#[test]
fn a_part_that_is_not_that_of_the_source_is_not_used() {
    let sshd = server("sftp-other-part");
    fs::write(sshd.at("big"), random(2, 20_000_000)).unwrap();
    let big = sshd.at("big").display().to_string();
    fs::create_dir(sshd.at("put")).unwrap();
    let arguments = ["--via", "sftp", "-l", "16m", &big, &sshd.far("put")];
    let mut child = sshd.cp(&arguments).spawn().unwrap();
    wait_until("progress", || has_begun(&sshd.at("put"), 3_000_000));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    child.wait().unwrap();
    let part = sshd.at("put").join(partials(&sshd.at("put")).remove(0));
    let length = fs::metadata(&part).unwrap().len();
    std::os::unix::fs::FileExt::write_all_at(
        &fs::File::options().write(true).open(&part).unwrap(),
        b"not these",
        length - 100,
    )
    .unwrap();
    let (output, said) = run(&mut sshd.cp(&["--via", "sftp", &big, &sshd.far("put")]));
    assert!(output.status.success(), "{said}");
    assert!(fs::read(sshd.at("put/big")).unwrap() == random(2, 20_000_000));
    assert!(partials(&sshd.at("put")).is_empty());
}

#[test]
fn what_is_chosen_goes_and_a_dry_run_says_it() {
    let sshd = server("sftp-choice");
    let source = tree(&sshd, "run7");
    fs::create_dir_all(sshd.at("run8/deep")).unwrap();
    fs::write(sshd.at("run8/deep/3"), "x").unwrap();
    symlink("deep/3", sshd.at("run7/link")).unwrap();
    symlink("no such", sshd.at("run7/deep/dangling")).unwrap();
    let names = |root: &str| {
        let mut all: Vec<String> = Vec::new();
        for (name, _) in listing(&sshd.at(root)) {
            all.push(name.to_string_lossy().into_owned());
        }
        all
    };
    let target = |name: &str| {
        fs::create_dir_all(sshd.at(name)).unwrap();
        (sshd.far(name), sshd.at(name).display().to_string())
    };
    let (there, here) = (target("there"), target("here"));
    let options = [
        "-r",
        "--exclude",
        "deep/?",
        "--exclude",
        "/deep/er/",
        "--exclude",
        "big",
        "--include",
        "deep/7",
        "--exclude",
        "dangling",
    ];
    for (from, to) in [(&source, &there.0), (&sshd.far("run7"), &here.1)] {
        let arguments = [&options[..], &[from.as_str(), to]].concat();
        let (output, said) = run(cp(&sshd, &arguments).arg("-n"));
        assert!(output.status.success(), "{said}");
        let told = String::from_utf8_lossy(&output.stdout).into_owned() + &said;
        assert!(
            told.contains("run7/deep/7")
                && !told.contains("deep/8\n")
                && !told.contains("run7/big"),
            "{told}"
        );
        let local = if to == &there.0 { "there" } else { "here" };
        assert!(names(local).is_empty(), "a dry run made {:?}", names(local));
        let (output, said) = run(&mut cp(&sshd, &arguments));
        assert!(output.status.success(), "{said}");
        let got = names(local);
        assert!(
            got.contains(&"run7/deep/7".to_owned()) && got.contains(&"run7/deep/42".to_owned())
        );
        assert!(
            !got.iter()
                .any(|name| name.contains("/er/") || name.ends_with("big") || name.ends_with("/8")),
            "{got:?}"
        );
    }
    // With -a links stay links; a second time nothing is newer.
    for (from, to, copy) in
        [(&source, &there.0, "there/run7"), (&sshd.far("run7"), &here.1, "here/run7")]
    {
        let (output, said) = run(&mut cp(&sshd, &["-a", from, to]));
        assert!(output.status.success(), "{said}");
        for (link, text) in [("link", "deep/3"), ("deep/dangling", "no such")] {
            assert_eq!(fs::read_link(sshd.at(copy).join(link)).unwrap(), Path::new(text), "{copy}");
        }
        fs::write(sshd.at(copy).join("deep/3"), "newer").unwrap();
        fs::remove_file(sshd.at(copy).join("deep/4")).unwrap();
        let (output, said) = run(&mut cp(&sshd, &["-au", from, to]));
        assert!(output.status.success(), "{said}");
        assert_eq!(fs::read(sshd.at(copy).join("deep/3")).unwrap(), b"newer", "{copy}");
        assert!(sshd.at(copy).join("deep/4").exists(), "{copy}");
    }
    // A pattern in the middle of a path.
    let (_, here) = target("globbed");
    let (output, said) = run(&mut cp(&sshd, &[&sshd.far("run[78]/deep/3"), &here]));
    assert_eq!(output.status.code(), Some(6), "two sources have one name: {said}");
    let (output, said) = run(&mut cp(&sshd, &[&sshd.far("r*7/d*/[45]"), &here]));
    assert!(output.status.success(), "{said}");
    assert_eq!(names("globbed"), ["3", "4", "5"]);
}

/// The data pass through this machine, where both hosts are storages.
#[test]
fn a_tree_goes_between_two_hosts_of_which_one_has_no_hikyaku_or_both() {
    let sshd = server("sftp-between");
    let source = tree(&sshd, "run7");
    let far = format!("far:{source}");
    for (number, (options, words)) in [
        (&["--via", "sftp"][..], ""),
        (&["--remote-path", "no-such-hikyaku"], "has no hikyaku that can be started"),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("copy{number}");
        let target = sshd.far(&name).replacen("far:", "other:", 1);
        let (output, said) = run(&mut sshd.cp(&[options, &["-rp", &far, &target]].concat()));
        assert!(output.status.success(), "{options:?}: {said}\n{}", sshd.log());
        assert!(said.contains(words), "{options:?}: {said}");
        assert!(listing(&sshd.at("run7")) == listing(&sshd.at(&name)), "{options:?}");
        // An option that protects data and cannot take effect is refused, and nothing is written.
        let target = sshd.far("refused").replacen("far:", "other:", 1);
        let refused = [options, &["--policy", "fair", "-r", &far, &target]].concat();
        let (output, said) = run(&mut sshd.cp(&refused));
        assert_eq!(output.status.code(), Some(1), "{options:?}: {said}");
        assert!(said.contains("--policy has no effect on a copy by SFTP"), "{options:?}: {said}");
        assert!(!sshd.at("refused").exists());
    }
    let native = ["--via", "native", "--remote-path", "no-such-hikyaku", "-r", &far, "other:x"];
    let (output, said) = run(&mut sshd.cp(&native));
    assert_eq!(output.status.code(), Some(6), "{said}");
}
