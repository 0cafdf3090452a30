//! Text forms of all units, and arithmetic at the limits.

use super::*;
use alloc::string::ToString;
use core::time::Duration;

#[test]
fn the_case_of_b_decides_between_bits_and_bytes() {
    let cases = [
        (
            100_000_000,
            &["100m", "100M", "100mbit", "100Mb", "100Mbit/s", "100Mbps", "0.1g", "100000 kbits"][..],
        ),
        (80_000_000, &["10MB", "10MB/s", "10mB", "10MBps", "0.01GB"]),
        (83_886_080, &["10MiB", "10miB", "10MiB/s"]),
        (8, &["1B", "8b", "8bit", "8 bit/s"]),
        (0, &["0", "0.0"]),
    ];
    for (bits, texts) in cases {
        for text in texts {
            assert_eq!(text.parse(), Ok(Rate::from_bits_per_sec(bits)), "{text}");
        }
    }
    for text in [
        "",
        "gbit",
        "-1G",
        "1x",
        "1e400",
        "99999999999999999999T",
        "1 parsec",
        "1/s",
        "1ps",
        "1.2.3m",
    ] {
        assert!(text.parse::<Rate>().is_err(), "{text}");
    }
}

#[test]
fn an_unclear_rate_is_refused_with_both_meanings() {
    let said = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
    assert_eq!(said("10mb"), "10mb may be bits or bytes: 10mbit or 10MB");
    assert_eq!(said("1.5gb/s"), "1.5gb/s may be bits or bytes: 1.5gbit or 1.5GB");
    assert_eq!(said("10mbps"), "10mbps may be bits or bytes: 10mbit or 10MB");
    assert_eq!(said("10kib"), "10kib may be bits or bytes: 10kibit or 10KiB");
    assert_eq!(said("100"), "100 needs a unit: 100mbit or 100MB");
}

#[test]
fn bare_numbers_and_prefixes_are_those_of_the_guest() {
    use RateRule::{Curl, Iperf3, Rsync, Scp};
    let cases = [
        (Scp, "8000", 8_000_000),
        (Scp, "8m", 8_000_000),
        (Iperf3, "8000", 8000),
        (Iperf3, "8M", 8_000_000),
        (Rsync, "100", 819_200),
        (Rsync, "1.5m", 12 << 20),
        (Rsync, "1mb", 8_000_000),
        (Rsync, "1Mb", 8_000_000),
        (Rsync, "1MiB", 8 << 20),
        (Rsync, "600b", 4800),
        (Curl, "1000", 8000),
        (Curl, "2k", 16 << 10),
        (Curl, "1G", 8 << 30),
        (Curl, "1000b", 8000),
    ];
    for (rule, text, bits) in cases {
        assert_eq!(Rate::parse(text, rule), Ok(Rate::from_bits_per_sec(bits)), "{rule:?} {text}");
    }
    for rule in [Scp, Iperf3, Rsync, Curl] {
        assert_eq!(Rate::parse("10MB", rule), Ok(Rate::from_bits_per_sec(80_000_000)), "{rule:?}");
        assert_eq!(
            Rate::parse("10mbit", rule),
            Ok(Rate::from_bits_per_sec(10_000_000)),
            "{rule:?}"
        );
        assert_eq!(Rate::parse("10mb", rule).is_ok(), rule == Rsync, "{rule:?}");
        assert!(Rate::parse_limit("0", rule).is_err(), "{rule:?}");
    }
    assert!(Rate::parse("8191p", Rsync).is_err());
}

#[test]
fn sizes_are_bytes_decimal_with_b() {
    let cases = [
        ("7", 7),
        ("7b", 7),
        ("5MB", 5_000_000),
        ("5mb", 5_000_000),
        ("5MiB", 5 << 20),
        ("5mib", 5 << 20),
        ("1K", 1024),
        ("2KB", 2000),
        ("1.5k", 1536),
        (".5k", 512),
        ("1.", 1),
        ("1.999", 1),
        ("1.5001kb", 1500),
        ("10-1", 9),
        ("1k+1", 1025),
        ("1kib-1", 1023),
        ("0", 0),
    ];
    for (text, bytes) in cases {
        assert_eq!(text.parse(), Ok(DataSize::from_bytes(bytes)), "{text}");
    }
    let bad = [
        "",
        "k",
        ".",
        "2x",
        "2kbb",
        "-1",
        "0-1",
        "+5",
        "1,5k",
        "10-2",
        "1k-",
        "1e3",
        "99999999999p",
        "1.2.3",
        "5 parsecs",
        "8mbit",
        "8bits",
    ];
    for text in bad {
        assert!(text.parse::<DataSize>().is_err(), "{text}");
    }
}

#[test]
fn durations_and_probabilities() {
    assert_eq!(parse_duration("200ms"), Ok(Duration::from_millis(200)));
    assert_eq!(parse_duration("1.5"), Ok(Duration::from_millis(1500)));
    assert!(parse_duration("3 fortnights").is_err());
    assert_eq!(parse_timeout("200ms"), Ok(Duration::from_millis(200)));
    assert!(parse_timeout("0").is_err() && parse_timeout("0h").is_err());
    assert_eq!(parse_limit("8k"), Ok(Rate::from_bits_per_sec(8000)));
    assert!(parse_limit("0").is_err() && parse_limit("0.1").is_err());
    assert_eq!("1%".parse(), Ok(Probability::new(0.01)));
    assert_eq!("0.5".parse(), Ok(Probability::new(0.5)));
    assert!("2".parse::<Probability>().is_err());
}

#[test]
fn a_rate_and_a_size_give_a_time() {
    let rate = Rate::from_bits_per_sec(1_000_000_000);
    assert_eq!(rate.time_for(DataSize::from_bytes(125_000_000)), Duration::from_secs(1));
    assert_eq!(rate.in_time(Duration::from_millis(200)), DataSize::from_bytes(25_000_000));
    assert_eq!(Rate::of(DataSize::from_bytes(125), Duration::from_micros(1)), rate);
    assert_eq!(Rate::ZERO.time_for(DataSize::from_bytes(1)), Duration::MAX);
}

#[test]
fn instants_never_underflow() {
    let early = Instant::from_millis(1);
    let late = Instant::from_millis(3);
    assert_eq!(late - early, Duration::from_millis(2));
    assert_eq!(early - late, Duration::ZERO);
    assert_eq!(early.before(Duration::from_secs(1)), Instant::ZERO);
}

#[test]
fn printing() {
    assert_eq!("928.5mbit".parse::<Rate>().unwrap().to_string(), "928 Mbit/s");
    assert_eq!(Rate::from_bits_per_sec(1_500_000_000).to_string(), "1.50 Gbit/s");
    assert_eq!(DataSize::from_bytes(25_000_000).to_string(), "25.0 MB");
    assert_eq!(DurationText(Duration::from_micros(1500)).to_string(), "1.5ms");
}

#[test]
fn one_is_no_plural() {
    let said = [0_u64, 1, 2].map(|count| counted(count, "file").to_string());
    assert_eq!(said, ["0 files", "1 file", "2 files"]);
}
