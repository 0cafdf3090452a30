//! Command lines that are read, and those that are refused.

use super::*;
use clap::Parser;
use hikyaku_console::ExitCode;
use hikyaku_forward::{At, SocketPath};

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    args: ProxyArgs,
}

fn parse(line: &str) -> Result<Plan> {
    let words = std::iter::once("proxy").chain(line.split(' '));
    Program::try_parse_from(words)?.args.plan()
}

#[test]
fn listeners_are_read_as_ssh_reads_them() {
    let address = |text: &str| Bind::Address(format!("{text}:0").parse().unwrap());
    for (line, bind, port, target) in [
        ("8080:web:80", Bind::Default, 8080, "web:80"),
        ("localhost:0:web:80", Bind::Loopback, 0, "web:80"),
        ("127.0.0.2:8080:10.0.0.1:80", address("127.0.0.2"), 8080, "10.0.0.1:80"),
        ("[::1]:8080:[2001:db8::1]:80", address("[::1]"), 8080, "[2001:db8::1]:80"),
    ] {
        let plan = parse(&format!("me@far -L {line}")).unwrap();
        let forward = &plan.local[0];
        assert_eq!(forward.place, Place::Port(Listen { bind, port }), "{line}");
        assert_eq!(forward.goal.to_string(), target);
        let Forward { place, goal } = forward.clone();
        let remote = Remote { place, leads: Leads::To(goal) };
        assert_eq!(parse(&format!("me@far -R {line}")).unwrap().remote, [remote]);
    }
    let plan = parse("-D 1080 --http localhost:3128 -N ssh://me@far:2222").unwrap();
    assert_eq!(plan.socks, [Listen { bind: Bind::Default, port: 1080 }]);
    assert_eq!(plan.http, [Listen { bind: Bind::Loopback, port: 3128 }]);
    assert!(matches!(&plan.far, FarEnd::Ssh(far) if far.port == Some(2222)));
    let plan = parse("-D 1080 hikyaku://far:7000").unwrap();
    assert!(matches!(&plan.far, FarEnd::Daemon(far) if far.to_string() == "far:7000"));
}

#[test]
fn a_path_is_a_unix_socket_on_either_side() {
    for (line, place, goal) in [
        ("8080:/run/a.sock", "8080", "/run/a.sock"),
        ("127.0.0.1:8080:/run/a.sock", "127.0.0.1:8080", "/run/a.sock"),
        ("/tmp/b.sock:web:80", "/tmp/b.sock", "web:80"),
        ("/tmp/b.sock:[::1]:80", "/tmp/b.sock", "[::1]:80"),
        ("/tmp/b.sock:/run/a.sock", "/tmp/b.sock", "/run/a.sock"),
    ] {
        let plan = parse(&format!("me@far -L {line} -R {line}")).unwrap();
        let Forward { place: found, goal: found_goal } = plan.local[0].clone();
        assert_eq!(
            (found.to_string(), found_goal.to_string()),
            (place.to_owned(), goal.to_owned())
        );
        assert_eq!(plan.remote, [Remote { place: found, leads: Leads::To(found_goal) }], "{line}");
    }
}

#[test]
fn a_listener_of_the_far_side_without_a_target_is_a_socks_proxy() {
    for (line, place) in [
        ("1080", "1080"),
        ("localhost:1080", "localhost:1080"),
        ("[::1]:1080", "[::1]:1080"),
        ("/tmp/a.sock", "/tmp/a.sock"),
    ] {
        let remote = parse(&format!("far -R {line}")).unwrap().remote;
        assert_eq!(remote[0].place.to_string(), place);
        assert_eq!(remote[0].leads, Leads::Anywhere, "{line}");
    }
}

#[test]
fn the_far_side_is_asked_for_loopback_unless_an_address_is_named() {
    let at = |line: &str| parse(&format!("far -R {line}:web:80")).unwrap().remote[0].at();
    let port = |address: Option<&str>| At::Port {
        address: address.map(|address| address.parse().unwrap()),
        port: 80,
    };
    assert_eq!(at("80"), port(None));
    assert_eq!(at("localhost:80"), port(None));
    assert_eq!(at("*:80"), port(Some("::")));
    assert_eq!(at("10.0.0.1:80"), port(Some("10.0.0.1")));
    assert_eq!(at("/a.sock"), At::Socket(SocketPath::parse("/a.sock").unwrap()));
}

#[test]
fn other_hosts_are_let_in_only_with_a_flag() {
    for bind in ["*:1080", ":1080", "0.0.0.0:1080", "[::]:1080", "10.0.0.1:1080"] {
        let error = parse(&format!("far -D {bind}")).err().expect(bind);
        let chain = format!("{error:#}");
        assert!(chain.contains("-g is not given") && chain.contains("try: -g"), "{chain}");
        assert!(parse(&format!("far -g -D {bind}")).is_ok(), "{bind}");
    }
    assert_eq!(parse("far -g -D 1080").unwrap().socks[0].bind, Bind::All);
    assert_eq!(parse("far -g -D localhost:1080").unwrap().socks[0].bind, Bind::Loopback);
}

#[test]
fn status_is_asked_without_a_host() {
    let parse = |line: &str| {
        let words = std::iter::once("proxy").chain(line.split(' '));
        Program::try_parse_from(words).unwrap().args
    };
    for (line, form) in [("status", Form::Words), ("status --json", Form::Document)] {
        assert!(
            matches!(parse(line).action, Some(Action::Status(asked)) if asked.form.form() == form)
        );
    }
    assert!(parse("ssh://status -D 1080").action.is_none());
    assert!(matches!(parse("on").action, Some(Action::On(SwitchArgs { process: None }))));
    let off = parse("off --process 7").action;
    assert!(matches!(off, Some(Action::Off(SwitchArgs { process: Some(7) }))));
    assert!(matches!(parse("drain").action, Some(Action::Drain(_))));
}

#[test]
fn what_makes_no_sense_is_refused() {
    for line in [
        "far",
        "far -D",
        "-D 1080",
        "far -D x",
        "far -D 70000",
        "far -D a.example:1080",
        "far -L 8080",
        "far -L 8080:web",
        "far -L 8080:web:0",
        "far -L 8080:web:x",
        "far -L 8080:::1:80",
        "far -L [::1:8080:web:80",
        "far -L [::1]8080:web:80",
        "far -L 8080:a/b:80",
        "far -R web",
        "far -R web:80",
        "far -R 80:web",
        "far -D 1080 --to 10.0.0.0/8",
        "far --transparent eth1",
        "far --for-command",
        "far -D 1080 -- curl",
        "far --for-command --json -- curl",
        "far --for-command --json-lines -- curl",
        "far --for-command --transparent eth1 --to 10.0.0.0/8 -- curl",
        "far -L a/b:web:80",
        "far -f --json -D 1080",
        "far -f --json-lines -D 1080",
        "far --json --json-lines -D 1080",
        "-oX -D 1080",
        "far/x -D 1080",
        "far -D 1080 --udp-ports 9-1",
        "far -D 1080 --timeout 1s",
        "far -D 1080 -4 -6",
        "hikyaku://far,other -D 1080",
        "hikyaku://far/path -D 1080",
        "hikyaku://me@far -D 1080",
        "status -D 1080",
        "far -D 1080 status",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}

#[test]
fn a_daemon_has_the_options_of_its_connections() {
    for option in ["-4", "-6", "--via tcp", "--connections 4", "--no-udp"] {
        for far in ["hikyaku://far", "far"] {
            assert!(parse(&format!("-D 1080 {option} {far}")).is_ok(), "{option} {far}");
        }
    }
    assert!(parse("-D 1080 --via tcp --no-udp far").is_err());
}

#[test]
fn options_of_ssh_beside_a_daemon_are_refused_by_name() {
    for (option, instead) in [
        ("-p 22", "hikyaku://far:22"),
        ("-i key", "ssh://far"),
        ("-J hop", "ssh://far"),
        ("-F file", "ssh://far"),
        ("-o Port=1", "ssh://far"),
        ("--ssh /bin/ssh", "ssh://far"),
        ("--remote-path /bin/hikyaku", "ssh://far"),
        ("--udp-ports 60001-60999", "ssh://far"),
    ] {
        let error = parse(&format!("-D 1080 {option} hikyaku://far")).err().expect(option);
        assert_eq!(ExitCode::of(&error, &[]), ExitCode::Usage, "{option}");
        let (error, name) = (format!("{error:#}"), option.split(' ').next().unwrap_or_default());
        assert!(error.contains(&format!("{name} is for a server that is started")), "{error}");
        assert!(error.contains(&format!("try: {instead}")), "{error}");
        assert!(parse(&format!("-D 1080 {option} far")).is_ok(), "{option}");
    }
}
