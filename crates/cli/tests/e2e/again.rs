//! Interrupted copies that are continued, and copies that meet another one. Whatever happened in
//! between, the same command ends with the bytes of the source or reports why not.

use crate::common::{Sshd, listing, partials, random, wait_until};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

fn run(command: &mut Command) -> (Output, String) {
    let output = command.output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Starts a copy within this machine that takes several seconds, and kills both ends once `is_far`
/// reports enough progress.
fn interrupt(sshd: &Sshd, arguments: &[&str], is_far: impl FnMut() -> bool) {
    let mut command = sshd.cp(arguments);
    // Files are not synced, so that the journal records no segment as proven.
    command.env("HIKYAKU_SYNC_PERIOD_MS", "600000");
    let child = command.stdout(Stdio::null()).spawn().unwrap();
    wait_until("progress", is_far);
    kill(child);
}

fn journal(sshd: &Sshd) -> u64 {
    let folder = fs::read_dir(sshd.at("state/hikyaku/copies")).into_iter().flatten();
    folder.flatten().filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum()
}

fn text(path: PathBuf) -> String {
    path.display().to_string()
}

/// An interrupted copy of 120 MB. More of it has been written than a sender sends before it knows
/// what the receiver has, and nothing has been synced.
fn interrupted(name: &str) -> (Sshd, Vec<u8>, [String; 2]) {
    let sshd = Sshd::start(name);
    let big = random(2, 120_000_000);
    fs::write(sshd.at("big"), &big).unwrap();
    let paths = [text(sshd.at("big")), text(sshd.at("copy"))];
    interrupt(&sshd, &["-l", "200m", &paths[0], &paths[1]], || journal(&sshd) > 5000);
    assert!(!sshd.at("copy").exists(), "the target exists before the copy is complete");
    assert_eq!(partials(&sshd.at("")).len(), 1);
    (sshd, big, paths)
}

fn ends_well(sshd: &Sshd, paths: &[String; 2], wanted: &[u8]) -> u64 {
    let (output, said) = run(&mut sshd.cp(&["--json", &paths[0], &paths[1]]));
    assert!(output.status.success(), "{said}");
    assert!(fs::read(sshd.at("copy")).unwrap() == wanted, "the contents differ");
    assert_eq!(partials(&sshd.at("")), Vec::<PathBuf>::new());
    assert_eq!(journal(sshd), 0, "a journal is left after a successful copy");
    let events = String::from_utf8(output.stdout).unwrap();
    let end: serde_json::Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    end["kept_bytes"].as_u64().unwrap()
}

#[test]
fn written_segments_are_reused() {
    let (sshd, big, paths) = interrupted("again-plain");
    assert!(ends_well(&sshd, &paths, &big) >= 1 << 20, "no written segment was reused");
}

#[test]
fn a_failed_attempt_keeps_the_unfinished_files_of_an_earlier_one() {
    let sshd = Sshd::start("again-failed");
    fs::create_dir_all(sshd.at("run7/deep")).unwrap();
    fs::write(sshd.at("run7/deep/big"), random(2, 120_000_000)).unwrap();
    fs::create_dir(sshd.at("copy")).unwrap();
    let (from, to) = (text(sshd.at("run7/.")), text(sshd.at("copy")));
    interrupt(&sshd, &["-r", "-l", "200m", &from, &to], || journal(&sshd) > 5000);
    // A source that cannot be copied, and none of the unfinished files.
    fs::rename(sshd.at("run7/deep"), sshd.at("elsewhere")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(sshd.at("run7/socket")).unwrap();
    let (output, said) = run(&mut sshd.cp(&["-r", &from, &to]));
    assert!(!output.status.success(), "{said}");
    drop(socket);
    fs::remove_file(sshd.at("run7/socket")).unwrap();
    fs::rename(sshd.at("elsewhere"), sshd.at("run7/deep")).unwrap();
    let (output, said) = run(&mut sshd.cp(&["-r", "--json", &from, &to]));
    assert!(output.status.success(), "{said}");
    assert!(listing(&sshd.at("run7")) == listing(&sshd.at("copy")), "the contents differ");
    let events = String::from_utf8(output.stdout).unwrap();
    let end: serde_json::Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    assert!(end["kept_bytes"].as_u64().unwrap() >= 1 << 20, "no written segment was reused");
    assert_eq!(journal(&sshd), 0, "a journal is left after a successful copy");
}

#[test]
fn bytes_that_the_kernel_has_dropped_are_sent_again() {
    let (sshd, big, paths) = interrupted("again-dropped");
    let partial = sshd.at("").join(&partials(&sshd.at(""))[0]);
    // The state after a failed write-back: data that were written but not synced have changed.
    let file = File::options().write(true).open(partial).unwrap();
    let length = file.metadata().unwrap().len();
    file.write_all_at(&vec![0; length as usize], 0).unwrap();
    ends_well(&sshd, &paths, &big);
}

#[test]
fn a_source_that_changed_and_has_its_old_time_is_another_file() {
    let (sshd, mut big, paths) = interrupted("again-source");
    let time = fs::metadata(&paths[0]).unwrap().modified().unwrap();
    big[..500_000].fill(7);
    let source = File::options().write(true).open(&paths[0]).unwrap();
    source.write_all_at(&big[..500_000], 0).unwrap();
    source.set_modified(time).unwrap();
    assert_eq!(ends_well(&sshd, &paths, &big), 0, "segments of the old file were reused");
}

#[test]
fn a_finished_file_that_somebody_changed_is_copied_again() {
    let sshd = Sshd::start("again-done");
    fs::create_dir_all(sshd.at("run7")).unwrap();
    fs::write(sshd.at("run7/a"), random(1, 20_000)).unwrap();
    fs::write(sshd.at("run7/z"), random(2, 60_000_000)).unwrap();
    let (from, to) = (text(sshd.at("run7")), text(sshd.at("copy")));
    let is_far = || sshd.at("copy/a").exists() && journal(&sshd) > 1000;
    interrupt(&sshd, &["-r", "-l", "100m", &from, &to], is_far);
    let done = sshd.at("copy/a");
    let time = fs::metadata(&done).unwrap().modified().unwrap();
    fs::write(&done, random(3, 20_000)).unwrap();
    File::options().write(true).open(&done).unwrap().set_modified(time).unwrap();
    let (output, said) = run(&mut sshd.cp(&["-r", &from, &to]));
    assert!(output.status.success(), "{said}");
    assert!(listing(&sshd.at("run7")) == listing(&sshd.at("copy")), "the contents differ");
}

#[test]
fn nothing_is_left_over_after_a_good_copy() {
    let sshd = Sshd::start("again-left");
    fs::create_dir_all(sshd.at("run7/deep")).unwrap();
    for n in 0..6000 {
        let dir = if n % 2 == 0 { "run7" } else { "run7/deep" };
        fs::write(sshd.at(dir).join(n.to_string()), random(n, 3000)).unwrap();
    }
    let (from, to) = (text(sshd.at("run7")), text(sshd.at("copy")));
    let made = || fs::read_dir(sshd.at("copy")).map_or(0, Iterator::count);
    let mut left = 0;
    for more in [200, 800, 1600] {
        interrupt(&sshd, &["-r", &from, &to], || made() > more);
        left = left.max(partials(&sshd.at("copy")).len());
    }
    assert!(left > 0, "no unfinished file was observed");
    let (output, said) = run(&mut sshd.cp(&["-r", &from, &to]));
    assert!(output.status.success(), "{said}");
    assert_eq!(partials(&sshd.at("copy")), Vec::<PathBuf>::new());
    assert!(listing(&sshd.at("run7")) == listing(&sshd.at("copy")));
}

#[test]
fn a_file_is_written_in_place_by_one_copy_at_a_time() {
    let sshd = Sshd::start("again-in-place");
    fs::write(sshd.at("a"), random(1, 40_000_000)).unwrap();
    fs::write(sshd.at("b"), random(2, 40_000_000)).unwrap();
    fs::write(sshd.at("target"), random(3, 40_000_000)).unwrap();
    let (a, b, target) = (text(sshd.at("a")), text(sshd.at("b")), text(sshd.at("target")));
    let mut first = sshd.cp(&["--inplace", "-l", "80m", &a, &target]).spawn().unwrap();
    wait_until("the first copy", || journal(&sshd) > 1000);
    let (output, said) = run(&mut sshd.cp(&["--inplace", &b, &target]));
    assert!(!output.status.success(), "{said}");
    let holder = format!("another program is writing to it (process {})", first.id());
    assert!(said.contains(&holder), "{said}");
    assert!(first.wait().unwrap().success());
    assert!(fs::read(&target).unwrap() == random(1, 40_000_000));
}

#[test]
fn an_open_descriptor_is_written_into() {
    let sshd = Sshd::start("again-descriptor");
    for (name, len) in [("small", 1000), ("large", 3_000_000)] {
        fs::write(sshd.at(name), random(1, len)).unwrap();
        let near = text(sshd.at(name));
        for from in [near.clone(), sshd.far(name)] {
            for to in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
                let log = sshd.at("log");
                fs::write(&log, b"before\n").unwrap();
                let out = File::options().append(true).open(&log).unwrap();
                let inode = out.metadata().unwrap().ino();
                let mut command = sshd.cp(&[&from, to]);
                let output = command.stdout(out).stderr(Stdio::piped()).output().unwrap();
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{from} {to}: {said}");
                let wanted = [&b"before\n"[..], &random(1, len)].concat();
                assert!(fs::read(&log).unwrap() == wanted, "{from} {to}");
                assert_eq!(fs::metadata(&log).unwrap().ino(), inode);
            }
        }
    }
    let (output, said) = run(&mut sshd.cp(&[&text(sshd.at("small")), "far:/dev/stdout"]));
    assert!(!output.status.success() && said.contains("carries the copy"), "{said}");
}

#[test]
fn a_slash_at_the_end_means_a_directory() {
    let sshd = Sshd::start("again-slash");
    fs::write(sshd.at("a"), b"a").unwrap();
    fs::create_dir(sshd.at("run7")).unwrap();
    fs::write(sshd.at("run7/x"), b"x").unwrap();
    let (a, tree) = (text(sshd.at("a")), text(sshd.at("run7")));
    for target in [text(sshd.at("new/")), sshd.far("new/")] {
        let (output, said) = run(&mut sshd.cp(&[&a, &target]));
        assert!(!output.status.success(), "{said}");
        assert!(said.contains("new/: no such directory"), "{said}");
        assert!(!sshd.at("new").exists());
    }
    let (output, said) = run(&mut sshd.cp(&["-r", &tree, &text(sshd.at("new/"))]));
    assert!(output.status.success(), "{said}");
    assert_eq!(fs::read(sshd.at("new/x")).unwrap(), b"x");
}

#[test]
fn a_signal_ends_a_copy_by_its_default_action() {
    use std::os::unix::process::ExitStatusExt;
    let sshd = Sshd::start("again-signal");
    let big = random(2, 60_000_000);
    fs::write(sshd.at("big"), &big).unwrap();
    let from = text(sshd.at("big"));
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        for to in [text(sshd.at("copy")), sshd.far("copy")] {
            let before = journal(&sshd);
            let child = sshd.cp(&["-l", "50m", &from, &to]).stderr(Stdio::piped()).spawn().unwrap();
            wait_until("progress", || journal(&sshd) > before + 600);
            let words = [format!("-{signal}"), child.id().to_string()];
            assert!(Command::new("kill").args(words).status().unwrap().success());
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.signal(), Some(number), "{signal} {to}");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("the same command continues from here"), "{said}");
            assert!(!sshd.at("copy").exists());
        }
    }
    let paths = [from, text(sshd.at("copy"))];
    assert!(ends_well(&sshd, &paths, &big) > 0, "no written segment was reused");
}
