//! What `ssh` is told, and what shells make of it.

use super::*;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn destination() -> Destination {
    Destination { user: None, host: "host".into(), port: None }
}

fn words(options: &SshOptions, destination: &Destination) -> Vec<String> {
    let words = options.command(destination, (None, &[]), Form::Searched).unwrap();
    words.into_iter().map(|word| word.into_string().unwrap()).collect()
}

#[test]
fn scps_flags_reach_ssh_before_ours() {
    let options = SshOptions {
        family: Some(Family::V6),
        batch: true,
        verbose: 2,
        identities: vec!["key".into()],
        jump: Some("gate".into()),
        options: vec!["ForwardAgent=yes".into(), "RemoteCommand=tmux".into()],
        port: Some(2222),
        ..SshOptions::default()
    };
    let words = words(&options, &Destination { user: Some("me".into()), ..destination() });
    let line = words.join(" ");
    assert!(line.contains(" -6 -oBatchMode=yes -v -J gate -i key -o ForwardAgent=yes "), "{line}");
    assert!(line.contains(" -p 2222 -l me -- host sh -c '"), "{line}");
    let theirs = line.find("ForwardAgent=yes").unwrap();
    assert!(theirs < line.find("ForwardAgent=no").unwrap(), "the first wins");
    let theirs = line.find("RemoteCommand=tmux").unwrap();
    assert!(line.find("RemoteCommand=none").unwrap() < theirs, "the first wins");
}

#[test]
fn what_a_user_may_try_is_the_whole_command() {
    let options = SshOptions {
        family: Some(Family::V4),
        batch: true,
        verbose: 3,
        config: Some("my config".into()),
        identities: vec!["key".into()],
        jump: Some("gate".into()),
        options: vec!["User=it's".into()],
        port: Some(2222),
        ..SshOptions::default()
    };
    let line = options.by_hand(&Destination { user: Some("dom\\me".into()), ..destination() });
    let wanted =
        "ssh -4 -F 'my config' -J gate -i key -o 'User=it'\\''s' -p 2222 -l 'dom\\me' host";
    assert_eq!(line, wanted);
}

#[test]
fn a_silence_of_a_session_by_sftp_is_noticed_by_ssh() {
    let line = |silence: Option<u64>, options: &[&str]| {
        let silence = silence.map(Duration::from_secs);
        let options = options.iter().map(OsString::from).collect();
        let options = SshOptions { silence, options, ..SshOptions::default() };
        let words = options.sftp(&destination());
        words.join(OsStr::new(" ")).into_string().unwrap()
    };
    assert!(!line(None, &[]).contains("ServerAlive"));
    let own = "-oServerAliveInterval=20 -oServerAliveCountMax=2 -s -- host sftp";
    assert!(line(Some(60), &[]).ends_with(own), "{}", line(Some(60), &[]));
    assert!(line(Some(5), &[]).contains("Interval=2 "));
    let theirs = line(Some(60), &["ServerAliveInterval=7"]);
    assert!(theirs.find("Interval=7") < theirs.find("Interval=20"), "the first wins: {theirs}");
}

#[test]
fn the_hosts_own_port_goes_before_the_flag() {
    let options = SshOptions { port: Some(22), ..SshOptions::default() };
    let words = words(&options, &Destination { port: Some(2022), ..destination() });
    assert!(words.join(" ").contains("-p 2022"));
}

#[test]
fn the_command_there_is_one_quoted_word() {
    let words = words(&SshOptions::default(), &destination());
    assert_eq!(words.last().unwrap().matches('\'').count(), 2);
}

#[test]
fn no_path_of_the_far_side_says_anything_to_a_shell() {
    let options = SshOptions::default();
    for hostile in ["", "a b", "$(x)", "a;b", "'", "`x`", "-x", "a\nb", "a|b", "ü"] {
        assert!(
            options.command(&destination(), (Some(hostile), &[]), Form::Searched).is_err(),
            "{hostile}"
        );
    }
    for good in ["hikyaku", "/opt/hikyaku-1.0/bin/hikyaku", "~/bin/hikyaku"] {
        let words = options.command(&destination(), (Some(good), &[]), Form::Searched).unwrap();
        assert!(words.last().unwrap().to_str().unwrap().contains(good));
    }
}

/// Login shells of this machine, with what makes them run a command as sshd has them run it.
fn shells() -> Vec<Vec<&'static str>> {
    let all = [
        "sh",
        "bash",
        "rbash",
        "dash",
        "zsh",
        "rzsh",
        "ksh93",
        "rksh93",
        "mksh",
        "csh",
        "tcsh",
        "fish",
        "busybox sh",
    ];
    let (there, absent): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|shell| find(shell.split(' ').next().unwrap()).is_some());
    if !absent.is_empty() {
        eprintln!("\n*** SKIPPED for want of {} ***\n", absent.join(", "));
    }
    there.into_iter().map(|shell| shell.split(' ').collect()).collect()
}

fn find(name: &str) -> Option<PathBuf> {
    ["/bin", "/usr/bin"].iter().map(|dir| Path::new(dir).join(name)).find(|path| path.exists())
}

/// A home directory with a program that says how it was called.
struct Home(PathBuf);

impl Home {
    fn new(name: &str, place: &str) -> Self {
        let home = std::env::temp_dir().join(format!("hikyaku-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(home.join(place)).unwrap();
        let program = home.join(place).join("hikyaku");
        fs::write(&program, "#!/bin/sh\necho \"started $*\"\nexit 33\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self(home)
    }

    /// Exit code and words of a shell that is given `script` by sshd.
    fn run(&self, shell: &[&str], script: &str, path: &str) -> (Option<i32>, String) {
        let mut command = Command::new(find(shell[0]).unwrap());
        command.args(&shell[1..]).args(["-c", script]).env_clear();
        command.env("HOME", &self.0).env("PATH", path).stdin(Stdio::null());
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const PATH: &str = "/usr/bin:/bin";

#[test]
fn every_login_shell_starts_it() {
    for place in [".local/bin", ".cargo/bin"] {
        let home = Home::new("shells", place);
        let script = script((None, &[]), Form::Searched, "serve --stdio").unwrap();
        for shell in shells() {
            let (code, said) = home.run(&shell, &script, PATH);
            assert_eq!((code, said.trim()), (Some(33), "started serve --stdio"), "{shell:?}");
        }
    }
}

#[test]
fn every_login_shell_starts_a_program_that_was_sent() {
    let sent = ["no/such/hikyaku", "sent/hikyaku"].map(str::to_owned);
    let script = |path| script((path, &sent), Form::Searched, "serve --stdio").unwrap();
    let home = Home::new("shells-sent", "sent");
    for shell in shells() {
        for path in [None, Some("/no/such"), Some("~/no-such")] {
            let (code, said) = home.run(&shell, &script(path), PATH);
            assert_eq!((code, said.trim()), (Some(33), "started serve --stdio"), "{shell:?}");
        }
    }
    // What is installed comes first.
    fs::create_dir_all(home.0.join(".local/bin")).unwrap();
    symlink("/bin/true", home.0.join(".local/bin/hikyaku")).unwrap();
    let none = Home::new("shells-sent-none", "elsewhere");
    for shell in shells() {
        assert_eq!(home.run(&shell, &script(None), PATH).0, Some(0), "{shell:?}");
        assert_eq!(none.run(&shell, &script(None), PATH).0, Some(NOT_THERE), "{shell:?}");
    }
}

#[test]
fn every_login_shell_says_that_it_is_not_there() {
    let home = Home::new("shells-none", "elsewhere");
    let script = script((None, &[]), Form::Searched, "serve --stdio").unwrap();
    for shell in shells() {
        assert_eq!(home.run(&shell, &script, PATH).0, Some(NOT_THERE), "{shell:?}");
    }
}

#[test]
fn a_restricted_shell_without_sh_starts_it_by_its_name() {
    let home = Home::new("shells-strict", "bin");
    let path = home.0.join("bin").display().to_string();
    let [searched, bare] = [Form::Searched, Form::Bare]
        .map(|form| script((None, &[]), form, "serve --stdio").unwrap());
    for shell in
        shells().into_iter().filter(|shell| ["rbash", "rzsh", "rksh93"].contains(&shell[0]))
    {
        assert_eq!(home.run(&shell, &searched, &path).0, Some(NO_SH), "{shell:?}");
        let (code, said) = home.run(&shell, &bare, &path);
        assert_eq!((code, said.trim()), (Some(33), "started serve --stdio"), "{shell:?}");
    }
}

#[test]
fn the_subsystem_is_asked_for_with_the_same_login() {
    let options = SshOptions { port: Some(2222), batch: true, ..SshOptions::default() };
    let words = options.sftp(&Destination { user: Some("me".into()), ..destination() });
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let line = words.join(" ");
    assert!(line.ends_with(" -p 2222 -l me -s -- host sftp"), "{line}");
    assert!(line.contains(" -oBatchMode=yes "), "{line}");
}
