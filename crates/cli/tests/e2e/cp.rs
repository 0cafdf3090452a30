//! Tests of `hikyaku cp` with a real ssh and a real far side.

use crate::common::{Sshd, listing, process, random};
use std::fs;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

fn run(command: &mut Command) -> (Output, String) {
    let output = command.output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

#[test]
fn put_and_get_a_file_and_a_tree() {
    let sshd = Sshd::start("cp");
    fs::create_dir_all(sshd.at("run7/deep")).unwrap();
    fs::write(sshd.at("run7/big"), random(1, 20_000_001)).unwrap();
    for n in 0..50 {
        fs::write(sshd.at(&format!("run7/deep/{n}")), random(n, n as usize * 100)).unwrap();
    }
    let source = sshd.at("run7").display().to_string();
    let (output, said) = run(&mut sshd.cp(&["-r", &source, &sshd.far("put")]));
    assert!(output.status.success(), "{said}\n{}", sshd.log());
    assert_eq!(said, "", "output although standard error is not a terminal");
    assert!(listing(&sshd.at("run7")) == listing(&sshd.at("put")));
    fs::create_dir(sshd.at("got")).unwrap();
    let target = sshd.at("got").display().to_string();
    let (output, said) = run(&mut sshd.cp(&["-rp", &sshd.far("put"), &target]));
    assert!(output.status.success(), "{said}\n{}", sshd.log());
    assert!(listing(&sshd.at("run7")) == listing(&sshd.at("got/put")));
    let (output, said) = run(&mut sshd.cp(&[&sshd.far("put/big"), &target]));
    assert!(output.status.success(), "{said}");
    assert!(fs::read(sshd.at("got/big")).unwrap() == random(1, 20_000_001));
    let left = fs::read_dir(sshd.at("state/hikyaku/copies")).unwrap().count();
    assert_eq!(left, 0, "a journal is left after a successful copy");
}

#[test]
fn errors_have_remedies() {
    let sshd = Sshd::start("cp-errors");
    fs::write(sshd.at("a"), b"a").unwrap();
    let a = sshd.at("a").display().to_string();
    let mut elsewhere = sshd.cp(&[&a, &sshd.far("b")]);
    elsewhere.args(["--remote-path", "/no/such/hikyaku"]);
    let cases = [
        (sshd.cp(&[&a, &sshd.far("no/such/b")]), "mkdir -p"),
        (sshd.cp(&[&format!("{a}x"), &sshd.far("b")]), "no such file or directory"),
        (sshd.cp(&[&sshd.far("nothing"), &a]), "nothing"),
        (sshd.cp(&[&sshd.at("").display().to_string(), &sshd.far("b")]), "-r was not given"),
        (elsewhere, "install hikyaku on far"),
    ];
    for (mut command, wanted) in cases {
        let (output, said) = run(&mut command);
        assert!(!output.status.success(), "{command:?}: {said}");
        assert!(said.contains(wanted), "{command:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
    assert!(!sshd.at("b").exists());
}

#[test]
fn a_killed_copy_continues_where_it_stopped() {
    let sshd = Sshd::start("cp-resume");
    let big = random(2, 60_000_000);
    fs::write(sshd.at("big"), &big).unwrap();
    let source = sshd.at("big").display().to_string();
    let mut child = sshd.cp(&["-l", "100m", &source, &sshd.far("copy")]).spawn().unwrap();
    wait_for_journal(&sshd);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!sshd.at("copy").exists(), "the target exists before the copy is complete");
    let (output, said) = run(&mut sshd.cp(&["--json-lines", &source, &sshd.far("copy")]));
    assert!(output.status.success(), "{said}");
    let events = String::from_utf8(output.stdout).unwrap();
    let end: serde_json::Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    assert_eq!((&end["event"], &end["bytes"]), (&"end".into(), &60_000_000.into()));
    assert!(end["kept_bytes"].as_u64().unwrap() >= 1 << 20, "{end}");
    assert!(fs::read(sshd.at("copy")).unwrap() == big);
    let names: Vec<_> = fs::read_dir(sshd.at("")).unwrap().flatten().collect();
    let partial =
        names.iter().filter(|name| name.file_name().as_encoded_bytes().ends_with(b".hikyaku"));
    assert_eq!(partial.count(), 0, "unfinished files are left");
}

#[test]
fn a_killed_copy_of_a_tree_continues_with_what_is_missing() {
    let sshd = Sshd::start("cp-resume-tree");
    fs::create_dir_all(sshd.at("run7/a")).unwrap();
    for n in 0..200 {
        fs::write(sshd.at(&format!("run7/a/{n}")), random(n, 20_000)).unwrap();
    }
    fs::write(sshd.at("run7/z"), random(1000, 60_000_000)).unwrap();
    let source = sshd.at("run7").display().to_string();
    let mut child = sshd.cp(&["-r", "-l", "100m", &source, &sshd.far("copy")]).spawn().unwrap();
    let begin = Instant::now();
    // All small files are in place, and part of the large one.
    while fs::read_dir(sshd.at("copy/a")).map_or(0, Iterator::count) < 200 {
        assert!(begin.elapsed() < Duration::from_secs(20), "{}", sshd.log());
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(Duration::from_millis(500));
    child.kill().unwrap();
    child.wait().unwrap();
    let (output, said) = run(&mut sshd.cp(&["-r", "--json", &source, &sshd.far("copy")]));
    assert!(output.status.success(), "{said}");
    let events = String::from_utf8(output.stdout).unwrap();
    let end: serde_json::Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    assert_eq!((&end["files"], &end["bytes"]), (&201.into(), &64_000_000.into()), "{end}");
    assert!(end["kept_bytes"].as_u64().unwrap() >= 4_000_000, "{end}");
    assert!(listing(&sshd.at("run7")) == listing(&sshd.at("copy")));
}

/// Waits until a copy has written enough to the journal to be continued.
fn wait_for_journal(sshd: &Sshd) {
    let begin = Instant::now();
    let journal = || {
        let folder = fs::read_dir(sshd.at("state/hikyaku/copies")).ok()?;
        folder.flatten().find_map(|entry| fs::metadata(entry.path()).ok().map(|meta| meta.len()))
    };
    while journal().unwrap_or(0) < 1000 {
        assert!(begin.elapsed() < Duration::from_secs(20), "{}", sshd.log());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_stalled_copy_gives_way_to_the_same_command() {
    let sshd = Sshd::start("cp-give-way");
    let big = random(5, 60_000_000);
    fs::write(sshd.at("big"), &big).unwrap();
    let source = sshd.at("big").display().to_string();
    let mut child = sshd.cp(&["-l", "100m", &source, &sshd.far("copy")]).spawn().unwrap();
    wait_for_journal(&sshd);
    // Simulates a near side whose machine has changed its network: ssh does not notice.
    process::stop(child.id());
    let (output, said) = run(&mut sshd.cp(&["--json", &source, &sshd.far("copy")]));
    process::go_on(child.id());
    assert!(output.status.success(), "{said}");
    let events = String::from_utf8(output.stdout).unwrap();
    let end: serde_json::Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    assert!(end["kept_bytes"].as_u64().unwrap() >= 1 << 20, "{end}");
    assert!(fs::read(sshd.at("copy")).unwrap() == big);
    assert!(!child.wait().unwrap().success(), "the first copy should fail");
}

#[test]
fn a_malicious_far_side_cannot_write_files_that_were_not_requested() {
    let sshd = Sshd::start("cp-liar");
    fs::create_dir_all(sshd.at("from")).unwrap();
    fs::create_dir_all(sshd.at("into")).unwrap();
    for name in ["a.dat", "b.dat", "c.txt"] {
        fs::write(sshd.at("from").join(name), name).unwrap();
    }
    let into = sshd.at("into").display().to_string();
    let (output, said) = run(&mut sshd.cp(&[&sshd.far("from/*.dat"), &into]));
    assert!(output.status.success(), "{said}");
    let names: Vec<_> = listing(&sshd.at("into")).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [std::path::Path::new("a.dat"), std::path::Path::new("b.dat")]);
}

#[test]
fn copies_within_one_machine_and_between_two_others() {
    let sshd = Sshd::start("cp-others");
    fs::create_dir_all(sshd.at("from/deep")).unwrap();
    fs::write(sshd.at("from/big"), random(3, 5_000_000)).unwrap();
    fs::write(sshd.at("from/deep/small"), b"small").unwrap();
    let from = sshd.at("from").display().to_string();
    let here = sshd.at("here").display().to_string();
    let (output, said) = run(&mut sshd.cp(&["-r", &from, &here]));
    assert!(output.status.success(), "{said}");
    assert!(listing(&sshd.at("from")) == listing(&sshd.at("here")));
    // Two parts of one command give their files the same modes.
    fs::create_dir(sshd.at("both")).unwrap();
    let (both, near) = (sshd.at("both").display().to_string(), format!("{from}/big"));
    let (output, said) = run(&mut sshd.cp(&[&sshd.far("from/deep/small"), &near, &both]));
    assert!(output.status.success(), "{said}");
    let mode = |name: &str| {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(sshd.at(name)).unwrap().permissions().mode()
    };
    assert_eq!(mode("both/big"), mode("from/big"));
    assert_eq!(mode("both/small"), mode("both/big"));
    let (output, said) = run(&mut sshd.cp(&["-r", &sshd.far("from"), &sshd.far("there")]));
    assert!(output.status.success(), "{said}");
    assert!(listing(&sshd.at("from")) == listing(&sshd.at("there")));
}

#[test]
fn data_go_through_ssh_if_udp_is_blocked() {
    let sshd = Sshd::start("cp-relay");
    fs::write(sshd.at("a"), random(4, 3_000_000)).unwrap();
    let a = sshd.at("a").display().to_string();
    // ssh reaches the host through a ProxyCommand, by a name that only that program knows.
    let target = sshd.far("b").replace("far:", "hidden:");
    let (output, said) = run(&mut sshd.cp(&[&a, &target]));
    assert!(output.status.success(), "{said}");
    assert!(said.contains("the data go through ssh"), "{said}");
    assert!(fs::read(sshd.at("b")).unwrap() == random(4, 3_000_000));
    let (output, said) = run(&mut sshd.cp(&["--no-udp", &a, &sshd.far("c")]));
    assert!(output.status.success() && said.is_empty(), "{said}");
    assert!(fs::read(sshd.at("c")).unwrap() == random(4, 3_000_000));
}

#[test]
fn a_far_side_that_cannot_be_reached_by_udp_connects_itself() {
    use std::os::unix::fs::PermissionsExt;
    let sshd = Sshd::start("cp-shy");
    fs::write(sshd.at("a"), random(4, 3_000_000)).unwrap();
    // The far side knows the near side's address, but the near side does not know the far side's.
    let shy = sshd.at("shy.sh");
    let program = env!("CARGO_BIN_EXE_hikyaku");
    let script = format!(
        "#!/bin/sh\nexport SSH_CONNECTION='127.0.0.1 1 UNKNOWN 1'\nexec {program} \"$@\"\n"
    );
    fs::write(&shy, script).unwrap();
    fs::set_permissions(&shy, fs::Permissions::from_mode(0o755)).unwrap();
    let there = |name: &str| sshd.far(name).replace("far:", "hidden:");
    let (a, shy) = (sshd.at("a").display().to_string(), shy.display().to_string());
    let here = sshd.at("here").display().to_string();
    for (from, to, made) in [(&a, &there("b"), "b"), (&there("b"), &here, "here")] {
        let (output, said) = run(sshd.cp(&[from, to]).args(["--remote-path", &shy]));
        assert!(output.status.success(), "{said}\n{}", sshd.log());
        assert_eq!(said, "", "unexpected output: the data may have gone through ssh");
        assert!(fs::read(sshd.at(made)).unwrap() == random(4, 3_000_000));
    }
}

#[test]
fn filters_and_dry_runs_select_the_same_files() {
    let sshd = Sshd::start("cp-choice");
    fs::create_dir_all(sshd.at("run7/logs")).unwrap();
    fs::create_dir_all(sshd.at("run7/data/deep")).unwrap();
    for name in ["a.tmp", "b", "logs/x", "data/y", "data/deep/z.tmp"] {
        fs::write(sshd.at("run7").join(name), name).unwrap();
    }
    let source = sshd.at("run7").display().to_string();
    let names = |dir: &str| -> Vec<String> {
        let all = listing(&sshd.at(dir)).into_iter();
        all.map(|(name, _)| name.display().to_string()).collect()
    };
    let choice = ["--exclude", "*.tmp", "--exclude", "/logs/"];
    let put = sshd.far("put");
    let rehearsal = [&["-r", "-n"][..], &choice[..], &[&source, &put]].concat();
    let (output, said) = run(&mut sshd.cp(&rehearsal));
    assert!(output.status.success(), "{said}");
    let mut would: Vec<_> = std::str::from_utf8(&output.stdout).unwrap().lines().collect();
    would.sort_unstable();
    assert_eq!(would, ["put/b", "put/data/y"]);
    assert!(!sshd.at("put").exists());
    let manifest = sshd.at("manifest").display().to_string();
    let (output, said) = run(&mut sshd.cp(&[
        &["-r", "--manifest", &manifest][..],
        &choice[..],
        &[&source, &sshd.far("put")],
    ]
    .concat()));
    assert!(output.status.success(), "{said}");
    assert_eq!(names("put"), ["b", "data/y"]);
    let lines = fs::read_to_string(&manifest).unwrap();
    let paths: Vec<_> = lines.lines().map(|line| line.split_once("  ").unwrap().1).collect();
    assert_eq!(paths, ["put/b", "put/data/y"]);
    fs::write(sshd.at("list"), "data/deep/z.tmp\nb\n").unwrap();
    let list = sshd.at("list").display().to_string();
    for (from, to, dir) in [
        (source.clone(), sshd.far("listed"), "listed"),
        (sshd.far("run7"), sshd.at("got").display().to_string(), "got"),
    ] {
        let (output, said) = run(&mut sshd.cp(&["--files-from", &list, &from, &to]));
        assert!(output.status.success(), "{said}");
        assert_eq!(names(dir), ["b", "data/deep/z.tmp"]);
    }
}

#[test]
fn hscp_has_the_exit_codes_of_scp() {
    let sshd = Sshd::start("cp-hscp");
    let hscp = sshd.at("hscp");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_hikyaku"), &hscp).unwrap();
    fs::write(sshd.at("a"), b"a").unwrap();
    let a = sshd.at("a").display().to_string();
    let config = sshd.at("ssh_config").display().to_string();
    let code = |from: &str, to: &str| {
        let mut command = Command::new(&hscp);
        command.args(["-F", &config, "--remote-path", env!("CARGO_BIN_EXE_hikyaku")]);
        command.env("XDG_STATE_HOME", sshd.at("state")).args([from, to]);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(code(&a, &sshd.far("b")), (Some(0), String::new()));
    assert_eq!(code(&a, &sshd.far("no/such/b")).0, Some(1));
    assert_eq!(code(&a, "broken:b").0, Some(255));
}

#[test]
fn progress_lines_are_printed_on_request() {
    let sshd = Sshd::start("cp-shown");
    let size = 15_000_000;
    fs::write(sshd.at("a"), random(7, size)).unwrap();
    let from = sshd.at("a").display().to_string();
    let config = sshd.at("ssh_config").display().to_string();
    let shown = |flags: &[&str], to: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hscp"));
        command.args(flags).args(["-l", "40m", "-F", &config]);
        command.args(["--remote-path", env!("CARGO_BIN_EXE_hikyaku")]);
        command.env("XDG_STATE_HOME", sshd.at("state")).args([&from, &sshd.far(to)]);
        let (output, said) = run(&mut command);
        assert!(output.status.success(), "{said}");
        assert!(output.stdout.is_empty());
        said
    };
    for (flags, to) in [(&["-I"][..], "b"), (&["-q", "-I"], "c")] {
        let said = shown(flags, to);
        let mut lines: Vec<&str> = said.lines().collect();
        let last = lines.pop().unwrap();
        assert!(last.starts_with("1 file, 15.0 MB in "), "{said}");
        // 3 s at this rate.
        assert!(lines.iter().any(|line| line.contains(" %  ")), "{said}");
        for line in lines {
            // On a busy machine the first line may come before the size is known.
            let is_known = line.contains(" %  ") && line.contains(" of 15.0 MB  ");
            assert!(is_known || line.starts_with("counting  "), "{said}");
            assert!(!line.contains(['\r', '\x1b']), "control characters in a line: {line:?}");
        }
    }
    for (flags, to) in [(&[][..], "d"), (&["-I", "-q"], "e")] {
        assert_eq!(shown(flags, to), "", "{flags:?}");
    }
}

#[test]
fn holes_do_not_change_totals_once_they_are_counted() {
    use std::os::unix::fs::FileExt;
    let sshd = Sshd::start("cp-holes");
    fs::create_dir(sshd.at("run7")).unwrap();
    let size = 50_000_000;
    for name in ["a", "b", "c"] {
        let file = fs::File::create(sshd.at("run7").join(name)).unwrap();
        file.set_len(size).unwrap();
        file.write_all_at(&random(8, 3_000_000), 20_000_000).unwrap();
    }
    let from = sshd.at("run7").display().to_string();
    // The end that counts is the one that reads, the one that writes, or one that only relays.
    let far = sshd.far("run7");
    for (from, to) in [
        (&from, sshd.far("put")),
        (&far, sshd.at("get").display().to_string()),
        (&far, sshd.far("on")),
    ] {
        let words = ["-r", "-a", "--json-lines", "-l", "40m", from, &to];
        let (output, said) = run(&mut sshd.cp(&words));
        assert!(output.status.success(), "{said}");
        let text = String::from_utf8(output.stdout).unwrap();
        let events: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let counted = events.iter().filter(|event| event["is_counted"] == true);
        // The whole is known while the bytes are still on their way.
        let first = counted.clone().next().unwrap();
        assert!(first["bytes"].as_u64() < Some(3 * size), "{to}: {text}");
        let totals: Vec<u64> =
            counted.map(|event| event["total_bytes"].as_u64().unwrap()).collect();
        assert!(
            !totals.is_empty() && totals.iter().all(|total| *total == 3 * size),
            "{to}: {text}"
        );
        let all = events.iter().map(|event| event["total_bytes"].as_u64().unwrap());
        assert!(all.is_sorted(), "the totals decrease: {text}");
        let end = events.last().unwrap();
        assert_eq!(end["bytes"], 3 * size, "{to}: {end}");
        let kept = end["kept_bytes"].as_u64().unwrap();
        assert!((3 * 40_000_000..3 * 47_000_000).contains(&kept), "{to}: {end}");
        let name = to.rsplit('/').next().unwrap();
        assert!(listing(&sshd.at("run7")) == listing(&sshd.at(name)), "{to}");
    }
}

#[test]
fn a_fetched_file_shows_how_much_of_it_has_come() {
    let sshd = Sshd::start("cp-percent");
    fs::write(sshd.at("big"), random(9, 12_000_000)).unwrap();
    let far = sshd.far("big");
    for to in [sshd.at("here").display().to_string(), sshd.far("there")] {
        let (output, said) = run(&mut sshd.cp(&["--json-lines", "-l", "40m", &far, &to]));
        assert!(output.status.success(), "{said}");
        let text = String::from_utf8(output.stdout).unwrap();
        let events: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let number = |event: &serde_json::Value, name| event[name].as_u64().unwrap();
        // The size is known before the bytes, and no later event takes it back.
        let first = events.iter().position(|event| event["is_counted"] == true).unwrap();
        assert!(number(&events[first], "bytes") < 6_000_000, "{to}: {text}");
        assert!(events[first..].iter().all(|event| event["is_counted"] == true), "{to}: {text}");
        let percents = events[first..]
            .iter()
            .map(|event| number(event, "bytes") * 100 / number(event, "total_bytes"));
        assert!(percents.is_sorted(), "{to}: {text}");
        let totals = events[first..].iter().map(|event| number(event, "total_bytes"));
        assert!(totals.into_iter().all(|total| total == 12_000_000), "{to}: {text}");
    }
}

/// Runs the command in a shell with this limit of open files.
fn with_open_files(limit: u32, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -n {limit} && exec \"$0\" \"$@\"")]);
    shell.arg(command.get_program()).args(command.get_args());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

#[test]
fn a_receiver_respects_the_limit_of_open_files() {
    let sshd = Sshd::start("cp-descriptors");
    // Each file in a directory of its own, which is open as well.
    for n in 0..400 {
        let dir = sshd.at(&format!("run7/{n}"));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("large"), random(n, 300_000)).unwrap();
        fs::write(dir.join("small"), random(n, 30)).unwrap();
    }
    let (from, to) = (sshd.far("run7"), sshd.at("got").display().to_string());
    let (output, said) = run(&mut with_open_files(160, &sshd.cp(&["-r", &from, &to])));
    assert!(output.status.success(), "{said}");
    assert_eq!(said, "");
    assert!(listing(&sshd.at("run7")) == listing(&sshd.at("got")));
    // A limit that is too low for any copy is reported once, with a remedy.
    let to = sshd.at("other").display().to_string();
    let (output, said) = run(&mut with_open_files(45, &sshd.cp(&["-r", &from, &to])));
    assert_eq!(output.status.code(), Some(6), "{said}");
    assert_eq!(said.matches("ulimit -n").count(), 1, "{said}");
}
