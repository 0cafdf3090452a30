//! Text forms of all units, and arithmetic at the limits.

use super::*;
use alloc::string::ToString;
use core::time::Duration;

#[test]
fn rates_are_decimal_bits() {
    for text in ["1gbit", "1Gbit/s", "1G", "1000mbit", "1000000kbps", "1000000000"] {
        assert_eq!(text.parse(), Ok(Rate::from_bits_per_sec(1_000_000_000)), "{text}");
    }
    assert_eq!("110M".parse(), Ok(Rate::from_bits_per_sec(110_000_000)));
    for text in ["", "gbit", "-1G", "1x", "1e400", "99999999999999999999T"] {
        assert!(text.parse::<Rate>().is_err(), "{text}");
    }
}

#[test]
fn sizes_are_bytes_decimal_with_b() {
    assert_eq!("5MB".parse(), Ok(DataSize::from_bytes(5_000_000)));
    assert_eq!("5MiB".parse(), Ok(DataSize::from_bytes(5_242_880)));
    assert_eq!("1K".parse(), Ok(DataSize::from_bytes(1024)));
    assert!("5 parsecs".parse::<DataSize>().is_err());
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
