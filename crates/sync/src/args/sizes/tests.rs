//! Tests of sizes and limits.

use super::*;

#[test]
fn sizes_are_rsyncs() {
    let cases = [
        ("7", 7),
        ("7b", 7),
        ("2k", 2048),
        ("2KB", 2000),
        ("2KiB", 2048),
        ("1m", 1 << 20),
        ("1.5k", 1536),
        (".5k", 512),
        ("1.", 1),
        ("1.999", 1),
        ("1.5001kb", 1500),
        ("10-1", 9),
        ("1k+1", 1025),
        ("1kib-1", 1023),
        ("1bb", 1),
        ("8191p", 8191 << 50),
        ("0", 0),
    ];
    for (text, bytes) in cases {
        assert_eq!(size(text), Ok(bytes), "{text}");
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
        " 5",
        "8192p",
        "99999999999p",
        "1.2.3",
    ];
    for text in bad {
        assert!(size(text).is_err(), "{text}");
    }
}

#[test]
fn limits_are_rsyncs() {
    let to = |bits| Ok(Limit::To(Rate::from_bits_per_sec(bits)));
    assert_eq!(limit("100"), to(819_200));
    assert_eq!(limit("1m"), to(8 << 20));
    assert_eq!(limit("1.5m"), to(12 << 20));
    assert_eq!(limit("0.5"), to(4096));
    assert_eq!((limit("0"), limit("0k")), (Ok(Limit::Unlimited), Ok(Limit::Unlimited)));
    for text in ["0.1", "511b", "x", "", "8191p"] {
        assert!(limit(text).is_err(), "{text}");
    }
}
