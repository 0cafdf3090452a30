//! `hikyaku sftp`: its commands with OpenSSH's server on this machine, and its ways through a real ssh. `hikyaku sync`,
//! which uses such sessions, has its tests in modules.

mod as_rsync;
pub(crate) mod beside_rsync;
mod draws;
mod many;
mod named;
mod sync;
mod sync_ways;
mod times;
pub(crate) mod trees;
mod umask;

use crate::common::{Sshd, listing, random};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const SERVER: &str = "/usr/lib/openssh/sftp-server";

/// A directory with `here` and `there`, where sessions begin: both ends are this machine.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Option<Self> {
        if !Path::new(SERVER).exists() {
            println!("SKIPPED: no {SERVER}");
            return None;
        }
        let dir = crate::common::scratch(&format!("sftp-{name}"));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("here")).unwrap();
        fs::create_dir_all(dir.join("there")).unwrap();
        symlink(env!("CARGO_BIN_EXE_hikyaku"), dir.join("hsftp")).unwrap();
        Some(Self(dir))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.at(name)).unwrap_or_else(|_| panic!("no {name}"))
    }

    /// `hsftp` with these options, which is given these lines. It begins in `here`, and the server in `there`.
    fn session(&self, options: &[&str], lines: &str) -> (Output, String, String) {
        let mut command = Command::new(self.at("hsftp"));
        let server = format!("{SERVER} -d {}", self.at("there").display());
        command.args(["-D", &server]).args(options).current_dir(self.at("here"));
        command.env("XDG_STATE_HOME", self.at("state")).env("SHELL", "/bin/sh").env("TZ", "UTC0");
        told(&mut command, lines)
    }

    /// The same as a batch: what it prints, if all of it succeeded.
    fn batch(&self, lines: &str) -> Result<String, String> {
        let (output, said, error) = self.session(&["-b", "-"], lines);
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1)), "{code:?}: {said}{error}");
        if code == Some(0) { Ok(said) } else { Err(said + &error) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a command with `lines` as its input.
fn told(command: &mut Command, lines: &str) -> (Output, String, String) {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    // A session that ends early does not read all.
    let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said, error)
}

#[test]
fn files_go_both_ways_under_the_names_that_the_words_say() {
    let Some(place) = Place::new("both") else { return };
    fs::write(place.at("there/a"), random(1, 700_001)).unwrap();
    fs::write(place.at("there/a b"), "blank").unwrap();
    fs::write(place.at("there/q\"uo'te"), "quote").unwrap();
    fs::write(place.at("there/empty"), "").unwrap();
    fs::create_dir(place.at("here/dir")).unwrap();
    let lines = "get a\nget a copy\nget a dir\nget \"a b\" 'c d'\nget a\\ b e\nget q\\\"uo\\'te f\n\
                 get \"q\\\"uo'te\" g\nget empty\nget a* dir\nlcd dir\nget empty other\nlcd ..\n";
    place.batch(lines).unwrap();
    for name in ["a", "copy", "dir/a"] {
        assert!(fs::read(place.at("here").join(name)).unwrap() == random(1, 700_001), "{name}");
    }
    for (name, contents) in [("c d", "blank"), ("e", "blank"), ("f", "quote"), ("g", "quote")] {
        assert_eq!(place.read(&format!("here/{name}")), contents);
    }
    assert_eq!(place.read("here/dir/a b"), "blank");
    assert_eq!(place.read("here/dir/other") + &place.read("here/empty"), "");
    let lines = "mkdir dir\nput a up\nput a dir\ncd dir\nput \"c d\"\nput c* \ncd\nput -p e kept\n\
                 put empty\nput -f copy\n";
    fs::set_permissions(place.at("here/e"), fs::Permissions::from_mode(0o640)).unwrap();
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::options().append(true).open(place.at("here/e")).unwrap().set_modified(old).unwrap();
    place.batch(lines).unwrap();
    for name in ["up", "dir/a", "copy", "dir/copy"] {
        assert!(fs::read(place.at("there").join(name)).unwrap() == random(1, 700_001), "{name}");
    }
    assert_eq!(place.read("there/dir/c d") + &place.read("there/kept"), "blankblank");
    let kept = fs::metadata(place.at("there/kept")).unwrap();
    assert_eq!((kept.mtime(), kept.mode() & 0o777), (1_000_000_000, 0o640));
    place.batch("get -P kept\n").unwrap();
    let got = fs::metadata(place.at("here/kept")).unwrap();
    assert_eq!((got.mtime(), got.mode() & 0o777), (1_000_000_000, 0o640));
}

#[test]
fn trees_go_both_ways_and_links_in_them_are_left_out() {
    let Some(place) = Place::new("trees") else { return };
    fs::create_dir_all(place.at("there/t/deep/er")).unwrap();
    fs::create_dir_all(place.at("there/t/empty")).unwrap();
    for n in 0..20 {
        fs::write(place.at(&format!("there/t/deep/{n}")), random(n, n as usize * 999)).unwrap();
    }
    let odd = std::ffi::OsStr::from_bytes(b"not\xffutf8 \n*");
    fs::write(place.at("there/t/deep/er").join(odd), "x").unwrap();
    fs::set_permissions(place.at("there/t/empty"), fs::Permissions::from_mode(0o555)).unwrap();
    symlink("deep", place.at("there/t/link")).unwrap();
    let said = place.batch("get -r t\nget -Rp t/ again\nput -r t back\nput -rp t back\n").unwrap();
    assert!(
        said.contains(&format!("Retrieving {}", place.at("there/t/deep/er").display())),
        "{said}"
    );
    assert!(said.contains("Entering t/deep"), "{said}");
    fs::remove_file(place.at("there/t/link")).unwrap();
    let wanted = listing(&place.at("there/t"));
    assert_eq!(wanted.len(), 21);
    for copy in ["here/t", "here/again", "there/back", "there/back/t"] {
        let mut got = listing(&place.at(copy));
        got.retain(|(path, _)| !path.starts_with("t"));
        assert!(got == wanted, "{copy}");
        assert!(place.at(copy).join("empty").is_dir(), "{copy}");
    }
    let mode = |name: &str| fs::metadata(place.at(name)).unwrap().mode() & 0o777;
    assert_eq!(mode("here/again/empty"), 0o555);
    assert!(place.batch("get t x\n").is_err(), "a directory without -r");
    // The last part of "." and ".." names nothing new.
    place.batch("cd t\nlmkdir dot\nlcd dot\nget -R . \n").unwrap();
    assert!(listing(&place.at("here/dot")) == wanted);
}

#[test]
fn transfers_are_resumed_where_the_beginning_is_the_same() {
    let Some(place) = Place::new("resume") else { return };
    let whole = random(5, 3_000_000);
    for (name, length) in [
        ("there/a", 3_000_000),
        ("here/a", 1_234_567),
        ("here/b", 3_000_000),
        ("there/b", 1_234_567),
    ] {
        fs::write(place.at(name), &whole[..length]).unwrap();
    }
    let said = place.session(&["-b", "-", "-N"], "reget a\nreput b\nreget a\n");
    assert!(said.0.status.success(), "{}", said.2);
    assert!(
        said.1.contains("Resuming ") && said.1.contains("Resuming upload of b to "),
        "{}",
        said.1
    );
    assert!(fs::read(place.at("here/a")).unwrap() == whole);
    assert!(fs::read(place.at("there/b")).unwrap() == whole);
    for (name, change) in [("here/a", "get -a a"), ("there/b", "put -a b")] {
        let mut other = whole[..2_000_000].to_vec();
        other[1_999_990] ^= 1;
        fs::write(place.at(name), &other).unwrap();
        let error = place.batch(change).unwrap_err();
        assert!(error.contains("differs from the "), "{error}");
        assert!(fs::read(place.at(name)).unwrap() == other, "{name}");
    }
    fs::write(place.at("here/a"), [&whole[..], b"x"].concat()).unwrap();
    assert!(place.batch("reget a").unwrap_err().contains("local file is larger"));
    assert!(place.batch("reput a").is_ok(), "what is longer here is sent");
    assert!(place.batch("reput a").is_ok(), "all of it is there");
    fs::write(place.at("here/a"), &whole).unwrap();
    assert!(place.batch("reput a").unwrap_err().contains("larger"));
    place.batch("reput a new").unwrap();
    assert!(fs::read(place.at("there/new")).unwrap() == whole, "what is not there is sent whole");
}

#[test]
fn names_are_changed_on_the_server() {
    let Some(place) = Place::new("names") else { return };
    for name in ["a", "b", "c1", "c2", "x*y"] {
        fs::write(place.at("there").join(name), name).unwrap();
    }
    let lines = "rename a a2\nrename a2 b\nln -s b s\nsymlink nowhere n\nln b h\ncp b copied\n\
                 mkdir d\nmkdir d/e\nrmdir d/e\nrm c?\nrm \"x*y\"\nchmod 600 b\nlmkdir made\n-rmdir d\n";
    place.batch(lines).unwrap();
    assert_eq!(place.read("there/b"), "a");
    assert_eq!(fs::read_link(place.at("there/s")).unwrap(), Path::new("b"));
    assert_eq!(fs::read_link(place.at("there/n")).unwrap(), Path::new("nowhere"));
    // Its target cannot be listed.
    fs::remove_file(place.at("there/n")).unwrap();
    let meta = |name: &str| fs::metadata(place.at(name)).unwrap();
    assert_eq!(meta("there/h").ino(), meta("there/b").ino());
    assert_eq!(meta("there/b").mode() & 0o777, 0o600);
    assert_eq!(place.read("there/copied"), "a");
    assert!(place.at("here/made").is_dir() && !place.at("there/d").exists());
    let mut left: Vec<_> = listing(&place.at("there"))
        .into_iter()
        .map(|(name, _)| name.display().to_string())
        .collect();
    left.sort();
    assert_eq!(left, ["b", "copied", "h", "s"]);
    let (user, group) = (meta("there/b").uid(), meta("there/b").gid());
    place.batch(&format!("chown {user} b\nchgrp -h {group} s\n")).unwrap();
    assert!(place.batch("rename -l copied b").is_err(), "a plain rename does not replace");
}

#[test]
fn what_is_printed_is_what_scripts_know() {
    let Some(place) = Place::new("printed") else { return };
    fs::create_dir(place.at("there/dir")).unwrap();
    for (name, length) in [("a", 3), ("bb", 1), (".hidden", 2), ("dir/x", 4)] {
        fs::write(place.at("there").join(name), "x".repeat(length)).unwrap();
    }
    let there = place.at("there").display().to_string();
    let cases = [
        ("pwd", format!("Remote working directory: {there}\n")),
        ("lpwd", format!("Local working directory: {}\n", place.at("here").display())),
        ("ls -1", "a\nbb\ndir\n".to_owned()),
        ("ls -1a", ".\n..\n.hidden\na\nbb\ndir\n".to_owned()),
        ("ls -1S a bb", "a\n".to_owned()),
        ("ls -1 dir", "dir/x\n".to_owned()),
        ("ls -1 d*", "dir/x\n".to_owned()),
        ("ls -1r ?*", "dir/\nbb\na\n".to_owned()),
        ("ls -1 {bb,a}", "a\nbb\n".to_owned()),
        ("ls -1 {a,d{x,ir},no*}", "a\ndir/\n".to_owned()),
        ("ls -1 {dir}", "dir/x\n".to_owned()),
        (&format!("ls -1 {there}/dir"), format!("{there}/dir/x\n")),
        ("cd dir\n@ls -1", "x\n".to_owned()),
        ("version", "SFTP protocol version 3\n".to_owned()),
        ("lumask 22", "Local umask: 022\n".to_owned()),
        ("progress", "Progress meter enabled\n".to_owned()),
        ("!echo 'a  b' \"c\"", "a  b c\n".to_owned()),
        ("lls -d .", ".\n".to_owned()),
        ("# no command", String::new()),
    ];
    for (line, wanted) in cases {
        let said = place.batch(&format!("{line}\n")).unwrap();
        let printed: String =
            said.split_inclusive('\n').filter(|line| !line.starts_with("sftp> ")).collect();
        assert_eq!(printed, wanted, "{line}");
    }
    let columns = place.batch("ls\n").unwrap();
    assert_eq!(
        columns.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>(),
        ["a", "bb", "dir"]
    );
    let long = place.batch("ls -ln a\n").unwrap();
    assert!(
        long.contains("-rw-") && long.trim_end().ends_with(" a") && long.contains("   3 "),
        "{long}"
    );
    let space = place.batch("df -h\ndf -i\n").unwrap();
    assert!(space.contains("%Capacity") && space.contains("Inodes"), "{space}");
    assert!(place.batch("help\n").unwrap().contains("reput"));
}

#[test]
fn a_batch_ends_at_its_first_failure_and_a_pipe_goes_on() {
    let Some(place) = Place::new("failures") else { return };
    let bad = [
        "jaja",
        "get nothing",
        "get nothing*",
        "put nothing",
        "cd nowhere",
        "cd file",
        "lcd nowhere",
        "rm nothing",
        "mkdir file",
        "rmdir file",
        "rename nothing x",
        "ln nothing x",
        "chmod 600 nothing",
        "ls nothing",
        "get",
        "chmod 999 file",
        "get \"file",
        "get file file2 -x\nget -x file",
        "lmkdir /nowhere/x",
        "put file nowhere/x",
    ];
    fs::write(place.at("there/file"), "x").unwrap();
    fs::write(place.at("here/file"), "x").unwrap();
    fs::write(place.at("there/f1"), "x").unwrap();
    for line in bad.iter().copied().chain(["get f* file", "put /etc/host* file"]) {
        let after = "\nrename f1 f2\n";
        let failed = place.batch(&(line.to_owned() + after));
        assert!(failed.is_err() && place.at("there/f1").exists(), "{line}: {failed:?}");
        let ignored = place.batch(&format!("-{}{after}", line.replace('\n', "\n-")));
        assert!(ignored.is_ok() && place.at("there/f2").exists(), "{line}: {ignored:?}");
        place.batch("rename f2 f1\n").unwrap();
    }
    // So does a pattern at its first name, unless the line begins with a dash.
    for name in ["p1", "p3"] {
        fs::write(place.at("there").join(name), "x").unwrap();
    }
    fs::create_dir(place.at("there/p2")).unwrap();
    assert!(place.batch("rm p*\n").is_err());
    assert!(!place.at("there/p1").exists() && place.at("there/p3").exists());
    assert!(place.batch("-rm p*\n").is_ok() && !place.at("there/p3").exists());
    // From a pipe all of them fail, and the session has succeeded all the same.
    let all = bad.join("\n") + "\nrename f1 f2\nquit\njaja\n";
    let (output, said, error) = place.session(&[], &all);
    assert_eq!(output.status.code(), Some(0), "{error}");
    assert!(place.at("there/f2").exists() && said.contains("sftp> jaja\n"), "{said}");
    assert!(error.contains("Invalid command.") && error.starts_with("Attached to "), "{error}");
    let (output, ..) = place.session(&["--strict"], &all);
    assert_eq!(output.status.code(), Some(1));
    // A failure of a command of the shell is none of the session.
    assert!(place.batch("!exit 3\n").is_ok());
    let (output, ..) = place.session(&["-b", "/no/such/batch"], "");
    assert_eq!(output.status.code(), Some(255));
}

#[test]
fn odd_names_are_found_by_patterns_and_by_quotes() {
    let Some(place) = Place::new("patterns") else { return };
    let names = ["g-plain", "g-wild*", "g-wild?x", "g-wild[aa]", "g\"q", "g'q", "g\\s", "g b"];
    for name in names {
        fs::write(place.at("there").join(name), name).unwrap();
    }
    let cases: [(&str, &[&str]); 12] = [
        ("g-plain", &["g-plain"]),
        ("g-wild*", &["g-wild*", "g-wild?x", "g-wild[aa]"]),
        ("\"g-wild*\"", &["g-wild*"]),
        ("g-wild\\*", &["g-wild*"]),
        ("g-wild\\?x", &["g-wild?x"]),
        ("\"g-wild[aa]\"", &["g-wild[aa]"]),
        ("g-wild\\[aa\\]", &["g-wild[aa]"]),
        ("g\\\"q", &["g\"q"]),
        ("\"g'q\"", &["g'q"]),
        ("g\\\\s", &["g\\s"]),
        ("'g b'", &["g b"]),
        ("g?[qsb]", &["g b", "g\"q", "g'q", "g\\s"]),
    ];
    for (pattern, wanted) in cases {
        let said = place.batch(&format!("@ls -1 {pattern}\n")).unwrap_or_else(|error| error);
        assert_eq!(said.lines().collect::<Vec<_>>(), wanted, "{pattern}");
    }
}

#[test]
fn a_session_goes_over_the_transport_or_through_ssh() {
    let sshd = Sshd::with_lines("sftp-ways", "Subsystem sftp internal-sftp\n");
    fs::create_dir(sshd.at("dir")).unwrap();
    fs::write(sshd.at("dir/big"), random(2, 5_000_001)).unwrap();
    let far = sshd.far("dir");
    let lines = "get big got\nput got again\nls -1\n";
    // A server that admits nothing but its program, none, and hikyaku that is not there.
    for (name, options, words) in [
        ("native", &["--via", "native"][..], "dialling"),
        ("ssh", &["--via", "sftp"], ""),
        ("no-udp", &["--no-udp"], "by TCP"),
        ("fallback", &["--remote-path", "no-such"], "far has no hikyaku"),
    ] {
        let arguments = [options, &["-v", "-b", "-", "-N", &far][..]].concat();
        let (output, said, error) = told(&mut sshd.sftp(&arguments), lines);
        assert!(output.status.success(), "{name}: {error}\n{}", sshd.log());
        assert!(error.contains(words) && error.contains("Connected to far."), "{name}: {error}");
        assert!(said.ends_with("again\nbig\n"), "{name}: {said}");
        for copy in ["got", "dir/again"] {
            assert!(fs::read(sshd.at(copy)).unwrap() == random(2, 5_000_001), "{name}: {copy}");
            fs::remove_file(sshd.at(copy)).unwrap();
        }
    }
    let big = sshd.far("dir/big");
    let (output, ..) = told(&mut sshd.sftp(&[&big, "one"]), "");
    assert!(output.status.success() && fs::read(sshd.at("one")).unwrap() == random(2, 5_000_001));
    let uri = format!("sftp://far/{}", sshd.at("dir/none").display());
    let (output, _, error) = told(&mut sshd.sftp(&[&uri]), "");
    assert_eq!(output.status.code(), Some(2), "{error}");
    let (output, ..) = told(&mut sshd.sftp(&["broken"]), "");
    assert_eq!(output.status.code(), Some(5));
}
