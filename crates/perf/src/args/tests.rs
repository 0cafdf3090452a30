//! Tests of the command line.

use super::*;
use clap::Parser;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    perf: PerfArgs,
}

fn parse(line: &str) -> Result<PerfArgs, clap::Error> {
    let words = std::iter::once("perf").chain(line.split_whitespace());
    Ok(Cli::try_parse_from(words)?.perf)
}

fn client(line: &str) -> ClientArgs {
    match parse(line).unwrap().role().unwrap() {
        Role::Client(client) => *client,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_option_but_the_role_has_a_default() {
    let client = client("-c example.org");
    assert_eq!((client.host.as_str(), client.common.port), ("example.org", 5208));
    assert_eq!(client.plan, Plan::default());
    assert_eq!(client.common.endpoint.memory, Memory::Off);
    let Role::Server(server) = parse("-s").unwrap().role().unwrap() else { panic!() };
    assert_eq!((server.tests, server.common.port), (Tests::Any, 5208));
}

#[test]
fn the_host_argument_may_include_a_port() {
    for (line, host, port) in [
        ("-c h", "h", 5208),
        ("-c h:9", "h", 9),
        ("-c h -p 9", "h", 9),
        ("-c h:9 -p 9", "h", 9),
        ("-c 192.0.2.1:9", "192.0.2.1", 9),
        ("-c ::1", "::1", 5208),
        ("-c [::1]", "::1", 5208),
        ("-c [::1]:9", "::1", 9),
        ("-c [fe80::1%eth0]:9", "fe80::1%eth0", 9),
    ] {
        let client = client(line);
        assert_eq!((client.host.as_str(), client.common.port), (host, port), "{line}");
    }
    for line in
        ["-c :9", "-c h:", "-c h:x", "-c h:0", "-c h:65536", "-c [::1", "-c [::1]9", "-c []:9"]
    {
        assert!(parse(line).is_err(), "{line}");
    }
    assert!(parse("-c h:9 -p 8").unwrap().role().is_err());
}

#[test]
fn a_user_or_the_scheme_means_ssh() {
    for (line, user, host, port) in [
        ("me@h", Some("me"), "h", None),
        ("-c me@h", Some("me"), "h", None),
        ("me@[::1]", Some("me"), "::1", None),
        ("ssh://h", None, "h", None),
        ("ssh://h/", None, "h", None),
        ("ssh://me@h:22", Some("me"), "h", Some(22)),
    ] {
        let ssh = client(line).ssh.unwrap().destination;
        assert_eq!(
            (ssh.user.as_deref(), ssh.host.as_str(), ssh.port),
            (user, host, port),
            "{line}"
        );
    }
    for line in ["h", "h:9", "-c h", "-c [::1]:9"] {
        assert!(client(line).ssh.is_none(), "{line}");
    }
    for line in ["me@", "me@-h", "ssh://", "ssh://-oX", "ssh://h:x", "ssh://h/a", "h -s", "h -c h"]
    {
        assert!(parse(line).is_err(), "{line}");
    }
}

#[test]
fn options_that_ssh_gives_no_meaning_are_refused() {
    for option in [
        "-P 2",
        "--bidir",
        "--compete tcp:1",
        "-p 9",
        "-B 192.0.2.1",
        "--dscp ef",
        "--wire-rate 1M",
    ] {
        let error = parse(&format!("me@h {option}")).unwrap().role().unwrap_err();
        let name = option.split(' ').next().unwrap();
        assert!(error.to_string().starts_with(name), "{option}: {error:#}");
        assert!(format!("{error:#}").contains("try: hikyaku perf -s on h"), "{error:#}");
    }
    for option in [
        "--ssh x",
        "--ssh-option x",
        "--jump x",
        "--ssh-port 1",
        "--remote-path x",
        "--udp-ports 1-2",
    ] {
        assert!(parse(&format!("h {option}")).unwrap().role().is_err(), "{option}");
    }
    // They hold at both ends, so that the direction does not matter.
    for option in ["--window 16MB", "-R --policy scavenger"] {
        assert!(parse(&format!("me@h {option}")).unwrap().role().is_ok(), "{option}");
        assert!(parse(&format!("h {option}")).unwrap().role().is_err(), "{option}");
    }
}

#[test]
fn options_mean_what_they_mean_in_iperf3() {
    let plan = client("-c h -R -P 4 -b 100M -i 0.2 -O 3 -t 30").plan;
    assert_eq!((plan.direction, plan.streams), (Direction::Download, 4));
    assert_eq!((plan.target, plan.interval, plan.omit), (Some(100_000_000), 0.2, 3.0));
    assert_eq!(plan.limit, Limit::Seconds(30.0));
    assert_eq!(plan.total_seconds(), Some(33.0));
    assert_eq!((client("-c h").ways, client("-c h --bidir").ways), (Ways::One, Ways::Both));
    assert_eq!(client("-c h -n 1G").plan.limit, Limit::Bytes(1 << 30));
    assert_eq!(client("-c h -b 0").plan.target, None);
    let common = client("-c h -J -p 9 -B 192.0.2.1%eth0 -4").common;
    assert_eq!(
        (common.format, common.port, common.family),
        (Format::Json, 9, Some(hikyaku_reach::Family::V4))
    );
    assert_eq!(common.endpoint.socket.bind_device.as_deref(), Some("eth0"));
    assert_eq!(common.addresses(7), ["192.0.2.1:7".parse().unwrap()]);
}

#[test]
fn options_without_an_iperf3_counterpart_are_parsed() {
    let line = "-c h --policy fixed:2gbit --wire-rate 1gbit --cipher aes128gcm --stall 2@5 --copy";
    let args = client(&format!("{line} --streams object --reuse-path"));
    let transport = &args.common.transport;
    assert_eq!(transport.policy, Policy::Fixed(Rate::from_bits_per_sec(2_000_000_000)));
    assert_eq!(args.common.policy(), "fixed at 2.00 Gbit/s");
    assert_eq!(transport.wire_rate, Some(Rate::from_bits_per_sec(1_000_000_000)));
    assert_eq!(args.common.wire_target(), transport.wire_rate);
    assert_eq!(transport.ciphers.len(), 1);
    assert_eq!(args.plan.stall, Some(Stall { seconds: 2.0, at: 5.0 }));
    assert_eq!((args.plan.handling, args.plan.kind), (Handling::Copy, Kind::Object));
    let window = client("-c h -R --window 16MiB").common.transport;
    assert_eq!(window.receive_window.bytes(), 16 << 20);
    assert_eq!(window.initial_window, window.receive_window);
}

#[test]
fn invalid_command_lines_are_refused() {
    for line in [
        "",
        "-s -c h",
        "-s -R",
        "-s -t 5",
        "-c h -1",
        "-c h -t 0",
        "-c h -i 0.01",
        "-c h -t 5 -n 5",
        "-c h -P 0",
        "-c h -P 129",
        "-c h -b 1",
        "-c h -n 0",
        "-c h -l 2M",
        "-c h -4 -6",
        "-c h -J --json-stream",
        "-c h --policy fixed",
        "-c h --policy fixed:0",
        "-c h --policy greedy",
        "-c h --cipher none",
        "-c h --stall 5",
        "-c h -B nowhere",
        "-c h --dscp 64",
        "-c h --dscp af44",
        "-c h --dscp cs8",
        "-c h --peer-key MD5:00",
        "-c h --reuse-path --no-path-cache",
        "-c h --compete tcp",
        "-c h --compete tcp:1 -n 1G",
        "-c h --compete tcp:1 --stall 1@1",
        "-s --compete tcp:1",
        "-c h --no-compete",
        "-s --bidir",
        "-c h --bidir -R",
        "-c h --bidir --compete tcp:1",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}

#[test]
fn dscp_accepts_numbers_and_names() {
    for (text, number) in
        [("46", 46), ("EF", 46), ("cs1", 8), ("af11", 10), ("af41", 34), ("af43", 38), ("le", 1)]
    {
        assert_eq!(values::dscp(text), Ok(number), "{text}");
    }
}

#[test]
fn a_test_with_competitors_has_parts_and_a_default_omitted_time() {
    let plan = client("-c h -t 20 --compete tcp:4:cubic").plan;
    assert_eq!((plan.omit, plan.total_seconds()), (5.0, Some(40.0)));
    assert_eq!(plan.compete.as_ref().map(ToString::to_string).as_deref(), Some("tcp:4:cubic"));
    assert_eq!(client("-c h -t 20 -O 2 --compete tcp:1").plan.omit, 2.0);
    assert_eq!(client("-c h -O 2").plan.total_seconds(), Some(12.0));
    for line in [
        "-c h --compete tcp:65",
        "-c h --compete tcp:1 -t 2h",
        "-c h --compete tcp:1 -O 9",
        "-c h --compete tcp:1 -B %eth0",
        "-c h --compete hikyaku:1:scavenger -R",
    ] {
        assert!(parse(line).unwrap().role().is_err(), "{line}");
    }
    let Role::Server(server) = parse("-s --no-compete").unwrap().role().unwrap() else { panic!() };
    assert_eq!(server.rules.competitors, Competitors::Refused);
}

#[test]
fn an_option_without_effect_here_names_the_end_it_belongs_to() {
    // With --bidir both ends send and receive, so no option is misplaced.
    client("-c h --bidir --window 1M --wire-rate 1G --policy fixed:1G");
    for (line, option) in [
        ("-c h --window 1M", "--window"),
        ("-c h -R --wire-rate 1G", "--wire-rate"),
        ("-c h -R --policy fixed:1G", "--policy"),
    ] {
        let error = parse(line).unwrap().role().unwrap_err();
        let remedy = error.chain().map(ToString::to_string).find(|link| link.starts_with("try: "));
        assert!(remedy.is_some_and(|remedy| remedy.contains(option)), "{line}");
    }
}
