//! What `hikyaku sync` keeps on each way: within this machine, to and from a far hikyaku, and by SFTP.

use super::trees::{Entry, Scratch, state};
use crate::common::Sshd;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// A machine that is reached by ssh, and trees on it.
struct Ways {
    sshd: Sshd,
    scratch: Scratch,
}

impl Ways {
    fn new(name: &str) -> Self {
        let sshd = Sshd::with_lines(&format!("ways-{name}"), "Subsystem sftp internal-sftp\n");
        Self { sshd, scratch: Scratch::new(&format!("ways-{name}")) }
    }

    fn far(&self, name: &str) -> String {
        format!("far:{}", self.scratch.at(name).display())
    }

    /// Runs `sync` with these words; `program` is hikyaku at the far side.
    fn sync(&self, words: &[&str], program: &str) -> (i32, String, String) {
        let rsh = format!("ssh -F {}", self.sshd.at("ssh_config").display());
        self.scratch.sync(&[&["-e", &rsh, "--remote-path", program], words].concat())
    }

    /// The five ways from `a/` to a target: its name, the ends, and the program at the far side.
    fn all(&self) -> [(&'static str, [String; 2], &'static str); 5] {
        let ours = env!("CARGO_BIN_EXE_hikyaku");
        let own = |name: &str| format!("{name}/");
        [
            ("local", [own("a"), own("local")], "none"),
            ("push", [own("a"), self.far("push/")], ours),
            ("pull", [self.far("a/"), own("pull")], ours),
            ("push-sftp", [own("a"), self.far("push-sftp/")], "none"),
            ("pull-sftp", [self.far("a/"), own("pull-sftp")], "none"),
        ]
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn set_time(path: &Path, secs: i64) {
    let time = Timespec { tv_sec: secs, tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

#[test]
fn all_twelve_permission_bits_are_kept_on_each_way() {
    let ways = Ways::new("bits");
    let modes =
        [("f", 0o4755), ("g", 0o2750), ("h", 0o1600), ("d", 0o2775), ("s", 0o1777), ("p", 0o755)];
    for (name, mode) in modes {
        match name {
            "f" | "g" | "h" => ways.scratch.write(&format!("a/{name}"), name),
            _ => ways.scratch.write(&format!("a/{name}/x"), name),
        }
        set_mode(&ways.scratch.at(&format!("a/{name}")), mode);
    }
    let mode_of = |name: &str| fs::metadata(ways.scratch.at(name)).unwrap().mode() & 0o7777;
    for (name, [from, to], program) in ways.all() {
        let (code, _, error) = ways.sync(&["-a", &from, &to], program);
        assert_eq!(code, 0, "{name}: {error}");
        let found = modes.map(|(entry, _)| (entry, mode_of(&format!("{name}/{entry}"))));
        assert_eq!(found, modes, "{name}");
        let (code, said, error) = ways.sync(&["-ai", &from, &to], program);
        assert_eq!((code, &said[..]), (0, ""), "{name}: {error}");
        // Without -p a file that is replaced hands all of its bits on.
        ways.scratch.write(&format!("{name}/f"), "another");
        set_mode(&ways.scratch.at(&format!("{name}/f")), 0o6711);
        assert_eq!(ways.sync(&["-rt", &from, &to], program).0, 0, "{name}");
        assert_eq!(mode_of(&format!("{name}/f")), 0o6711, "{name}");
    }
}

#[test]
fn times_that_sftp_has_not_are_kept_or_refused_by_name() {
    let ways = Ways::new("times");
    let times = [
        ("f", -1_000_000_000),
        ("g", 3_000_000_000),
        ("h", 5_000_000_000),
        ("l", -7),
        ("d", -86_400 * 400),
        ("e", 4_000_000_000),
    ];
    for (name, _) in times {
        match name {
            "l" => symlink("nowhere", ways.scratch.at("a/l")).unwrap(),
            "d" | "e" => fs::create_dir_all(ways.scratch.at(&format!("a/{name}"))).unwrap(),
            _ => ways.scratch.write(&format!("a/{name}"), name),
        }
    }
    times.iter().for_each(|(name, time)| set_time(&ways.scratch.at(&format!("a/{name}")), *time));
    let time_of = |name: &str| fs::symlink_metadata(ways.scratch.at(name)).unwrap().mtime();
    for (name, [from, to], program) in ways.all() {
        let (code, _, error) = ways.sync(&["-a", &from, &to], program);
        let wrong =
            times.iter().filter(|(entry, time)| time_of(&format!("{name}/{entry}")) != *time);
        let wrong: Vec<_> = wrong.map(|(entry, _)| *entry).collect();
        let refused: &[&str] = match name {
            "push" => &["l"],
            "push-sftp" => &["f", "h", "l", "d"],
            _ => &[],
        };
        assert_eq!(
            (code, &wrong[..]),
            (if refused.is_empty() { 0 } else { 23 }, refused),
            "{name}: {error}"
        );
        for entry in refused {
            let told = error
                .lines()
                .any(|line| line.contains(&format!("{entry}: ")) && line.contains("1970"));
            assert!(told, "{name}: {entry}: {error}");
        }
        if refused.is_empty() {
            let (code, said, error) = ways.sync(&["-ai", &from, &to], program);
            assert_eq!((code, &said[..]), (0, ""), "{name}: {error}");
        }
    }
}

#[test]
fn what_is_deleted_is_kept_under_the_suffix_on_each_way() {
    let ways = Ways::new("backup");
    ways.scratch.write("a/x", "new");
    symlink("new", ways.scratch.at("a/l")).unwrap();
    for (name, [from, to], program) in ways.all() {
        for entry in ["x", "extra", "gone/deep/f", "gone/g.bak"] {
            ways.scratch.write(&format!("{name}/{entry}"), format!("old {entry}"));
        }
        symlink("old", ways.scratch.at(&format!("{name}/l"))).unwrap();
        for round in 0..2 {
            let words = ["-ai", "--delete", "-b", "--suffix", ".bak", &from, &to];
            let (code, said, error) = ways.sync(&words, program);
            assert_eq!((code, said.is_empty()), (0, round == 1), "{name} {round}: {said}{error}");
            let found =
                |entry: &str| fs::read_to_string(ways.scratch.at(&format!("{name}/{entry}"))).ok();
            for (kept, had) in [
                ("x.bak", "x"),
                ("extra.bak", "extra"),
                ("gone/deep/f.bak", "gone/deep/f"),
                ("gone/g.bak", "gone/g.bak"),
            ] {
                assert_eq!(found(kept), Some(format!("old {had}")), "{name}: {kept}");
            }
            assert_eq!((found("x"), found("extra")), (Some("new".to_owned()), None), "{name}");
            let link =
                |entry: &str| fs::read_link(ways.scratch.at(&format!("{name}/{entry}"))).unwrap();
            assert_eq!((link("l"), link("l.bak")), ("new".into(), "old".into()), "{name}");
        }
    }
}

#[test]
fn one_file_gets_another_name_on_each_way() {
    let ways = Ways::new("name");
    ways.scratch.write("a/f*", "content");
    ways.scratch.write("a/f1", "another");
    for (name, [from, to], program) in ways.all() {
        fs::create_dir_all(ways.scratch.at(name)).unwrap();
        let (file, new) = (format!("{from}f*"), format!("{to}new"));
        symlink("nowhere", ways.scratch.at(&format!("{name}/new"))).unwrap();
        let (code, said, error) = ways.sync(&["-ai", &file, &new], program);
        assert_eq!((code, said.ends_with("f+++++++++ f*\n")), (0, true), "{name}: {said}{error}");
        let entries = |root: &str| {
            let all = fs::read_dir(ways.scratch.at(root)).unwrap();
            all.map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(entries(name), BTreeSet::from(["new".to_owned()]), "{name}");
        assert_eq!(
            fs::read(ways.scratch.at(&format!("{name}/new"))).unwrap(),
            b"content",
            "{name}"
        );
        let (code, said, error) = ways.sync(&["-ai", &file, &new], program);
        assert_eq!((code, &said[..]), (0, ""), "{name}: {error}");
        // What it replaces is kept under the new name.
        fs::write(ways.scratch.at(&format!("{name}/new")), "other").unwrap();
        assert_eq!(ways.sync(&["-ab", &file, &new], program).0, 0, "{name}");
        assert_eq!(fs::read(ways.scratch.at(&format!("{name}/new~"))).unwrap(), b"other", "{name}");
        // A slash makes a directory, and a missing level is named with its host.
        assert_eq!(ways.sync(&["-a", &file, &format!("{to}into/")], program).0, 0, "{name}");
        assert_eq!(entries(&format!("{name}/into")), BTreeSet::from(["f*".to_owned()]), "{name}");
        let (code, _, error) = ways.sync(&["-a", &file, &format!("{to}no/such")], program);
        assert_eq!(code, 6, "{name}: {error}");
        assert!(error.contains("try: ") && error.contains("mkdir -p"), "{name}: {error}");
        assert_eq!(error.contains("far:"), to.starts_with("far:"), "{name}: {error}");
    }
}

#[test]
fn errors_name_the_host_and_have_the_codes_of_all_commands() {
    let ways = Ways::new("errors");
    ways.scratch.write("a/f", "x");
    ways.scratch.write("b/f", "x");
    for program in [env!("CARGO_BIN_EXE_hikyaku"), "none"] {
        let cases = [
            (["a/".to_owned(), ways.far("b/no/such")], "b/no/such: no such file or directory"),
            ([ways.far("none/"), "c".to_owned()], "none/: no such file or directory"),
            ([ways.far("a/f/"), "c".to_owned()], "a/f/: no"),
            (["a/".to_owned(), ways.far("b/f")], "b/f: not a directory"),
        ];
        for ([from, to], wanted) in cases {
            let (code, _, error) = ways.sync(&["-a", &from, &to], program);
            assert_eq!(code, 6, "{from} {to}: {error}");
            let line = error
                .lines()
                .find(|line| line.contains(wanted))
                .unwrap_or_else(|| panic!("{error}"));
            assert!(line.starts_with("hikyaku: ") && line.contains("far:/"), "{error}");
            assert!(!error.contains("os error") && !error.contains("entity"), "{error}");
        }
    }
    for (words, wanted) in
        [(["none/", "c"], "none/: no such file or directory"), (["a/", "b/no/such"], "mkdir -p")]
    {
        let (code, _, error) = ways.scratch.sync(&[&["-a"], &words[..]].concat());
        assert!(code == 6 && error.contains(wanted), "{code} {error}");
        assert!(!error.contains("os error") && !error.contains("entity"), "{error}");
    }
}

/// The tree at `root` with times in whole seconds, as SFTP has them.
fn whole(root: &Path) -> Vec<Entry> {
    let seconds = |(path, mode, (secs, _), content): Entry| (path, mode, (secs, 0), content);
    state(root).into_iter().map(seconds).collect()
}

#[test]
fn the_carrier_of_the_data_is_chosen_as_in_a_copy() {
    let ways = Ways::new("via");
    ways.scratch.write("a/d/f", "content");
    let connected = ["by UDP after", "the data go through ssh"];
    for (via, wanted) in [
        ("udp", &connected[..1]),
        ("native", &connected[..1]),
        ("ssh", &connected[1..]),
        ("sftp", &[][..]),
    ] {
        let words = ["-avv", "-4", "--via", via, "--connections", "2", "a/", &ways.far(via)];
        let (code, _, error) = ways.sync(&words, env!("CARGO_BIN_EXE_hikyaku"));
        let told = connected.iter().filter(|words| error.contains(**words)).collect::<Vec<_>>();
        assert_eq!((code, told), (0, wanted.iter().collect()), "{via}: {error}");
        assert_eq!(whole(&ways.scratch.at("a")), whole(&ways.scratch.at(via)), "{via}");
    }
    let words = ["-a", "--via", "native", "a/", &ways.far("none")];
    let (code, _, error) = ways.sync(&words, "none");
    assert!(code == 6 && !ways.scratch.at("none").exists(), "{code} {error}");
}

#[test]
fn two_other_hosts_become_alike_where_hikyaku_is_on_one_or_on_none_of_them() {
    let ways = Ways::new("between");
    ways.scratch.write("a/f", "content");
    ways.scratch.write("a/d/g", "another");
    symlink("f", ways.scratch.at("a/l")).unwrap();
    let config = ways.scratch.at("config/hikyaku");
    fs::create_dir_all(&config).unwrap();
    let rsh = format!("ssh -F {}", ways.sshd.at("ssh_config").display());
    let ours = env!("CARGO_BIN_EXE_hikyaku");
    for (name, programs, options) in [
        ("one", [ours, "none"], &[][..]),
        ("other", ["none", ours], &[]),
        ("neither", ["none", "none"], &[]),
        ("chosen", [ours, ours], &["--via", "sftp"]),
    ] {
        let [far, other] = programs;
        let set = format!(
            "[host.far]\nremote-path = \"{far}\"\n[host.other]\nremote-path = \"{other}\"\n"
        );
        fs::write(config.join("config.toml"), set).unwrap();
        ways.scratch.write(&format!("{name}/extra"), "x");
        let target = ways.far(name).replacen("far:", "other:", 1);
        let sync = |words: &[&str]| {
            let mut command = Command::new(ours);
            command.env("XDG_CONFIG_HOME", ways.scratch.at("config")).args(["sync", "-e", &rsh]);
            ways.scratch.run(command.args(words).args(options).args([&ways.far("a/"), &target]))
        };
        let (code, said, error) = sync(&["-ai", "--delete"]);
        assert_eq!(code, 0, "{name}: {said}{error}");
        assert!(said.contains("*deleting   extra"), "{name}: {said}");
        assert_eq!(whole(&ways.scratch.at("a")), whole(&ways.scratch.at(name)), "{name}");
        let (code, said, error) = sync(&["-ai", "--delete"]);
        assert_eq!((code, &said[..]), (0, ""), "{name}: {error}");
    }
}

#[test]
fn addresses_of_rsync_daemons_are_refused_and_nothing_is_made() {
    let ways = Ways::new("modules");
    ways.scratch.write("a/f", "x");
    let before = state(&ways.scratch.at("a"));
    for address in ["far::mod", "far::mod/sub", "rsync://far/mod"] {
        for ends in [["a/", address], [address, "c"]] {
            let (code, _, error) = ways.sync(&[&["-a"], &ends[..]].concat(), "none");
            assert_eq!(code, 1, "{ends:?}: {error}");
            assert!(
                error.contains("rsync daemon") && error.contains("\ntry: HOST:PATH"),
                "{error}"
            );
            let (code, _, error) =
                ways.scratch.run(&mut ways.sshd.cp(&[&["-r"], &ends[..]].concat()));
            assert_eq!(code, 1, "{ends:?}: {error}");
            assert!(
                error.contains("rsync daemon") && error.contains("\ntry: HOST:PATH"),
                "{error}"
            );
        }
    }
    assert!(before == state(&ways.scratch.at("a")) && !ways.scratch.at("c").exists());
}

#[test]
fn the_command_of_ssh_may_have_quotes() {
    let ways = Ways::new("quotes");
    ways.scratch.write("a/f", "x");
    fs::create_dir(ways.scratch.at("with blank")).unwrap();
    fs::copy(ways.sshd.at("ssh_config"), ways.scratch.at("with blank/it's")).unwrap();
    let path = ways.scratch.at("with blank/it's").display().to_string();
    for (number, rsh) in
        [format!("ssh -F \"{path}\""), format!("ssh  -q -F '{}'", path.replace('\'', "''"))]
            .iter()
            .enumerate()
    {
        let far = ways.far(&format!("b{number}"));
        let (code, _, error) =
            ways.scratch.sync(&["-a", "-e", rsh, "--remote-path", "none", "a/", &far]);
        assert_eq!(code, 0, "{rsh}: {error}");
        assert!(ways.scratch.at(&format!("b{number}/f")).exists());
    }
    let far = ways.far("options");
    let native = ["-a", "--ssh-config", &path, "--remote-path", "none", "a/", &far];
    let (code, _, error) = ways.scratch.sync(&native);
    assert!(code == 0 && ways.scratch.at("options/f").exists(), "{code} {error}");
    let (code, _, error) = ways.scratch.sync(&["-a", "-e", "ssh -F 'x", "a/", "far:c"]);
    assert!(code == 1 && error.contains("not closed"), "{code} {error}");
}

#[test]
fn a_source_in_the_target_by_another_way_is_not_deleted() {
    let scratch = Scratch::new("bound");
    scratch.write("dst/more/m", "x");
    scratch.write("dst/other", "x");
    fs::create_dir(scratch.at("bound")).unwrap();
    let script = "mount --bind dst/more bound || exit 77
        \"$0\" sync -a --delete bound/ dst; one=$?
        mount --bind dst/more/.. bound || exit 77
        \"$0\" sync -a --delete bound/more/ dst; two=$?
        exit $((one * 10 + two))";
    let mut unshare = Command::new("unshare");
    let (code, _, error) =
        scratch.run(unshare.args(["-m", "sh", "-c", script, env!("CARGO_BIN_EXE_hikyaku")]));
    if code == 77 || error.contains("unshare") {
        println!("SKIPPED: no mount namespace: {error}");
        return;
    }
    assert_eq!(code, 66, "{error}");
    assert!(error.contains("the source is in the target (more)"), "{error}");
    assert!(scratch.at("dst/more/m").exists() && scratch.at("dst/other").exists());
}

#[test]
fn an_empty_directory_gives_way_and_options_may_be_combined_as_in_rsync() {
    let scratch = Scratch::new("habits");
    scratch.write("a/f", "12");
    scratch.write("a/g", "34");
    fs::create_dir_all(scratch.at("b/f")).unwrap();
    scratch.write("b/g/kept", "x");
    let (code, said, error) = scratch.sync(&["-ai", "a/", "b/"]);
    assert_eq!((code, scratch.at("b/f").is_file()), (23, true), "{said}{error}");
    assert!(error.contains("g: a directory") && scratch.at("b/g/kept").exists(), "{error}");
    fs::remove_dir_all(scratch.at("b/g")).unwrap();
    // Contents decide, whatever else is said of sizes and times.
    scratch.write("b/f", "21");
    scratch.write("b/g", "34");
    let (code, said, error) = scratch.sync(&["-aic", "--size-only", "a/", "b/"]);
    // The directories may have been made within a second, or not.
    let said: Vec<&str> = said.lines().filter(|line| !line.ends_with(" ./")).collect();
    assert_eq!((code, &said[..]), (0, &[">fc........ f"][..]), "{error}");
    // A replaced file hands its mode on without -p, also if it is kept.
    scratch.write("b/f", "older");
    set_mode(&scratch.at("b/f"), 0o604);
    assert_eq!(scratch.sync(&["-rtb", "a/", "b/"]).0, 0);
    let mode = |name: &str| fs::metadata(scratch.at(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("b/f"), mode("b/f~")), (0o604, 0o604));
    assert_eq!(scratch.sync(&["-ab", "--suffix", "a/b", "a/", "b/"]).0, 1);
}

#[test]
fn a_name_of_a_list_beyond_a_link_is_followed_on_each_way() {
    let ways = Ways::new("beyond");
    ways.scratch.write("a/d/x", "text");
    ways.scratch.write("list", "l/x\nd/x\nk/\nm\nl/none\n");
    ["k", "l", "m"].iter().for_each(|name| symlink("d", ways.scratch.at("a").join(name)).unwrap());
    for (way, [from, to], program) in ways.all() {
        let said = ways.sync(&["-rlt", "--files-from", "list", &from, &to], program);
        assert_eq!(said.0, 23, "{way}: {said:?}");
        assert!(said.2.contains("hikyaku: l/none: no such file"), "{way}: {said:?}");
        for (dir, is_link) in [("d", false), ("k", false), ("l", false), ("m", true)] {
            let dir = ways.scratch.at(way).join(dir);
            assert!(is_link || dir.join("x").exists(), "{way}: {said:?}");
            assert_eq!(fs::symlink_metadata(&dir).unwrap().is_symlink(), is_link, "{way}: {dir:?}");
        }
    }
}
