//! `--bootstrap` and `hikyaku far install`: a far side without hikyaku gets one, with a real ssh and OpenSSH's server.

use crate::common::{Sshd, random, wait_until};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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

/// A small copy of this program, which is dynamic.
fn program(sshd: &Sshd) -> String {
    let (from, to) = (env!("CARGO_BIN_EXE_hikyaku"), sshd.at("far-hikyaku"));
    // Without what debuggers read it is a tenth.
    let strip = Command::new("strip").args(["-o".as_ref(), to.as_os_str(), from.as_ref()]).status();
    if !strip.is_ok_and(|status| status.success()) {
        fs::copy(from, &to).unwrap();
    }
    to.display().to_string()
}

/// The number of logins.
fn logins(sshd: &Sshd) -> usize {
    sshd.log().matches("Accepted publickey").count()
}

/// Programs that were sent to the far side, with their modes.
fn programs(sshd: &Sshd) -> Vec<(PathBuf, u32)> {
    let bin = sshd.at("home/.cache/hikyaku/bin");
    let entries = fs::read_dir(bin).into_iter().flatten().flatten();
    let programs = entries.map(|entry| entry.path().join("hikyaku")).filter(|path| path.exists());
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    programs.map(|path| (path.clone(), mode(&path))).collect()
}

#[test]
fn a_far_side_without_hikyaku_gets_it_once() {
    let sshd = Sshd::with_home("boot");
    fs::write(sshd.at("a"), random(7, 300_000)).unwrap();
    let (a, binary) = (sshd.at("a").display().to_string(), program(&sshd));
    let named = ["--far-binary", binary.as_str()];
    // Without a terminal no question is asked.
    let (output, said) = run(cp(&sshd, &[&a, &sshd.far("b")]).args(named));
    assert!(output.status.success(), "{said}\n{}", sshd.log());
    assert!(said.contains("by SFTP") && said.contains("--bootstrap"), "{said}");
    assert!(programs(&sshd).is_empty());
    let before = logins(&sshd);
    let (output, said) = run(cp(&sshd, &["--bootstrap", &a, &sshd.far("c")]).args(named));
    assert!(output.status.success(), "{said}\n{}", sshd.log());
    assert!(said.starts_with("hikyaku: copying hikyaku ("), "{said}");
    assert!(!said.contains("by SFTP"), "{said}");
    assert!(fs::read(sshd.at("c")).unwrap() == random(7, 300_000));
    let sent = programs(&sshd);
    assert_eq!((sent.len(), sent[0].1), (1, 0o700));
    assert!(fs::read(&sent[0].0).unwrap() == fs::read(&binary).unwrap());
    // All commands after the first attempt used one login.
    assert_eq!(logins(&sshd) - before, 2, "{}", sshd.log());
    // It is found by itself from now on, also where nothing may be sent.
    let before = logins(&sshd);
    let (output, said) = run(cp(&sshd, &["--bootstrap=never", &sshd.far("c"), &a]).args(named));
    assert!(output.status.success() && said.is_empty(), "{said}");
    assert_eq!(logins(&sshd) - before, 1, "{}", sshd.log());
    let (output, said) = run(&mut sshd.far_programs(&["list"]));
    assert!(output.status.success(), "{said}");
    let hash = sent[0].0.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(listed.starts_with(&hash) && listed.lines().count() == 1, "{listed}");
    for (arguments, left) in [(&["remove"][..], 1), (&["remove", "--all"], 0)] {
        let (output, said) = run(&mut sshd.far_programs(arguments));
        assert!(output.status.success(), "{said}");
        assert_eq!(programs(&sshd).len(), left, "{arguments:?}");
    }
}

/// Unmounts a directory when it is dropped.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn where_nothing_can_be_put_or_run_sftp_serves() {
    let sshd = Sshd::with_home("boot-not");
    fs::write(sshd.at("a"), random(7, 300_000)).unwrap();
    let a = sshd.at("a").display().to_string();
    // Its headers are a program's; what follows is missing.
    let cut = fs::read(env!("CARGO_BIN_EXE_hikyaku")).unwrap()[..8192].to_vec();
    fs::write(sshd.at("cut"), cut).unwrap();
    let cut = sshd.at("cut").display().to_string();
    let try_it = |wanted: &str| {
        let arguments = ["--bootstrap", "--far-binary", &cut, &a, &sshd.far("b")];
        let (output, said) = run(&mut cp(&sshd, &arguments));
        assert!(output.status.success(), "{said}\n{}", sshd.log());
        assert!(said.contains(wanted) && said.contains(": data go by SFTP"), "{said}");
        assert!(fs::read(sshd.at("b")).unwrap() == random(7, 300_000));
        assert!(programs(&sshd).is_empty());
        fs::remove_file(sshd.at("b")).unwrap();
    };
    try_it("far does not run a program at ~/.cache/hikyaku/bin");
    fs::remove_dir_all(sshd.at("home/.cache")).unwrap();
    fs::write(sshd.at("home/.cache"), "a file").unwrap();
    try_it("hikyaku was not sent to far: cannot make ~/.cache");
    let home = sshd.at("home");
    let mount = ["-t", "tmpfs", "-o", "noexec,size=1m", "hikyaku-test"];
    if !Command::new("mount").args(mount).arg(&home).status().is_ok_and(|status| status.success()) {
        eprintln!("\n*** SKIPPED for want of the right to mount: noexec, full disk ***\n");
        return;
    }
    let _mounted = Mounted(home.clone());
    try_it("far does not run a program at ~/.cache/hikyaku/bin (exit code 126)");
    fs::write(home.join("full"), vec![1; 2 << 20]).unwrap_err();
    try_it("hikyaku was not sent to far: cannot ");
    // Where SFTP is not wanted, it is an error.
    let arguments = ["--via", "native", "--bootstrap", "--far-binary", &cut, &a, &sshd.far("b")];
    let (output, said) = run(&mut cp(&sshd, &arguments));
    assert_eq!(output.status.code(), Some(6), "{said}");
    assert!(said.contains("hikyaku was not sent to far"), "{said}");
    // The named file must be a program.
    let (output, said) = run(&mut cp(&sshd, &["--far-binary", &a, &a, &sshd.far("b")]));
    assert!(!output.status.success());
    assert!(said.contains("not a program for Linux"), "{said}");
}

#[test]
fn a_person_is_asked_and_always_is_remembered() {
    let sshd = Sshd::with_home("boot-ask");
    fs::write(sshd.at("a"), b"a").unwrap();
    let (a, binary) = (sshd.at("a").display().to_string(), program(&sshd));
    let hosts = sshd.at("state/hikyaku/bootstrap-hosts");
    for (answer, is_sent) in [("n", false), ("y", true), ("a", true)] {
        let command = cp(&sshd, &["--far-binary", &binary, &a, &sshd.far("b")]);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words = words.map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ");
        // script(1) gives it a terminal.
        let mut terminal = Command::new("script");
        terminal.args(["-qec", &words, "/dev/null"]).stdin(Stdio::piped());
        let envs = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let spawned = terminal.envs(envs).stdout(Stdio::piped()).spawn();
        let Ok(mut child) = spawned else {
            eprintln!("\n*** SKIPPED for want of script(1) ***\n");
            return;
        };
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, format!("{answer}\n").as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        drop(input);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{answer}: {said}");
        assert!(said.contains("May it be installed in"), "{answer}: {said}");
        assert_eq!(said.contains("data go by SFTP"), !is_sent, "{answer}: {said}");
        assert_eq!(programs(&sshd).len(), usize::from(is_sent), "{answer}: {said}");
        assert_eq!(hosts.exists(), answer == "a");
        let _ = fs::remove_dir_all(sshd.at("home/.cache"));
    }
    // No question is asked again.
    let (output, said) = run(&mut cp(&sshd, &["--far-binary", &binary, &a, &sshd.far("b")]));
    assert!(output.status.success(), "{said}");
    assert_eq!(programs(&sshd).len(), 1, "{said}");
    let (output, said) = run(&mut sshd.far_programs(&["remove", "--all"]));
    assert!(output.status.success(), "{said}");
    assert_eq!(fs::read_to_string(&hosts).unwrap(), "");
}

/// This command, run by another copy of the program.
fn of_program(program: &str, command: &Command) -> Command {
    let mut other = Command::new(program);
    other.args(command.get_args()).stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            other.env(name, value);
        }
    }
    other
}

#[test]
fn the_running_program_is_sent_although_it_is_dynamic() {
    let sshd = Sshd::with_home("boot-own");
    fs::write(sshd.at("a"), random(7, 300_000)).unwrap();
    let (a, own) = (sshd.at("a").display().to_string(), program(&sshd));
    let arguments = ["-v", "--bootstrap=always", &a, &sshd.far("b")];
    let (output, said) = run(&mut of_program(&own, &cp(&sshd, &arguments)));
    assert!(output.status.success(), "{said}\n{}", sshd.log());
    assert!(
        said.contains("hikyaku: copying hikyaku (") && said.contains(" by UDP after "),
        "{said}"
    );
    assert!(fs::read(sshd.at("b")).unwrap() == random(7, 300_000));
    let sent = programs(&sshd);
    assert_eq!(sent.len(), 1);
    assert!(fs::read(&sent[0].0).unwrap() == fs::read(&own).unwrap());
}

#[test]
fn a_far_side_with_an_older_c_library_needs_a_static_program() {
    let sshd = Sshd::with_home("boot-old");
    fs::write(sshd.at("a"), random(7, 300_000)).unwrap();
    let (a, own) = (sshd.at("a").display().to_string(), program(&sshd));
    fs::create_dir(sshd.at("home/bin")).unwrap();
    let getconf = sshd.at("home/bin/getconf");
    // The first library for this processor: every program needs a later one.
    fs::write(&getconf, "#!/bin/sh\necho glibc 2.2\n").unwrap();
    fs::set_permissions(&getconf, fs::Permissions::from_mode(0o755)).unwrap();
    let why = "far: needs a static hikyaku: its C library is 2.2, this program needs 2.";
    let named = ["--far-binary", own.as_str()];
    for (named, remedy) in [
        (&[][..], "\ntry: cargo xtask install, or --far-binary FILE\n"),
        (&named, "\ntry: the static program of cargo xtask install\n"),
    ] {
        let mut command = cp(&sshd, &["--bootstrap=always", &a, &sshd.far("b")]);
        let (output, said) = run(&mut of_program(&own, command.args(named)));
        assert!(output.status.success(), "{said}\n{}", sshd.log());
        assert!(said.contains(why) && said.contains(": data go by SFTP"), "{said}");
        // An option of the command line is not advised.
        assert!(said.contains(remedy) && !said.contains("--bootstrap"), "{said}");
        assert!(programs(&sshd).is_empty());
    }
}

#[test]
fn every_verb_that_starts_hikyaku_sends_it() {
    let sshd = Sshd::with_home("boot-verbs");
    fs::write(sshd.at("a"), "a").unwrap();
    fs::create_dir(sshd.at("tree")).unwrap();
    let (own, config) = (program(&sshd), sshd.at("ssh_config").display().to_string());
    let (tree, rsh) = (sshd.at("tree").display().to_string(), format!("ssh -F {config}"));
    let far_a = sshd.far("a");
    let copies = |words: &[&str], extra: &[&str]| {
        let mut command = Command::new(&own);
        command.args(words).args(["--remote-path", "no-such-hikyaku"]).args(extra);
        command.env("XDG_STATE_HOME", sshd.at("state")).env("XDG_CACHE_HOME", sshd.at("cache"));
        command.current_dir(sshd.at("")).stdin(Stdio::null());
        command
    };
    let verbs: [(&str, &[&str]); 3] = [
        ("sync", &["sync", "-a", "-e", &rsh, &format!("{tree}/"), &sshd.far("copy")]),
        ("sftp", &["sftp", "-F", &config, &far_a, "fetched"]),
        ("perf", &["perf", "ssh://far", "-t", "1", "--ssh", &ssh(&sshd)]),
    ];
    for (verb, words) in verbs {
        // Each verb prints the advice if nothing is sent.
        let (_, said) = run(&mut copies(words, &[]));
        assert!(said.contains("try: --bootstrap, which installs it"), "{verb}: {said}");
        assert!(programs(&sshd).is_empty(), "{verb}: {said}");
        let (output, said) = run(&mut copies(words, &["--bootstrap"]));
        assert!(output.status.success(), "{verb}: {said}\n{}", sshd.log());
        assert!(said.contains("hikyaku: copying hikyaku ("), "{verb}: {said}");
        assert_eq!(programs(&sshd).len(), 1, "{verb}: {said}");
        fs::remove_dir_all(sshd.at("home/.cache")).unwrap();
    }
    let words = ["proxy", "-F", &config, "-L", "0:127.0.0.1:9", "far"];
    let mut proxy = copies(&words, &["--bootstrap"]).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the proxy has sent hikyaku", || programs(&sshd).len() == 1);
    proxy.kill().unwrap();
    proxy.wait().unwrap();
}

/// A program in the place of ssh, with this server's configuration.
fn ssh(sshd: &Sshd) -> String {
    let (path, config) = (sshd.at("ssh"), sshd.at("ssh_config").display().to_string());
    fs::write(&path, format!("#!/bin/sh\nexec ssh -F {config} \"$@\"\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn far_install_puts_the_program_at_a_path_once() {
    let sshd = Sshd::with_home("far-install");
    let own = program(&sshd);
    let install = |more: &[&str]| {
        run(&mut of_program(&own, &sshd.far_programs(&[&["install"], more].concat())))
    };
    let (output, said) = install(&[]);
    assert!(output.status.success(), "{said}\n{}", sshd.log());
    let wanted =
        format!("far: installed hikyaku {} as ~/.local/bin/hikyaku\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8_lossy(&output.stdout), wanted);
    let there = sshd.at("home/.local/bin/hikyaku");
    assert!(fs::read(&there).unwrap() == fs::read(&own).unwrap());
    assert_eq!(fs::metadata(&there).unwrap().mode() & 0o777, 0o755);
    let (output, said) = install(&[]);
    assert!(output.status.success() && said.is_empty(), "{said}");
    let wanted = "far: already has this hikyaku as ~/.local/bin/hikyaku\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), wanted);
    // Commands find it there.
    fs::write(sshd.at("a"), "a").unwrap();
    let mut command = sshd.cp(&["--remote-path", "hikyaku", "-v"]);
    command.args([sshd.at("a").display().to_string(), sshd.far("b")]);
    let (output, said) = run(&mut command);
    assert!(output.status.success() && said.contains(" by UDP after "), "{said}");
    // At another path; a host that cannot be reached costs itself only.
    let (output, said) = install(&["--path", "opt/hk", "broken"]);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("hikyaku: broken: ssh did not log in"), "{said}");
    assert!(said.contains("by --remote-path ~/opt/hk\n"), "{said}");
    assert!(said.contains("not installed on 1 of 2 hosts"), "{said}");
    assert!(sshd.at("home/opt/hk").exists());
    let (output, said) = install(&["--path", "~other/x"]);
    assert_eq!(output.status.code(), Some(1), "{said}");
}
