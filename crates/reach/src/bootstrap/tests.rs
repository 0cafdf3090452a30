//! Programs for far sides: which may be sent, and what becomes of them. A script stands for ssh, OpenSSH's `sftp-server`
//! is the server.

use super::*;
use crate::{Destination, Login, SftpServer, SshOptions};
use blake3::Hash;
use hikyaku_console::Scope;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory that is gone when the test is over.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hikyaku-boot-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("home")).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.at(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The headers of a program.
fn elf(machine: u8, kind: u8, segment: u8) -> Vec<u8> {
    let mut bytes = vec![0; 64 + 2 * 56];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    (bytes[16], bytes[18], bytes[32], bytes[54], bytes[56]) = (kind, machine, 64, 56, 2);
    (bytes[64], bytes[64 + 56]) = (1, segment);
    bytes
}

const INTERPRETER: u8 = 3;
const STACK: u8 = 4;

#[test]
fn programs_are_known_by_their_headers() {
    let scratch = Scratch::new("kinds");
    let big_endian = |mut bytes: Vec<u8>| {
        bytes[5] = 2;
        bytes
    };
    let ours = Architecture::X86_64;
    let cases = [
        ("static", elf(62, 3, STACK), Some((ours, Linkage::Static))),
        ("fixed", elf(62, 2, STACK), Some((ours, Linkage::Static))),
        ("dynamic", elf(62, 3, INTERPRETER), Some((ours, Linkage::Dynamic(None)))),
        ("arm", elf(183, 3, STACK), Some((Architecture::Aarch64, Linkage::Static))),
        ("object", elf(62, 1, STACK), None),
        ("vax", elf(75, 3, STACK), None),
        ("other-end", big_endian(elf(62, 3, STACK)), None),
        ("short-header", elf(62, 3, STACK)[..60].to_vec(), None),
        ("short-table", elf(62, 3, STACK)[..130].to_vec(), None),
        ("script", b"#!/bin/sh\n".repeat(20), None),
        ("empty", Vec::new(), None),
    ];
    for (name, bytes, wanted) in cases {
        fs::write(scratch.at(name), bytes).unwrap();
        let found = elf::kind(&fs::File::open(scratch.at(name)).unwrap()).unwrap();
        assert_eq!(found, wanted, "{name}");
        assert_eq!(Programs::named(&scratch.at(name)).is_ok(), wanted.is_some(), "{name}");
        assert_eq!(!Programs::beside(&scratch.at(name)).is_empty(), wanted.is_some(), "{name}");
    }
    assert!(matches!(Programs::named(&scratch.at("none")), Err(NoPrograms::Read { .. })));
    assert!(matches!(Programs::named(&scratch.0), Err(NoPrograms::Other(_))));
}

#[test]
fn programs_for_other_processors_are_installed_beside() {
    let scratch = Scratch::new("beside");
    let shared = scratch.at("share/hikyaku/far");
    for (name, bytes) in [
        ("aarch64", elf(183, 3, STACK)),
        // These are not what their directories say.
        ("riscv64", elf(62, 3, STACK)),
        ("x86_64", elf(62, 3, INTERPRETER)),
    ] {
        fs::create_dir_all(shared.join(name)).unwrap();
        fs::write(shared.join(name).join("hikyaku"), bytes).unwrap();
    }
    fs::create_dir(scratch.at("bin")).unwrap();
    fs::write(scratch.at("bin/hikyaku"), elf(62, 3, INTERPRETER)).unwrap();
    // A link to the program is the program.
    std::os::unix::fs::symlink(scratch.at("bin/hikyaku"), scratch.at("hscp")).unwrap();
    for own in ["bin/hikyaku", "hscp"] {
        let programs = Programs::beside(&scratch.at(own));
        let found = Architecture::ALL.map(|of| programs.of(of).map(|found| found.path.clone()));
        let own_path = scratch.at("bin/hikyaku").canonicalize().unwrap();
        assert_eq!(found, [Some(own_path), Some(shared.join("aarch64/hikyaku")), None], "{own}");
    }
    // A static one for the own processor is better than a dynamic program, and its own static program is the best.
    fs::write(shared.join("x86_64/hikyaku"), elf(62, 2, STACK)).unwrap();
    for (own, best) in
        [(INTERPRETER, shared.join("x86_64/hikyaku")), (STACK, scratch.at("bin/hikyaku"))]
    {
        fs::write(scratch.at("bin/hikyaku"), elf(62, 3, own)).unwrap();
        let programs = Programs::beside(&scratch.at("bin/hikyaku"));
        let found = programs.of(Architecture::X86_64).unwrap();
        assert_eq!(found.path, best.canonicalize().unwrap());
    }
}

#[test]
fn a_machine_is_known_by_what_it_says() {
    let cases: [(&[u8], Result<Architecture, &str>); 8] = [
        (b"Linux x86_64\n", Ok(Architecture::X86_64)),
        (b"Welcome!\r\nLinux aarch64\r\n", Ok(Architecture::Aarch64)),
        (b"Linux riscv64\nbye\n", Ok(Architecture::Riscv64)),
        (b"Linux i686\n", Err("Linux i686")),
        (b"Darwin arm64\n\n", Err("Darwin arm64")),
        (b"", Err("")),
        (b"\x1b]0;pwned\x07\xff\n", Err("\\u{1b}]0;pwned\\u{7}\u{fffd}")),
        (b"Linux x86_64\x1b[2J\n", Err("Linux x86_64\\u{1b}[2J")),
    ];
    for (said, wanted) in cases {
        assert_eq!(system(said), wanted.map_err(str::to_owned));
    }
    assert!(system(&b"x".repeat(100_000)).unwrap_err().len() <= 60);
}

#[test]
fn a_program_is_known_by_its_line() {
    let hash = blake3::hash(b"it");
    assert_eq!(identified(format!("motd\r\n{}bye\n", identity(&hash)).as_bytes()), Some(hash));
    for none in ["", "hikyaku-program 1 xyz\n", "hikyaku-program\n", "program 1 00\n"] {
        assert_eq!(identified(none.as_bytes()), None, "{none}");
    }
}

#[test]
fn a_clear_answer_is_needed_and_always_is_remembered() {
    for (line, wanted) in [
        ("y\n", Answer::Yes),
        (" YES ", Answer::Yes),
        ("always\n", Answer::Always),
        ("a", Answer::Always),
        ("", Answer::No),
        ("\n", Answer::No),
        ("yesterday", Answer::No),
    ] {
        assert_eq!(Answer::of(line), wanted, "{line}");
    }
    let scratch = Scratch::new("hosts");
    let hosts = Hosts::at(scratch.at("state/hosts"));
    assert!(!hosts.has("far"));
    hosts.forget("far").unwrap();
    for host in ["far", "me@far", "far"] {
        hosts.add(host).unwrap();
    }
    assert_eq!(fs::read_to_string(scratch.at("state/hosts")).unwrap(), "far\nme@far\n");
    hosts.forget("far").unwrap();
    assert!(!hosts.has("far") && hosts.has("me@far") && !hosts.has("me"));
}

/// Where OpenSSH has its server.
const SERVERS: [&str; 3] = [
    "/usr/lib/openssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/lib/ssh/sftp-server",
];

/// A far side on this machine, with this login shell, whose `uname` and `getconf` are these commands of sh; `None` where there
/// is no SFTP server.
fn far(scratch: &Scratch, shell: &str, (uname, getconf): (&str, &str)) -> Option<SshOptions> {
    let server = SERVERS.iter().find(|path| Path::new(path).exists());
    let Some(server) = server else {
        eprintln!("\n*** SKIPPED for want of sftp-server ***\n");
        return None;
    };
    fs::create_dir_all(scratch.at("bin")).unwrap();
    scratch.script("bin/uname", uname);
    scratch.script("bin/getconf", getconf);
    let [home, bin] = ["home", "bin"].map(|name| scratch.at(name).display().to_string());
    let text = format!(
        "[ \"$1\" = -G ] && exit 0\nfor last; do :; done\nHOME={home}; PATH={bin}:$PATH; export HOME PATH; \
         cd {home}\ncase \"$last\" in sftp) exec {server};; *) exec {shell} -c \"$last\";; esac"
    );
    let program = Some(scratch.script("ssh", &text).into_os_string());
    Some(SshOptions { program, ..SshOptions::default() })
}

/// What a far side is, and what is sent there.
struct Case<'a> {
    shell: &'a str,
    uname: &'a str,
    getconf: &'a str,
    /// The script that is sent as the program.
    program: &'a str,
    linkage: Linkage,
    place: Place,
}

/// Sends the program. Gives what came of it, and its hash.
fn installed(
    scratch: &Scratch,
    case: &Case<'_>,
) -> Option<(Result<Installed, NotInstalled>, Hash)> {
    let ssh = far(scratch, case.shell, (case.uname, case.getconf))?;
    let login = Destination::parse(b"far").unwrap();
    let scope = Scope::default();
    let server = SftpServer::open(&ssh, &login, Login::Shared, &scope).unwrap();
    let path = scratch.script("program", case.program);
    let bytes = fs::read(&path).unwrap();
    let (size, hash) = (bytes.len() as u64, blake3::hash(&bytes));
    let (architecture, linkage) = (Architecture::X86_64, case.linkage);
    let programs = Programs::for_test(Program { path, architecture, linkage, size });
    let ssh = server.ssh(&ssh);
    assert!(ssh.login.is_some(), "{ssh:?}");
    let sending = |sent, all| assert!(sent <= size && all == size);
    let (login, programs, scope) = (&login, &programs, &scope);
    let install =
        Install { ssh: &ssh, login, programs, place: &case.place, scope, sending: &sending };
    Some((install.run(server.client()), hash))
}

/// A program that tells its hash: it is the name of its directory.
const HONEST: &str = "echo hikyaku-program 1 \"$(basename \"$(dirname \"$0\")\")\"";
const UNAME: &str = "echo Linux x86_64";
const SOUND: Case<'_> = Case {
    shell: "sh",
    uname: UNAME,
    getconf: "echo glibc 2.28",
    program: HONEST,
    linkage: Linkage::Static,
    place: Place::Cache,
};

/// What is in the directory of programs.
fn names(scratch: &Scratch) -> Vec<String> {
    let entries = fs::read_dir(scratch.at("home/.cache/hikyaku/bin"));
    let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_program_is_sent_once_and_old_versions_go() {
    let scratch = Scratch::new("sent");
    let Some((first, hash)) = installed(&scratch, &SOUND) else { return };
    let first = first.unwrap();
    let below = format!(".cache/hikyaku/bin/{hash}/hikyaku");
    assert_eq!((&first.path, first.was), (&format!("~/{below}"), Was::Sent));
    let there = scratch.at("home").join(&below);
    assert_eq!(fs::metadata(&there).unwrap().permissions().mode() & 0o7777, 0o700);
    assert_eq!(fs::read(&there).unwrap(), fs::read(scratch.at("program")).unwrap());
    assert_eq!(fs::read_dir(there.parent().unwrap()).unwrap().count(), 1, "a draft is left");
    let (again, _) = installed(&scratch, &SOUND).unwrap();
    assert_eq!(again.unwrap(), Installed { was: Was::There, ..first });
    // One of another size is not that program.
    fs::write(&there, "cut").unwrap();
    let (repaired, _) = installed(&scratch, &SOUND).unwrap();
    assert_eq!(repaired.unwrap().was, Was::Sent);
    // Older ones, one that is under way, and what is not ours.
    let mut kept = vec!["not-ours".to_owned(), blake3::hash(b"part").to_hex().to_string()];
    for name in &kept {
        fs::create_dir(scratch.at("home/.cache/hikyaku/bin").join(name)).unwrap();
    }
    for age in 1..5_u64 {
        let name = blake3::hash(&age.to_le_bytes()).to_hex().to_string();
        let dir = scratch.at("home/.cache/hikyaku/bin").join(&name);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("hikyaku"), "old").unwrap();
        let time = std::time::SystemTime::now() - std::time::Duration::from_secs(age * 1000);
        fs::File::options()
            .write(true)
            .open(dir.join("hikyaku"))
            .unwrap()
            .set_times(fs::FileTimes::new().set_modified(time))
            .unwrap();
        if age < 2 {
            kept.push(name);
        }
    }
    let (newer, newer_hash) =
        installed(&scratch, &Case { program: &format!("{HONEST} # newer"), ..SOUND }).unwrap();
    assert_eq!(newer.unwrap().was, Was::Sent);
    kept.extend([hash, newer_hash].map(|hash| hash.to_hex().to_string()));
    kept.sort();
    assert_eq!(names(&scratch), kept);
    // They can be listed and removed.
    let ssh = far(&scratch, "sh", (UNAME, "")).unwrap();
    let login = Destination::parse(b"far").unwrap();
    let server = SftpServer::open(&ssh, &login, Login::Alone, &Scope::default()).unwrap();
    let all = sent(server.client()).unwrap();
    assert_eq!(all.iter().filter(|sent| sent.size.is_some()).count(), KEPT_VERSIONS);
    assert_eq!(all.len(), KEPT_VERSIONS + 1);
    all.iter().for_each(|old| remove(server.client(), &old.hash).unwrap());
    assert_eq!(names(&scratch), ["not-ours"]);
}

#[test]
fn a_program_in_a_folder_that_others_may_write_to_is_not_believed() {
    for open in ["home/.cache", "home/.cache/hikyaku", "home/.cache/hikyaku/bin"] {
        let scratch = Scratch::new("open");
        let Some((first, hash)) = installed(&scratch, &SOUND) else { return };
        assert_eq!(first.unwrap().was, Was::Sent);
        let there = scratch.at("home").join(format!(".cache/hikyaku/bin/{hash}/hikyaku"));
        // Another program of the same size, as anybody may have put it there.
        let planted = "x".repeat(fs::metadata(&there).unwrap().len() as usize);
        fs::write(&there, planted).unwrap();
        fs::set_permissions(scratch.at(open), fs::Permissions::from_mode(0o777)).unwrap();
        let (again, _) = installed(&scratch, &SOUND).unwrap();
        assert_eq!(again.unwrap().was, Was::Sent, "{open}");
        assert_eq!(fs::read(&there).unwrap(), fs::read(scratch.at("program")).unwrap());
        let mode = fs::metadata(scratch.at(open)).unwrap().permissions().mode();
        assert_eq!(mode & 0o022, 0, "{open}");
    }
}

#[test]
fn any_login_shell_runs_what_was_sent() {
    for shell in ["bash", "dash", "zsh", "mksh", "ksh93", "csh", "tcsh", "fish", "busybox sh"] {
        let program = Path::new("/bin").join(shell.split(' ').next().unwrap());
        if !program.exists() {
            eprintln!("\n*** SKIPPED for want of {shell} ***\n");
            continue;
        }
        let scratch = Scratch::new("shells");
        let Some((result, _)) = installed(&scratch, &Case { shell, ..SOUND }) else { return };
        assert!(result.is_ok(), "{shell}: {result:?}");
    }
}

#[test]
fn what_does_not_run_is_removed() {
    let other = format!("echo hikyaku-program 1 {}", blake3::hash(b"other"));
    for (text, wanted) in [
        ("exit 126", "does not run a program at ~/.cache/hikyaku/bin (exit code 126)"),
        ("echo hikyaku 1", "does not run a program at ~/.cache/hikyaku/bin (exit code 0)"),
        (other.as_str(), "what far runs is not what was sent to it"),
        ("head -c 10000000 /dev/zero", "the answer is longer than 64 KiB"),
    ] {
        let scratch = Scratch::new("broken");
        let Some((result, _)) = installed(&scratch, &Case { program: text, ..SOUND }) else {
            return;
        };
        let error = result.unwrap_err().to_string();
        assert!(error.contains(wanted), "{text}: {error}");
        assert_eq!(names(&scratch), [""; 0], "{text}");
    }
}

#[test]
fn nothing_is_sent_to_a_machine_that_cannot_run_it() {
    for (uname, wanted) in [
        ("echo Linux aarch64", "a Linux on aarch64, for which this host has no program"),
        ("echo Darwin arm64", "says that it is 'Darwin arm64'"),
        ("printf '\\033]0;x\\007\\n'", "says that it is '\\u{1b}]0;x\\u{7}'"),
        ("head -c 10000000 /dev/zero", "the answer is longer than 64 KiB"),
        ("exec yes", "the answer is longer than 64 KiB"),
        ("exit 1", "says that it is ''"),
    ] {
        let scratch = Scratch::new("unknown");
        let Some((result, _)) = installed(&scratch, &Case { uname, ..SOUND }) else { return };
        let error = result.unwrap_err().to_string();
        assert!(error.contains(wanted), "{uname}: {error}");
        assert!(!error.contains(char::is_control), "{error}");
        assert!(!scratch.at("home/.cache").exists(), "{uname}");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let scratch = Scratch::new("no-place");
    fs::write(scratch.at("home/.cache"), "a file").unwrap();
    let Some((result, _)) = installed(&scratch, &SOUND) else { return };
    let error = result.unwrap_err().to_string();
    assert!(error.starts_with("hikyaku was not sent to far: cannot make ~/.cache"), "{error}");
}

#[test]
fn a_dynamic_program_is_sent_where_the_c_library_is_new_enough() {
    let needs =
        |text: &str| Linkage::Dynamic(Version::answered(format!("glibc {text}").as_bytes()));
    let old = "far: needs a static hikyaku: its C library is 2.28, this program needs 2.34";
    let cases = [
        ("echo glibc 2.34", needs("2.34"), None),
        ("echo Welcome; echo glibc 2.39", needs("2.34"), None),
        ("echo glibc 3.1", needs("2.34"), None),
        ("echo glibc 2.28", needs("2.34"), Some(old)),
        // No number is a fraction: 2.4 is before 2.34.
        ("echo glibc 2.4", needs("2.34"), Some("its C library is 2.4, this program needs 2.34")),
        ("echo undefined", needs("2.34"), Some("its C library is not that of GNU")),
        ("exit 127", needs("2.34"), Some("its C library is not that of GNU")),
        // Built for another library: whether it starts shows when it is run.
        ("exit 127", Linkage::Dynamic(None), None),
    ];
    for (getconf, linkage, wanted) in cases {
        let scratch = Scratch::new("libc");
        let Some((result, _)) = installed(&scratch, &Case { getconf, linkage, ..SOUND }) else {
            return;
        };
        match (result, wanted) {
            (Ok(installed), None) => assert_eq!(installed.was, Was::Sent, "{getconf}"),
            (Err(error), Some(wanted)) => {
                assert!(error.to_string().contains(wanted), "{getconf}: {error}");
                let remedy = error.remedy().unwrap();
                assert_eq!(remedy, "try: cargo xtask install, or --far-binary FILE");
                assert!(!scratch.at("home/.cache").exists(), "{getconf}");
            }
            (result, _) => panic!("{getconf}: {result:?}"),
        }
    }
}

#[test]
fn the_version_that_this_program_needs_is_read() {
    let own = fs::File::open(std::env::current_exe().unwrap()).unwrap();
    let Some((_, Linkage::Dynamic(Some(needs)))) = elf::kind(&own).unwrap() else {
        return eprintln!("\n*** SKIPPED for want of a test program that needs glibc ***\n");
    };
    let text = Command::new("getconf").arg("GNU_LIBC_VERSION").output().unwrap().stdout;
    let has = Version::answered(&text).unwrap();
    let first = Version::answered(b"glibc 2.2").unwrap();
    // It runs here, and every program for this processor names a version of its first library or a later one.
    assert!(needs > first && needs <= has, "{needs} {has}");
    // A table of versions that ends too early, or whose numbers lead out of the file, has none.
    let bytes = fs::read(std::env::current_exe().unwrap()).unwrap();
    let scratch = Scratch::new("needs");
    let sections = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    for change in 0..8_usize {
        let mut broken = bytes.clone();
        match change {
            0 => broken.truncate(sections),
            1 => broken[40..48].fill(0xff),
            2 => broken[60..62].fill(0xff),
            _ => {
                broken[sections..].iter_mut().skip(change).step_by(8).for_each(|byte| *byte = 0xff)
            }
        }
        fs::write(scratch.at("broken"), broken).unwrap();
        let found = elf::kind(&fs::File::open(scratch.at("broken")).unwrap()).unwrap();
        assert_eq!(found.map(|(_, linkage)| linkage), Some(Linkage::Dynamic(None)), "{change}");
    }
}

#[test]
fn versions_are_those_of_the_gnu_library() {
    for (name, wanted) in [
        ("GLIBC_2.34", Some("2.34")),
        ("GLIBC_2.2.5", Some("2.2")),
        ("GLIBC_ABI_DT_RELR", Some("2.36")),
        ("GLIBC_PRIVATE", None),
        ("GCC_3.0", None),
        ("GLIBC_", None),
    ] {
        let found = Version::of_symbol(name.as_bytes()).map(|version| version.to_string());
        assert_eq!(found.as_deref(), wanted, "{name}");
    }
}

#[test]
fn a_program_goes_to_a_path_and_is_there_the_second_time() {
    let scratch = Scratch::new("path");
    fs::create_dir_all(scratch.at("home/.local/bin")).unwrap();
    let place = || Place::at("~/.local/bin/hikyaku").unwrap();
    let there = scratch.at("home/.local/bin/hikyaku");
    // It prints the hash that it finds beside it.
    let honest = "echo hikyaku-program 1 \"$(cat ~/hash)\"";
    let program = format!("#!/bin/sh\n{honest}\n");
    let hash = blake3::hash(program.as_bytes());
    fs::write(scratch.at("home/hash"), hash.to_string()).unwrap();
    let case = || Case { program: honest, place: place(), ..SOUND };
    let Some((first, _)) = installed(&scratch, &case()) else { return };
    let first = first.unwrap();
    assert_eq!((first.path.as_str(), first.was), ("~/.local/bin/hikyaku", Was::Sent));
    assert_eq!(fs::metadata(&there).unwrap().permissions().mode() & 0o7777, 0o755);
    let (again, _) = installed(&scratch, &case()).unwrap();
    assert_eq!(again.unwrap().was, Was::There);
    // One that does not start replaces nothing, and nothing of it stays.
    let broken = Case { program: "exit 1", place: place(), ..SOUND };
    let (result, _) = installed(&scratch, &broken).unwrap();
    let error = result.unwrap_err().to_string();
    assert_eq!(error, "far does not run a program at ~/.local/bin/hikyaku (exit code 1)");
    assert_eq!(fs::read(&there).unwrap(), program.as_bytes());
    assert_eq!(fs::read_dir(scratch.at("home/.local/bin")).unwrap().count(), 1);
    // The directories are made.
    let deep = Case { place: Place::at("opt/a/hikyaku").unwrap(), ..case() };
    let (made, _) = installed(&scratch, &deep).unwrap();
    assert_eq!(made.unwrap().path, "~/opt/a/hikyaku");
    assert!(scratch.at("home/opt/a/hikyaku").exists());
    for bad in ["", "~", "~/", "~other/hikyaku", "a b", "bin/", "/", "..", "$HOME/x", "-x"] {
        assert!(Place::at(bad).is_err(), "{bad}");
    }
}
