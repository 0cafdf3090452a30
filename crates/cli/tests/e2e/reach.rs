//! The far side is reached whatever its shell prints and the user's ssh is configured to do, or an
//! error names the reason within seconds. Also: how signals end a copy.

use crate::common::{Sshd, random};
use std::fs;
use std::io::Write;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_hikyaku");
const CONDITION_TIMEOUT: Duration = Duration::from_secs(30);

fn run(command: &mut Command) -> (Output, String) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < CONDITION_TIMEOUT, "{what} did not become true in time");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A script that executes `does`. As the far side's program it simulates a login shell whose
/// start-up files do this first.
fn script(sshd: &Sshd, does: &str) -> String {
    let script = sshd.at("script.sh");
    fs::write(&script, format!("#!/bin/sh\n{does}\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script.display().to_string()
}

/// Creates the source file.
fn source(sshd: &Sshd, len: usize) -> String {
    fs::write(sshd.at("a"), random(1, len)).unwrap();
    sshd.at("a").display().to_string()
}

fn is_copied(sshd: &Sshd, name: &str) -> bool {
    fs::read(sshd.at(name)).is_ok_and(|copy| copy == fs::read(sshd.at("a")).unwrap())
}

/// Whether the text contains 64 consecutive hexadecimal digits, the form of a secret.
fn shows_a_secret(said: &str) -> bool {
    said.split(|c: char| !c.is_ascii_hexdigit()).any(|word| word.len() == 64)
}

#[test]
fn output_of_the_far_shell_is_skipped() {
    let sshd = Sshd::start("reach-chatter");
    let a = source(&sshd, 100_000);
    let before = [
        "printf 'no end of line'",
        "printf '\\rwelcome\\r'",
        "seq 100000",
        "seq 100000 | tr '\\n' ' '",
        "printf '\\377\\376 caf\\351\\001'",
        // A start-up file that reads from the ssh connection.
        "read line",
        "read line; read line; read line",
        "head -n 1",
        "sleep 20 >/dev/null 2>&1 &",
    ];
    for (n, does) in before.iter().enumerate() {
        let far = script(&sshd, &format!("{does}\nexec {PROGRAM} \"$@\""));
        let name = format!("b{n}");
        let (output, said) = run(sshd.cp(&[&a, &sshd.far(&name)]).args(["--remote-path", &far]));
        assert!(output.status.success() && is_copied(&sshd, &name), "{does}: {said}");
    }
}

#[test]
fn a_far_side_that_does_not_answer_is_reported_within_seconds() {
    let sshd = Sshd::start("reach-silent");
    let a = source(&sshd, 1000);
    let config = format!("ssh -F {}", sshd.at("ssh_config").display());
    let greeting = format!("{PROGRAM} \"$@\" </dev/null 2>/dev/null | head -n 1");
    let cases = [
        ("cat", "hikyaku did not answer within 5 s"),
        ("cat >/dev/null", "hikyaku did not answer within 5 s"),
        // Programs that echo the near side's own message and then end, or do not end.
        (&format!("{greeting}; cat"), "did not answer within 5 s"),
        (&format!("{greeting}; head -n 5"), "the far side did not answer"),
        ("yes", "a shell on the far side says more than 8 MB"),
        ("echo no room; exit 3", "it said: no room"),
    ];
    for (does, wanted) in cases {
        let far = script(&sshd, does);
        let words = ["--timeout", "5s", "-P", &port(&sshd), "--remote-path", &far];
        let (output, said) = run(sshd.cp(&words).args([&a, &sshd.far("b")]));
        assert!(!output.status.success(), "{does}: {said}");
        assert!(said.contains(wanted), "{does}: {said}");
        let tried = format!("try: {config} -p {} far", port(&sshd));
        assert!(said.contains(&tried), "{does}: {said}");
        assert!(!shows_a_secret(&said), "{does}: {said}");
    }
    // ssh itself may wait indefinitely.
    let silent = script(&sshd, "[ \"$1\" = -G ] || exec sleep 60");
    let (output, said) = run(&mut sshd.cp(&["--timeout", "5s", "-S", &silent, &a, "far:b"]));
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("far: ssh has not logged in within 5 s"), "{said}");
}

fn port(sshd: &Sshd) -> String {
    let config = fs::read_to_string(sshd.at("ssh_config")).unwrap();
    config.lines().find_map(|line| line.strip_prefix(" Port ")).unwrap().to_owned()
}

#[test]
fn ssh_settings_that_prevent_remote_commands_are_overridden() {
    let sshd = Sshd::start("reach-settings");
    let a = source(&sshd, 1000);
    let settings = [
        "SessionType none",
        "SessionType subsystem",
        "StdinNull yes",
        "ForkAfterAuthentication yes",
        "RemoteCommand cat",
        "RequestTTY force",
    ];
    let config = fs::read_to_string(sshd.at("ssh_config")).unwrap();
    for (n, setting) in settings.iter().enumerate() {
        // Not every version of ssh knows all of these settings.
        let ignored = "IgnoreUnknown SessionType,StdinNull,ForkAfterAuthentication";
        fs::write(sshd.at("ssh_config"), format!("{ignored}\n{setting}\n{config}")).unwrap();
        let name = format!("b{n}");
        let (output, said) = run(&mut sshd.cp(&["--timeout", "5s", &a, &sshd.far(&name)]));
        assert!(output.status.success() && is_copied(&sshd, &name), "{setting}: {said}");
        assert!(!shows_a_secret(&said), "{said}");
    }
}

#[test]
fn the_option_v_shows_how_the_far_side_was_reached() {
    let sshd = Sshd::start("reach-verbose");
    let a = source(&sshd, 1000);
    let said = |flag: &str| {
        let (output, said) = run(&mut sshd.cp(&[flag, &a, &sshd.far("b")]));
        assert!(output.status.success(), "{said}");
        said
    };
    let one = said("-v");
    for step in
        ["starting hikyaku on far: ssh -F", "answers after", "dialling 127.0.0.1:", "connected to"]
    {
        assert!(one.contains(step), "{step}: {one}");
    }
    assert!(!one.contains("debug1"), "{one}");
    assert!(one.matches("has logged in").count() <= 1, "it logs in once: {one}");
    assert!(said("-vv").contains("debug1") && !said("-vv").contains("debug2"));
    assert!(said("-vvv").contains("debug2"));
}

#[test]
fn a_malicious_far_side_cannot_redirect_the_connection() {
    let sshd = Sshd::start("reach-liar");
    let a = source(&sshd, 1000);
    let ear = |address: &str| {
        let ear = UdpSocket::bind(address).unwrap();
        ear.set_nonblocking(true).unwrap();
        ear
    };
    let has_heard = |ear: &UdpSocket| ear.recv(&mut [0; 2000]).is_ok();
    // The far side names an address of this machine that ssh has not connected to.
    let other = ear("127.0.0.9:61234");
    let lie = "s/\"addresses\":\\[[^]]*\\]/\"addresses\":[\"127.0.0.9\"]/; s/\"port\":[0-9]*/\"port\":61234/";
    let far = script(&sshd, &format!("{PROGRAM} \"$@\" | sed -u '{lie}'"));
    let words = ["--udp-ports", "61200-61299", "--remote-path", &far, &a, &sshd.far("b")];
    let (output, said) = run(&mut sshd.cp(&words));
    // The far side connects by itself, so the copy succeeds.
    assert!(output.status.success() && is_copied(&sshd, "b"), "{said}");
    assert!(!has_heard(&other), "the near side connected to an address or port from the far side");
    // The far side names a port that it was not given.
    let other = ear("127.0.0.1:0");
    let port = other.local_addr().unwrap().port();
    let far =
        script(&sshd, &format!("{PROGRAM} \"$@\" | sed -u 's/\"port\":[0-9]*/\"port\":{port}/'"));
    let words = ["--udp-ports", "61200-61299", "--remote-path", &far, &a, &sshd.far("c")];
    let (output, said) = run(&mut sshd.cp(&words));
    assert!(!has_heard(&other), "the near side connected to an address or port from the far side");
    assert!(
        !output.status.success() && said.contains(&format!("listens at port {port}, and was told")),
        "{said}"
    );
}

#[test]
fn a_tilde_expands_to_the_home_directory_of_the_user() {
    let sshd = Sshd::start("reach-home");
    let a = source(&sshd, 1000);
    let id = Command::new("id").arg("-un").output().unwrap();
    let user = String::from_utf8(id.stdout).unwrap().trim().to_owned();
    let scratch = sshd.at("").display().to_string();
    // Enough `..` to reach the root from any home directory.
    let there = |name: &str| format!("far:~{user}/{}{scratch}/{name}", "../".repeat(20));
    let here = sshd.at("c").display().to_string();
    for (from, to, made) in [(&a, &there("b"), "b"), (&there("a*"), &here, "c")] {
        let (output, said) = run(&mut sshd.cp(&[from, to]));
        assert!(output.status.success() && is_copied(&sshd, made), "{said}");
    }
    let (output, said) = run(&mut sshd.cp(&[&a, "far:~no-such-user/b"]));
    assert!(!output.status.success() && said.contains("no-such-user: no such user"), "{said}");
}

/// Size of all journals in bytes. If it is not zero, the copy can be continued.
fn journal(sshd: &Sshd) -> u64 {
    let folder = fs::read_dir(sshd.at("state/hikyaku/copies")).into_iter().flatten();
    folder.flatten().filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum()
}

fn signal(name: &str, child: &Child) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Whether a far side started by `sshd` is running.
fn is_serving(sshd: &Sshd) -> bool {
    let state = format!("XDG_STATE_HOME={}\0", sshd.at("state").display());
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let serves = read("cmdline").ends_with(b"serve\0--stdio\0");
        serves && read("environ").windows(state.len()).any(|part| part == state.as_bytes())
    })
}

#[test]
fn a_signal_ends_the_copy_in_order_and_the_command_by_that_signal() {
    let sshd = Sshd::start("reach-signal");
    let a = source(&sshd, 60_000_000);
    let (there, back) = (sshd.far("b"), sshd.at("c").display().to_string());
    for (name, number, from, to) in
        [("-INT", 2, &a, &there), ("-TERM", 15, &sshd.far("a"), &back), ("-HUP", 1, &a, &there)]
    {
        let mut command = sshd.cp(&["-l", "60m", from, to]);
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        let before = journal(&sshd);
        wait_until("progress", || journal(&sshd) > before + 1000);
        assert!(is_serving(&sshd));
        signal(name, &child);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(number), "{name}: {said}");
        assert_eq!(said, "hikyaku: stopped; the same command continues from here\n");
        wait_until("the end of the far side", || !is_serving(&sshd));
    }
    for (from, to, made) in [(&a, &there, "b"), (&sshd.far("a"), &back, "c")] {
        let (output, said) = run(&mut sshd.cp(&["--json", from, to]));
        assert!(output.status.success() && is_copied(&sshd, made), "{said}");
        let events = String::from_utf8(output.stdout).unwrap();
        let end: serde_json::Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
        assert!(end["kept_bytes"].as_u64().unwrap() >= 1 << 20, "{end}");
    }
}

#[test]
fn a_signal_ends_the_command_while_ssh_is_connecting() {
    let sshd = Sshd::start("reach-signal-early");
    let a = source(&sshd, 1000);
    let mark = sshd.at("mark");
    let ssh = script(
        &sshd,
        &format!("[ \"$1\" = -G ] && exit 1; echo $$ >{}; exec sleep 60", mark.display()),
    );
    let child = sshd.cp(&["-S", &ssh, &a, "far:b"]).spawn().unwrap();
    wait_until("ssh", || fs::read_to_string(&mark).is_ok_and(|id| id.ends_with('\n')));
    signal("-TERM", &child);
    assert_eq!(child.wait_with_output().unwrap().status.signal(), Some(15));
    let asks = format!("/proc/{}/cmdline", fs::read_to_string(&mark).unwrap().trim());
    // A zombie process has no command line.
    wait_until("the end of ssh", || fs::read(&asks).unwrap_or_default().is_empty());
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let sshd = Sshd::start("reach-nohup");
    let a = source(&sshd, 20_000_000);
    let copy = sshd.cp(&["-l", "60m", &a, &sshd.far("b")]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(copy.get_program())
        .args(copy.get_args());
    for (key, value) in copy.get_envs() {
        command.env(key, value.unwrap());
    }
    let child = command.stdin(Stdio::null()).spawn().unwrap();
    wait_until("progress", || journal(&sshd) > 500);
    signal("-HUP", &child);
    assert!(child.wait_with_output().unwrap().status.success() && is_copied(&sshd, "b"));
}

#[test]
fn a_shared_ssh_connection_outlives_the_copy() {
    let sshd = Sshd::start("reach-shared");
    let a = source(&sshd, 9_000_000);
    let (config, socket) = (sshd.at("ssh_config"), sshd.at("master"));
    let shared = format!("ControlMaster auto\nControlPath {}\n", socket.display());
    let own = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{shared}{own}")).unwrap();
    let copy = sshd.cp(&["-l", "40m", &a, &sshd.far("b")]).spawn().unwrap();
    wait_until("the socket", || socket.exists());
    let mut other = Command::new("ssh");
    other.arg("-F").arg(&config).args(["far", "read line; echo alive"]);
    let mut other = other.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let input = other.stdin.take().unwrap();
    assert!(copy.wait_with_output().unwrap().status.success() && is_copied(&sshd, "b"));
    drop(input);
    let output = other.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout == b"alive\n", "{output:?}");
    wait_until("the end of the socket", || !socket.exists());
}

#[test]
fn a_far_side_of_another_version_is_named_with_a_remedy() {
    let sshd = Sshd::start("reach-version");
    let a = source(&sshd, 1000);
    for (protocol, wanted) in [("4", "protocol 4, not 6"), ("[7,9]", "protocol 7 to 9, not 6")] {
        let greeting =
            format!(r#"\001hikyaku-serve {{"version":"0.0.9","protocol":{protocol}}}\n"#);
        let does = format!("printf '{greeting}'; read line");
        let old = script(&sshd, &does);
        let (output, said) = run(&mut sshd.cp(&["--remote-path", &old, &a, &sshd.far("b")]));
        assert!(!output.status.success());
        assert!(said.contains(&format!("hikyaku 0.0.9, which speaks {wanted}")), "{said}");
        assert!(said.contains("try: install version"), "{said}");
    }
}

#[test]
fn what_the_far_side_cannot_do_is_named_with_a_remedy() {
    for (start, wanted) in [
        (
            r#"{"version":"9","protocol":[6,9],"service":"mount","ports":[60001,60999],"tuning":{},"key":"x","door":null}"#,
            "has no service 'mount'; it has copy",
        ),
        (r#"{"protocol":4,"ports":[60001,60999]}"#, "which speaks protocol 4, not 6"),
    ] {
        let mut far = Command::new(PROGRAM);
        far.args(["serve", "--stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut far = far.stderr(Stdio::piped()).spawn().unwrap();
        writeln!(far.stdin.take().unwrap(), "{start}").unwrap();
        let output = far.wait_with_output().unwrap();
        assert!(!output.status.success());
        let said = String::from_utf8(output.stdout).unwrap();
        let refusal = said.lines().last().unwrap();
        assert!(refusal.contains(wanted) && refusal.contains("try: install version"), "{said}");
    }
}

/// Servers that were started for a copy from this server's hosts and still run.
fn started_servers(sshd: &Sshd) -> usize {
    let has = |process: &std::path::Path, file: &str, text: &str| {
        let bytes = fs::read(process.join(file)).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    let state = sshd.at("state").display().to_string();
    let is_one = |process: &std::path::PathBuf| {
        has(process, "cmdline", "\0--for-session\0") && has(process, "environ", &state)
    };
    fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).filter(is_one).count()
}

#[test]
fn servers_are_started_for_one_copy_and_end_with_it() {
    let sshd = Sshd::start("launch");
    let (tree, down, up) = (sshd.at("run7"), sshd.at("down"), sshd.at("up"));
    fs::create_dir(&tree).unwrap();
    for n in 0..6 {
        fs::write(tree.join(n.to_string()), random(n, 400_000)).unwrap();
    }
    let at = |hosts: &str, path: &std::path::Path| format!("hikyaku://{hosts}{}", path.display());
    let (source, target) = (at("far,other", &tree), at("far,other", &up));
    let options = ["-r", "--start-servers", "--primary", "far"];
    let words = |from: &str, to: &str| {
        let mut command = sshd.cp(&options);
        run(command.args([from, to]))
    };
    let is_same = |copy: &std::path::Path| {
        (0..6).all(|n| fs::read(copy.join(n.to_string())).unwrap_or_default() == random(n, 400_000))
    };
    let (output, said) = words(&source, down.to_str().unwrap());
    assert!(output.status.success(), "{said}");
    assert!(is_same(&down));
    assert!(!said.contains("other:") && !said.contains("far:"), "{said}");
    let (output, said) = words(tree.to_str().unwrap(), &target);
    assert!(output.status.success(), "{said}");
    assert!(is_same(&up));
    wait_until("the end of the servers", || started_servers(&sshd) == 0);
    // One that cannot be started is told, and the other one sends.
    let again = sshd.at("again");
    let (output, said) = words(&at("broken,far", &tree), again.to_str().unwrap());
    assert!(
        output.status.success() && said.contains("hikyaku: broken: ssh did not log in"),
        "{said}"
    );
    assert!(is_same(&again));
    let (output, said) = words(&at("broken", &tree), again.to_str().unwrap());
    assert_eq!(output.status.code(), Some(5), "{said}");
}
