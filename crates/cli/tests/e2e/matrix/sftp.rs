//! `hikyaku sftp` on every way: with hikyaku at the far side, by ssh's subsystem, and with a server on this machine.

use super::{Ends, log_in_once, noted, refused};
use crate::common::Sshd;
use hikyaku_console::{Row, Table, Way};
use hikyaku_shell::TABLE;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

const SERVER: &str = "/usr/lib/openssh/sftp-server";
const WAYS: [Way; 3] = [Way::Ssh, Way::Sftp, Way::Direct];

/// A machine that is reached by ssh, and directories of both ends: the session begins in them.
struct Rig {
    sshd: Sshd,
    dir: PathBuf,
}

impl Rig {
    fn new(name: &str) -> Option<Self> {
        if !Path::new(SERVER).exists() {
            println!("SKIPPED: no {SERVER}");
            return None;
        }
        let sshd = Sshd::with_lines(name, "Subsystem sftp internal-sftp\n");
        let dir = crate::common::scratch(&format!("{name}-ends"));
        fs::create_dir_all(&dir).unwrap();
        Some(Self { sshd, dir })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The command of a session, whose directory at the server is `far`, without its destination.
    fn command(&self, way: Way) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        let config = self.sshd.at("ssh_config").display().to_string();
        match way {
            Way::Ssh => command.args([
                "sftp",
                "-F",
                &config,
                "--via",
                "native",
                "--remote-path",
                env!("CARGO_BIN_EXE_hikyaku"),
            ]),
            Way::Sftp => command.args(["sftp", "-F", &config, "--via", "sftp"]),
            _ => command.args(["sftp", "-D", SERVER]),
        };
        command.env("XDG_STATE_HOME", self.at("state")).env("XDG_CONFIG_HOME", self.at("config"));
        command.current_dir(self.at("near"));
        command
    }

    /// Runs a session in `far`, which is given these lines.
    fn session(&self, way: Way, options: &[&str], lines: &str) -> (Output, String) {
        let mut command = self.command(way);
        command.args(options);
        if way != Way::Direct {
            command.arg("far");
        }
        given(&mut command, &format!("cd {}\n{lines}\n", self.at("far").display()))
    }

    /// `near` and `far` anew: one has `f` and `d/g`, and the other one a part of `f`, and another file.
    fn trees(&self, from: &str, to: &str) {
        for name in ["near", "far"] {
            let _ = fs::remove_dir_all(self.at(name));
            fs::create_dir_all(self.at(name)).unwrap();
        }
        fs::create_dir(self.at(from).join("d")).unwrap();
        fs::write(self.at(from).join("d/g"), "new").unwrap();
        let f = self.at(from).join("f");
        fs::write(&f, "whole").unwrap();
        fs::set_permissions(&f, fs::Permissions::from_mode(0o640)).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        fs::File::open(&f).unwrap().set_modified(time).unwrap();
        fs::write(self.at(to).join("part"), "who").unwrap();
        fs::write(self.at(to).join("bad"), "bad").unwrap();
        fs::write(self.at("commands"), "get f other\n").unwrap();
    }

    /// The files of a directory with what is in them, and whether a copy has the time of `f`.
    fn state(&self, name: &str) -> String {
        let root = self.at(name);
        let told = crate::common::listing(&root).into_iter().map(|(name, content)| {
            let time = fs::metadata(root.join(&name)).unwrap().modified().unwrap();
            let secs = time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
            let mark = if secs == 1_700_000_000 { ":t" } else { "" };
            format!("{}={}{mark}", name.display(), String::from_utf8_lossy(&content))
        });
        told.collect::<Vec<_>>().join(" ")
    }
}

/// Runs a command with `lines` as its input.
fn given(command: &mut Command, lines: &str) -> (Output, String) {
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    // A session that ends early does not read all.
    let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Ends for Rig {
    fn table(&self) -> &Table {
        &TABLE
    }

    fn fill(&self) {
        self.trees("near", "far");
    }

    fn made(&self) -> Vec<PathBuf> {
        Some(self.at("far/f")).into_iter().filter(|path| path.exists()).collect()
    }

    fn value(&self, row: &Row) -> &'static str {
        match row.id {
            "subsystem" => "sftp",
            "ssh_port" => "22",
            "identity" | "ssh_config" | "remote_path" => "list",
            "far_binary" => env!("CARGO_BIN_EXE_hikyaku"),
            "jump" => "hop",
            "ssh_option" => "LogLevel=ERROR",
            "ssh_program" => "ssh",
            "cipher_spec" => "aes128-ctr",
            "via" => "auto",
            "pipes" => "2",
            "udp_ports" => "60001-60999",
            "timeout" => "60s",
            _ => "",
        }
    }

    fn is_run(&self, row: &Row, _: Way) -> bool {
        // It is a way of its own.
        row.id != "direct"
    }

    fn has_end(&self, _: Way) -> bool {
        true
    }

    fn run(&self, way: Way, options: &[String]) -> (Output, String) {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        self.session(way, &[&["-b", "-"], &options[..]].concat(), "put f")
    }
}

#[test]
fn an_option_of_sftp_that_protects_something_is_refused_by_name_where_it_cannot_be_had() {
    let Some(rig) = Rig::new("matrix-sftp-refused") else { return };
    refused(&rig);
}

#[test]
fn any_other_option_of_sftp_without_effect_is_noted_in_one_line() {
    let Some(rig) = Rig::new("matrix-sftp-noted") else { return };
    noted(&rig);
}

/// What the other end has after a command of a batch with these options; `X` is `get` or `put`.
struct Case {
    options: &'static [&'static str],
    line: &'static str,
    state: &'static str,
    code: i32,
}

const fn case(
    options: &'static [&'static str],
    line: &'static str,
    state: &'static str,
    code: i32,
) -> Case {
    Case { options, line, state, code }
}

const CASES: &[Case] = &[
    case(&[], "X f", "bad=bad f=whole part=who", 0),
    case(&["-p"], "X f", "bad=bad f=whole:t part=who", 0),
    case(&[], "X -p f", "bad=bad f=whole:t part=who", 0),
    case(&[], "X -P f", "bad=bad f=whole:t part=who", 0),
    case(&[], "X d", "bad=bad part=who", 2),
    case(&["-r"], "X d", "bad=bad d/g=new part=who", 0),
    case(&[], "X -r d", "bad=bad d/g=new part=who", 0),
    case(&[], "X -R d", "bad=bad d/g=new part=who", 0),
    case(&[], "X f part", "bad=bad part=whole", 0),
    case(&["-a"], "X f part", "bad=bad part=whole", 0),
    case(&[], "X -a f part", "bad=bad part=whole", 0),
    case(&[], "reX f part", "bad=bad part=whole", 0),
    case(&[], "X f bad", "bad=whole part=who", 0),
    case(&["-a"], "X f bad", "bad=bad part=who", 2),
    case(&[], "X -a f bad", "bad=bad part=who", 2),
    case(&[], "reX f bad", "bad=bad part=who", 2),
    case(&["-f"], "X f", "bad=bad f=whole part=who", 0),
    case(&[], "X -f f", "bad=bad f=whole part=who", 0),
    case(&["-B", "2"], "X f", "bad=bad f=whole part=who", 0),
    case(&["-R", "1"], "X f", "bad=bad f=whole part=who", 0),
    case(&["-X", "nrequests=1"], "X f", "bad=bad f=whole part=who", 0),
];

#[test]
fn options_of_transfers_are_honoured_on_every_way_in_both_directions() {
    let Some(rig) = Rig::new("matrix-sftp-transfers") else { return };
    log_in_once(&rig.sshd);
    let directions = [("put", "near", "far"), ("get", "far", "near")];
    for (index, Case { options, line, state, code }) in CASES.iter().enumerate() {
        for way in WAYS {
            // By ssh they take turns: the commands are the same.
            let turn = (index + usize::from(way == Way::Sftp)) % 2;
            let done = if way == Way::Direct { &directions[..] } else { &directions[turn..=turn] };
            for (verb, from, to) in done {
                rig.trees(from, to);
                let line = line.replace('X', verb);
                let options = [&["-b", "-"], *options].concat();
                let (output, said) = rig.session(way, &options, &line);
                assert_eq!(output.status.code(), Some(*code), "{way:?} {options:?} {line}: {said}");
                assert_eq!(rig.state(to), *state, "{way:?} {options:?} {line}: {said}");
            }
        }
    }
}

#[test]
fn options_of_a_session_are_honoured_on_every_way() {
    let Some(rig) = Rig::new("matrix-sftp-session") else { return };
    for way in WAYS {
        // A failure ends a batch and a strict session, and no other one.
        for (options, code, is_copied) in
            [(&["-b", "-"][..], 2, false), (&["--strict"], 2, false), (&[], 0, true)]
        {
            rig.trees("near", "far");
            let (output, said) = rig.session(way, options, "put nothing\nput f");
            assert_eq!(output.status.code(), Some(code), "{way:?} {options:?}: {said}");
            assert_eq!(rig.at("far/f").exists(), is_copied, "{way:?} {options:?}");
        }
        if way == Way::Direct {
            continue;
        }
        // What cannot be, so that an option without effect would be seen: nothing is fetched then.
        for options in [
            &["-6"][..],
            &["-J", "nowhere.invalid"],
            &["-P", "1"],
            &["-S", "false"],
            &["-o", "HostName=nowhere.invalid"],
            &["-o", "BatchMode=yes", "-F", "/dev/null"],
            &["-c", "no-cipher"],
        ] {
            rig.trees("near", "far");
            let (output, said) = rig.session(way, options, "put f");
            assert_ne!(output.status.code(), Some(0), "{way:?} {options:?}: {said}");
            assert!(!rig.at("far/f").exists(), "{way:?} {options:?}: {said}");
        }
        rig.trees("near", "far");
        let (output, said) = rig.session(way, &["-4", "--no-udp", "-b", "-", "-v"], "put f");
        assert_eq!(output.status.code(), Some(0), "{way:?}: {said}");
        assert!(!said.contains(" by UDP"), "{way:?}: {said}");
    }
    let words = ["-b", "-", "-v", "--udp-ports", "61200-61240"];
    rig.trees("near", "far");
    let (output, said) = rig.session(Way::Ssh, &words, "put f");
    assert_eq!(output.status.code(), Some(0), "{said}");
    let port = said.split("and waiting at port ").nth(1).unwrap();
    let port: u16 = port[..5].parse().unwrap();
    assert!((61_200..=61_240).contains(&port), "{said}");
}

#[test]
fn a_limit_of_sftp_holds_on_every_way_in_both_directions() {
    let Some(rig) = Rig::new("matrix-sftp-limited") else { return };
    for way in WAYS {
        for (verb, from, to) in [("put", "near", "far"), ("get", "far", "near")] {
            rig.trees(from, to);
            fs::write(rig.at(from).join("large"), vec![7; 3_000_000]).unwrap();
            let begin = Instant::now();
            let options = ["-b", "-", "-l", "8m"];
            let (output, said) = rig.session(way, &options, &format!("{verb} large"));
            assert_eq!(output.status.code(), Some(0), "{way:?} {verb}: {said}");
            // Three seconds, less what may go at once.
            let took = begin.elapsed();
            assert!(took > Duration::from_secs(1), "{way:?} {verb}: {took:?}");
        }
    }
}

#[test]
fn what_the_destination_names_is_fetched_and_commands_are_never_left_out() {
    let Some(rig) = Rig::new("matrix-sftp-destination") else { return };
    for way in [Way::Ssh, Way::Sftp] {
        let fetch = |options: &[&str], path: &str, local: &[&str]| {
            rig.trees("far", "near");
            let mut command = rig.command(way);
            command.args(options).arg(format!("far:{}", rig.at("far").join(path).display()));
            given(command.args(local), "get f more\n")
        };
        // A directory is where a session begins, unless it is to have a name here.
        for (options, path, local, code, state) in [
            (&[][..], "f", &[][..], 0, "bad=bad f=whole part=who"),
            (&[], "f", &["g"], 0, "bad=bad g=whole part=who"),
            (&[], "", &[], 0, "bad=bad more=whole part=who"),
            (&["-r"], "d", &["e"], 0, "bad=bad e/g=new part=who"),
            (&[], "d", &["e"], 2, "bad=bad part=who"),
            (&["-b", "-"], "", &[], 0, "bad=bad more=whole part=who"),
            (&["-b", "-"], "f", &[], 1, "bad=bad part=who"),
            (&["-b", "../commands"], "", &[], 0, "bad=bad other=whole part=who"),
        ] {
            let (output, said) = fetch(options, path, local);
            let told = format!("{way:?} {options:?} {path} {local:?}: {said}");
            assert_eq!(output.status.code(), Some(code), "{told}");
            assert_eq!(rig.state("near"), state, "{told}");
            assert!(code != 1 || said.contains("\ntry: "), "{told}");
        }
    }
}

#[test]
fn files_are_synced_or_not_written() {
    let Some(rig) = Rig::new("matrix-sftp-synced") else { return };
    let session = |server: &str, line: &str| {
        rig.trees("near", "far");
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        command.args(["sftp", "-b", "-", "-D", server]).current_dir(rig.at("near"));
        command.env("XDG_STATE_HOME", rig.at("state"));
        given(&mut command, &format!("cd {}\n{line}\n", rig.at("far").display()))
    };
    let (output, said) = session(&format!("{SERVER} -e -l DEBUG3"), "put -f f");
    assert!(output.status.success() && said.contains("fsync"), "{said}");
    let (output, said) = session(&format!("{SERVER} -e -l DEBUG3"), "put f");
    assert!(output.status.success() && !said.contains("fsync"), "{said}");
    // A server that cannot do it.
    let (output, said) = session(&format!("{SERVER} -P fsync"), "put -f f");
    assert!(!output.status.success() && said.contains("without -f"), "{said}");
    assert!(!rig.at("far/f").exists());
    assert!(session(&format!("{SERVER} -P fsync"), "put f").0.status.success());
}

#[test]
fn a_destination_of_another_kind_is_refused_by_name() {
    let Some(rig) = Rig::new("matrix-sftp-other") else { return };
    rig.trees("near", "far");
    for end in [
        "http://h/x",
        "ftp://h/x",
        "gsiftp://h/x",
        "hikyaku://h/x",
        "gfarm:///x",
        "s3://b/x",
        "-",
        "/tmp",
    ] {
        let mut command = rig.command(Way::Sftp);
        let (output, said) = given(command.args(["-b", "-", end]), "pwd\n");
        assert_eq!(output.status.code(), Some(1), "{end}: {said}");
        assert!(said.contains(end.split(':').next().unwrap()) && said.contains("try: "), "{said}");
    }
}

/// A session with a host for which this is set.
fn with_settings(rig: &Rig, set: &str, options: &[&str], lines: &str) -> (Output, String) {
    fs::create_dir_all(rig.at("config/hikyaku")).unwrap();
    fs::write(rig.at("config/hikyaku/config.toml"), format!("[host.far]\n{set}\n")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
    command.env("XDG_STATE_HOME", rig.at("state")).env("XDG_CONFIG_HOME", rig.at("config"));
    command.current_dir(rig.at("near")).args(["sftp", "-v", "-F"]);
    command.arg(rig.sshd.at("ssh_config")).args(options).arg("far");
    given(&mut command, &format!("cd {}\n{lines}\n", rig.at("far").display()))
}

#[test]
fn what_is_set_for_a_host_counts_for_its_sessions() {
    let Some(rig) = Rig::new("matrix-sftp-settings") else { return };
    rig.trees("near", "far");
    let program = format!("remote-path = \"{}\"", env!("CARGO_BIN_EXE_hikyaku"));
    let native = ["--via", "native"];
    for (set, code, words) in [
        ("", 0, "by UDP"),
        ("udp = false", 0, "by TCP"),
        ("udp-ports = \"60501-60509\"", 0, ":6050"),
        ("cipher = \"aes128gcm\"\nudp = false", 0, "--cipher has no effect"),
        ("speed = 3", 6, "speed"),
    ] {
        let (output, said) = with_settings(&rig, &format!("{program}\n{set}"), &native, "pwd");
        assert_eq!(output.status.code(), Some(code), "{set}: {said}");
        assert!(said.contains(words), "{set}: {said}");
    }
    let elsewhere = "remote-path = \"/no/such/hikyaku\"";
    let (output, said) = with_settings(&rig, elsewhere, &native, "pwd");
    assert!(!output.status.success() && said.contains("/no/such/hikyaku"), "{said}");
    fs::write(rig.at("near/large"), vec![7; 3_000_000]).unwrap();
    for via in ["native", "sftp"] {
        let begin = Instant::now();
        let set = format!("{program}\nrate = \"8m\"");
        let (output, said) = with_settings(&rig, &set, &["--via", via], "put large");
        assert!(output.status.success(), "{via}: {said}");
        // Three seconds, less what may go at once.
        assert!(begin.elapsed() > Duration::from_secs(1), "{via} is too fast: {said}");
    }
}
