//! What of a tree is copied from and to daemons: the same as within this machine.

mod kept;

use crate::common::daemon::{Client, Daemon, said};
use crate::common::{dressed, listing};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// A daemon that serves `root` for reading and writing.
struct Rig {
    client: Client,
    daemon: Daemon,
}

impl Rig {
    fn new(name: &str) -> Self {
        let client = Client::new(name);
        fs::create_dir(client.at("root")).unwrap();
        let keys = client.authorized("keys", "");
        let daemon = Daemon::start_with(&client, &client.at("root"), &keys, &["--writable"]);
        Self { client, daemon }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.client.at(name)
    }

    fn served(&self, path: &str) -> String {
        format!("hikyaku://{}/{path}", self.daemon.address)
    }

    fn cp(&self, arguments: &[&str]) -> Output {
        let mut command = self.client.command(&["cp"]);
        command.args(arguments).env("XDG_CONFIG_HOME", self.at("config"));
        command.current_dir(self.at("")).output().unwrap()
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn tree(at: &Path) {
    for name in ["a.tmp", "b", "keep.tmp", "d/c", "d/e.tmp", "d/deep/f", "logs/g", "d/logs/h"] {
        let path = at.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
    fs::write(at.join("big"), vec![7; 3_000_000]).unwrap();
}

/// A file of another content, so many seconds older than now.
fn put(path: &Path, content: &str, age: u64) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    let time = SystemTime::now() - Duration::from_secs(age);
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn servers_choose_files_as_a_copy_within_this_machine_does() {
    let rig = Rig::new("choice");
    tree(&rig.at("root/run"));
    tree(&rig.at("run"));
    fs::write(rig.at("lines"), "d/deep\n./b\na.tmp\nnothing\n").unwrap();
    fs::write(rig.at("zeros"), "b\0d/c\0").unwrap();
    let choices: [&[&str]; 8] = [
        &["-r"],
        &["-r", "--exclude", "*.tmp"],
        &["-r", "--exclude", "*.tmp", "--include", "keep.tmp"],
        &["-r", "--exclude", "/logs/", "--exclude", "d/**/f"],
        &["-r", "--files-from", "lines"],
        &["-r", "--files-from", "lines", "--exclude", "*.tmp"],
        &["--files-from", "zeros", "-0"],
        &["--files-from", "lines"],
    ];
    for (number, choice) in choices.iter().enumerate() {
        let (local, down, up) =
            (format!("local{number}"), format!("down{number}"), format!("up{number}"));
        let expected = rig.cp(&[choice, &["run", local.as_str()][..]].concat());
        let fetched = rig.cp(&[choice, &[rig.served("run").as_str(), &down][..]].concat());
        let sent = rig.cp(&[choice, &["run", rig.served(&up).as_str()][..]].concat());
        let wanted = listing(&rig.at(&local));
        for (way, output, made) in
            [("down", &fetched, rig.at(&down)), ("up", &sent, rig.at("root").join(&up))]
        {
            let (told, expected) = (said(output), said(&expected));
            assert_eq!(listing(&made), wanted, "{choice:?} {way}: {told}");
            let is_missing = expected.contains("nothing");
            assert_eq!(told.contains("nothing"), is_missing, "{choice:?} {way}: {told}");
        }
        assert_eq!(fetched.status.code(), expected.status.code(), "{choice:?}: {}", said(&fetched));
        assert_eq!(sent.status.code(), expected.status.code(), "{choice:?}: {}", said(&sent));
    }
}

#[test]
fn a_name_that_two_sources_have_is_that_of_the_first_one() {
    let rig = Rig::new("claimed");
    for (path, content) in [("1/x/f", "first"), ("2/x/f", "second"), ("2/x/g", "other")] {
        for root in ["", "root"] {
            put(&rig.at(root).join(path), content, 60);
        }
    }
    // Sources, and what must be at the target then; whether one of them is told to be left out.
    type Files<'a> = &'a [(&'a str, &'a str)];
    type Case<'a> = (&'a [&'a str], Files<'a>, bool);
    let [first, whole]: [Files<'_>; 2] = [&[("f", "first")], &[("x/f", "first"), ("x/g", "other")]];
    let cases: [Case<'_>; 4] = [
        (&["1/x/f", "2/x/f"], first, true),
        (&["1/x/f", "1/x/f"], first, false),
        (&["-r", "1/x", "2/x"], whole, true),
        (&["-r", "1/x", "2/x/g"], &[("x/f", "first"), ("g", "other")], false),
    ];
    for (number, (words, wanted, is_told)) in cases.into_iter().enumerate() {
        for way in ["local", "down"] {
            let target = format!("{way}{number}");
            fs::create_dir(rig.at(&target)).unwrap();
            let named = |word: &&str| match (way, word.starts_with('-')) {
                ("down", false) => rig.served(word),
                _ => (*word).to_owned(),
            };
            let words: Vec<String> = words.iter().map(named).chain([target.clone()]).collect();
            let copied = rig.cp(&words.iter().map(String::as_str).collect::<Vec<_>>());
            let code = if is_told { 6 } else { 0 };
            assert_eq!(copied.status.code(), Some(code), "{words:?}: {}", said(&copied));
            assert_eq!(said(&copied).contains("another source"), is_told, "{}", said(&copied));
            for (path, content) in wanted {
                let there = fs::read_to_string(rig.at(&target).join(path)).unwrap_or_default();
                assert_eq!(there, *content, "{words:?}: {path}");
            }
        }
    }
}

#[test]
fn files_that_the_user_keeps_are_kept_in_both_directions() {
    let rig = Rig::new("kept");
    // The option, the age of what is there, and whether it stays; the new file is an hour old.
    for (option, age, stays) in [
        ("--ignore-existing", 7200, true),
        ("--ignore-existing", 60, true),
        ("-u", 60, true),
        ("-u", 7200, false),
        ("-q", 60, false),
        ("-n", 60, true),
        ("--dry-run", 7200, true),
    ] {
        for (from, to) in [("root/run", "out/run"), ("run", "root/out/run")] {
            for dir in ["root/run", "run", "out", "root/out"] {
                let _ = fs::remove_dir_all(rig.at(dir));
            }
            put(&rig.at(from).join("a"), "theirs", 3600);
            put(&rig.at(from).join("new"), "new", 3600);
            put(&rig.at(to).join("a"), "mine", age);
            let (source, target) = match from {
                "run" => ("run".to_owned(), rig.served("out")),
                _ => (rig.served("run"), "out".to_owned()),
            };
            let copied = rig.cp(&["-r", option, &source, &target]);
            let told = said(&copied);
            assert_eq!(copied.status.code(), Some(0), "{option} {from}: {told}");
            let wanted = if stays { "mine" } else { "theirs" };
            let found = fs::read_to_string(rig.at(to).join("a")).unwrap();
            assert_eq!(found, wanted, "{option} {age} {from}: {told}");
            let is_rehearsal = matches!(option, "-n" | "--dry-run");
            assert_eq!(rig.at(to).join("new").exists(), !is_rehearsal, "{option} {from}: {told}");
            let printed = String::from_utf8_lossy(&copied.stdout).into_owned();
            assert_eq!(printed.contains("run/new"), is_rehearsal, "{option} {from}: {printed}");
        }
    }
    // A rehearsal makes no directory either.
    put(&rig.at("list"), "a\n", 0);
    put(&rig.at("root/run/a"), "theirs", 0);
    let told = rig.cp(&["-n", "-r", "--files-from", "list", &rig.served("run"), "absent"]);
    assert_eq!(told.status.code(), Some(0), "{}", said(&told));
    assert!(!rig.at("absent").exists());
}

#[test]
fn a_target_that_is_no_plain_file_is_written_into() {
    let rig = Rig::new("poured");
    let bytes: Vec<u8> = (0..3_500_000_u32).map(|n| (n ^ (n >> 9)) as u8).collect();
    fs::write(rig.at("root/f"), &bytes).unwrap();
    fs::create_dir(rig.at("root/d")).unwrap();
    let source = rig.served("f");
    let printed = rig.cp(&[&source, "-"]);
    assert_eq!(printed.status.code(), Some(0), "{}", said(&printed));
    assert!(printed.stdout == bytes);
    let fifo = rig.at("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::read(fifo).unwrap()
    });
    let poured = rig.cp(&[&source, text(&fifo)]);
    assert_eq!(poured.status.code(), Some(0), "{}", said(&poured));
    assert!(reader.join().unwrap() == bytes);
    assert!(!fifo.is_file());
    // In a tree it is nobody's wish that it is written into.
    fs::create_dir_all(rig.at("out/d")).unwrap();
    fs::write(rig.at("root/d/fifo"), "x").unwrap();
    fs::rename(&fifo, rig.at("out/d/fifo")).unwrap();
    let refused = rig.cp(&["-r", &rig.served("d"), "out"]);
    assert_eq!(refused.status.code(), Some(6), "{}", said(&refused));
    assert!(said(&refused).contains("left unchanged"), "{}", said(&refused));
    let tree = rig.cp(&["-r", &rig.served("d"), "-"]);
    assert_ne!(tree.status.code(), Some(0), "{}", said(&tree));
    // A link stands for its file; a slash for a directory.
    fs::write(rig.at("old"), "old").unwrap();
    std::os::unix::fs::symlink("old", rig.at("link")).unwrap();
    let through = rig.cp(&[&source, "link"]);
    assert_eq!(through.status.code(), Some(0), "{}", said(&through));
    assert!(rig.at("link").is_symlink() && fs::read(rig.at("old")).unwrap() == bytes);
    let slash = rig.cp(&[&source, "absent/"]);
    assert_eq!(slash.status.code(), Some(6), "{}", said(&slash));
    assert!(said(&slash).contains("no such directory") && !rig.at("absent").exists());
}

#[test]
fn modes_and_times_of_servers_are_those_of_a_copy_within_this_machine() {
    let rig = Rig::new("dressed");
    for (way, is_kept) in [("here", false), ("down", false), ("up", false)].into_iter().chain([
        ("here", true),
        ("down", true),
        ("up", true),
    ]) {
        for name in ["from", "to", "root/from", "root/to"] {
            let _ = fs::remove_dir_all(rig.at(name));
        }
        let (from, to) = match way {
            "here" => ("from", "to"),
            "down" => ("root/from", "to"),
            _ => ("from", "root/to"),
        };
        dressed::source(&rig.at(from).join("t"));
        dressed::target(&rig.at(to).join("t"));
        let named = |path: &str| match path.strip_prefix("root/") {
            Some(path) => rig.served(path),
            None => path.to_owned(),
        };
        let source = format!("{}/t", named(from));
        let copied = rig.cp(&[if is_kept { "-rp" } else { "-r" }, &source, &named(to)]);
        assert_eq!(copied.status.code(), Some(0), "{way}: {}", said(&copied));
        dressed::check(&rig.at(to).join("t"), is_kept, way);
    }
}

/// A file of more bytes than a copy into a stream keeps in memory, most of them zeros.
fn larger_than_a_window(at: &Path) -> u64 {
    let (size, file) = (150 << 20, File::create(at).unwrap());
    file.set_len(size).unwrap();
    for place in (0..size).step_by(9_999_999) {
        file.write_all_at(&place.to_le_bytes(), place.min(size - 8)).unwrap();
    }
    size
}

#[test]
fn a_stream_gets_a_file_as_it_comes_and_needs_no_room_on_a_disk() {
    let rig = Rig::new("streamed");
    let size = larger_than_a_window(&rig.at("root/f"));
    let mut command = rig.client.command(&["cp", &rig.served("f"), "-"]);
    command.env("TMPDIR", rig.at("none")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.current_dir(rig.at("")).spawn().unwrap();
    let (mut out, mut source) =
        (child.stdout.take().unwrap(), File::open(rig.at("root/f")).unwrap());
    let (mut got, mut wanted) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    for part in 0..size >> 20 {
        out.read_exact(&mut got).unwrap();
        source.read_exact(&mut wanted).unwrap();
        assert!(got == wanted, "{part} MiB");
        // Not all of it can be in memory.
        assert!(part > 0 || child.try_wait().unwrap().is_none());
    }
    assert_eq!(out.read(&mut got).unwrap(), 0);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

#[test]
fn a_copy_into_a_fifo_that_nobody_reads_from_can_be_stopped() {
    let rig = Rig::new("unread");
    larger_than_a_window(&rig.at("root/f"));
    let fifo = rig.at("fifo");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let mut command = rig.client.command(&["cp", &rig.served("f"), text(&fifo)]);
    let child = command.current_dir(rig.at("")).stderr(Stdio::piped()).spawn().unwrap();
    let mut reader = File::open(&fifo).unwrap();
    reader.read_exact(&mut [0; 8]).unwrap();
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(said(&output).contains("stopped; "), "{}", said(&output));
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(2));
}

#[test]
fn a_rate_of_the_settings_limits_downloads_and_uploads() {
    let rig = Rig::new("set-rate");
    fs::create_dir_all(rig.at("config/hikyaku")).unwrap();
    fs::write(rig.at("config/hikyaku/config.toml"), "[default]\nrate = \"16m\"\n").unwrap();
    fs::write(rig.at("root/f"), vec![1; 4_000_000]).unwrap();
    fs::write(rig.at("g"), vec![1; 4_000_000]).unwrap();
    for (source, target) in [(rig.served("f"), "f".to_owned()), ("g".to_owned(), rig.served("g"))] {
        let begin = Instant::now();
        let copied = rig.cp(&[&source, &target]);
        assert_eq!(copied.status.code(), Some(0), "{}", said(&copied));
        // Two seconds, less what a window begins with.
        assert!(begin.elapsed() > Duration::from_secs(1), "{source}: {:?}", begin.elapsed());
    }
}

#[test]
fn a_setting_that_protects_something_and_has_no_effect_is_noted() {
    let rig = Rig::new("set-idle");
    fs::create_dir_all(rig.at("config/hikyaku")).unwrap();
    let settings = "[default]\nudp-ports = \"60100\"\ntimeout = \"1m\"\n";
    fs::write(rig.at("config/hikyaku/config.toml"), settings).unwrap();
    fs::write(rig.at("root/f"), "f").unwrap();
    let ways = [("from", rig.served("f"), "f".to_owned()), ("to", "f".to_owned(), rig.served("g"))];
    for (way, source, target) in ways {
        let note =
            format!("hikyaku: 'udp-ports' of the settings has no effect on a copy {way} daemons\n");
        for (options, notes) in [(&[][..] as &[&str], 1), (&["-q"], 0)] {
            let copied = rig.cp(&[options, &[&source, &target]].concat());
            assert_eq!(copied.status.code(), Some(0), "{}", said(&copied));
            assert_eq!(said(&copied).matches(&note).count(), notes, "{}", said(&copied));
            assert!(!said(&copied).contains("timeout"), "{}", said(&copied));
        }
    }
}

/// Files of /proc have a reported size of 0.
#[test]
fn a_file_that_hides_its_size_is_copied_or_refused_and_never_empty() {
    let rig = Rig::new("sizeless");
    fs::create_dir(rig.at("root/d")).unwrap();
    for (source, name) in [("/proc/version", "version"), ("/proc/sys/net/core", "core/somaxconn")] {
        let copied = rig.cp(&["-r", source, &rig.served("d")]);
        assert!(copied.status.success(), "{source}: {}", said(&copied));
        let original = Path::new("/proc/sys/net").join(name);
        let original = if original.exists() { original } else { source.into() };
        assert_eq!(fs::read(rig.at("root/d").join(name)).unwrap(), fs::read(original).unwrap());
    }
    // A file of more than 256 KiB.
    let copied = rig.cp(&["/proc/kallsyms", &rig.served("d")]);
    assert_eq!(copied.status.code(), Some(6), "{}", said(&copied));
    assert!(said(&copied).contains("gives more bytes than its size"), "{}", said(&copied));
    assert!(!rig.at("root/d/kallsyms").exists());
    // An empty file is one.
    fs::write(rig.at("empty"), "").unwrap();
    let copied = rig.cp(&["empty", &rig.served("d")]);
    assert!(copied.status.success() && rig.at("root/d/empty").exists(), "{}", said(&copied));
}

#[test]
fn a_daemon_gives_no_file_whose_size_it_cannot_tell() {
    let client = Client::new("sizeless-served");
    let keys = client.authorized("keys", "");
    let daemon = Daemon::start(&client, Path::new("/proc"), &keys);
    let (out, copied) = (client.at("out"), client.at("core"));
    for (source, target) in [("version", &out), ("sys/net/core", &copied)] {
        let source = format!("hikyaku://{}/{source}", daemon.address);
        let ended = client.run(&["cp", "-r", &source, text(target)]);
        assert_eq!(ended.status.code(), Some(6), "{source}: {}", said(&ended));
        assert!(said(&ended).contains("a file without a size"), "{source}: {}", said(&ended));
    }
    assert!(!out.exists());
    assert_eq!(listing(&copied).len(), 0, "no empty file");
    // What is empty in truth is a file.
    fs::create_dir(client.at("plain")).unwrap();
    fs::write(client.at("plain/empty"), "").unwrap();
    let plain = Daemon::start(&client, &client.at("plain"), &keys);
    let source = format!("hikyaku://{}/empty", plain.address);
    let ended = client.run(&["cp", &source, text(&out)]);
    assert!(ended.status.success() && out.exists(), "{}", said(&ended));
}

#[test]
fn a_slash_behind_a_file_makes_no_other_file_of_it() {
    let rig = Rig::new("slashes");
    fs::write(rig.at("root/file"), "there").unwrap();
    fs::write(rig.at("here"), "here").unwrap();
    fs::create_dir(rig.at("d")).unwrap();
    let cases = [
        (rig.served("file/"), "d".to_owned(), "is not a directory"),
        (rig.served("file/"), "new".to_owned(), "is not a directory"),
        ("here".to_owned(), rig.served("file/"), "is not a directory"),
        ("here".to_owned(), rig.served("new/"), "no such directory"),
    ];
    for (from, to, words) in cases {
        let copied = rig.cp(&["-r", &from, &to]);
        assert_eq!(copied.status.code(), Some(6), "{from} {to}: {}", said(&copied));
        assert!(said(&copied).contains(words), "{from} {to}: {}", said(&copied));
    }
    assert_eq!(listing(&rig.at("d")).len(), 0);
    assert!(!rig.at("new").exists() && !rig.at("root/new").exists());
    assert_eq!(fs::read(rig.at("root/file")).unwrap(), b"there");
    // A directory is one with and without it.
    fs::create_dir(rig.at("root/tree")).unwrap();
    fs::write(rig.at("root/tree/f"), "text").unwrap();
    for source in ["tree", "tree/"] {
        let copied = rig.cp(&["-r", &rig.served(source), "d"]);
        assert!(copied.status.success() && rig.at("d/tree/f").exists(), "{}", said(&copied));
        fs::remove_dir_all(rig.at("d/tree")).unwrap();
    }
    let copied = rig.cp(&["here", &rig.served("tree/")]);
    assert!(copied.status.success() && rig.at("root/tree/here").exists(), "{}", said(&copied));
}
