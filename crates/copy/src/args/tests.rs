//! Command lines of scp's users.

use super::*;
use clap::Parser;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: CopyArgs,
}

fn parse(line: &str) -> Result<CopyArgs, clap::Error> {
    let words = std::iter::once("cp").chain(line.split_whitespace());
    Command::try_parse_from(words).map(|command| command.args)
}

#[test]
fn scps_command_lines_are_understood() {
    for line in [
        "a b:",
        "-r a b c host:/data/",
        "-346ABCOpqRrTv x y".replace("46", "4").as_str(),
        "-P 2222 -i key -i other -J gate -F cfg -o A=b -o C=d -l 8000 -S myssh -c aes -D x a b",
        "-P2222 -ikey -oA=b -l8000 a b:c",
        "-vvv scp://me@host:22/a .",
    ] {
        let args = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        args.locations(&Settings::default()).unwrap();
    }
    let args = parse("-pr -P 22 -v -v a b c:d").unwrap();
    assert!(args.scp.preserve && args.scp.recursive);
    let ssh = args.plan(&Settings::default()).unwrap().transport.way.ssh;
    assert_eq!((ssh.port, ssh.verbose), (Some(22), 2));
    assert_eq!(args.locations(&Settings::default()).unwrap().0.len(), 2);
    let old = parse("-C -O a b").unwrap();
    for id in ["compress", "old"] {
        assert!(old.given.ids().any(|given| given == id), "{id}");
    }
    let outputs = [("-I", Audience::Lines), ("-Iq", Audience::Quiet), ("-qI", Audience::Lines)];
    for (flags, output) in outputs {
        assert_eq!(parse(&format!("{flags} a b")).unwrap().audience(), output, "{flags}");
    }
}

#[test]
fn limits_are_scps() {
    assert_eq!(limit("8000"), Ok(Rate::from_bits_per_sec(8_000_000)));
    assert_eq!(limit("10MB"), Ok(Rate::from_bits_per_sec(80_000_000)));
    assert_eq!(limit("300m"), Ok(Rate::from_bits_per_sec(300_000_000)));
    for bad in ["0", "", "x", "-1", "99999999999999999999"] {
        assert!(limit(bad).is_err(), "{bad}");
    }
}

#[test]
fn ports_are_a_range() {
    assert_eq!(ports("60001-60999"), Ok(60001..=60999));
    assert_eq!(ports("7000"), Ok(7000..=7000));
    for bad in ["", "0", "9-8", "1-70000", "a-b"] {
        assert!(ports(bad).is_err(), "{bad}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for line in ["", "a", "-4 -6 a b", "--stats x a b", "--udp-ports 9-1 a b"] {
        assert!(parse(line).is_err(), "{line}");
    }
}
