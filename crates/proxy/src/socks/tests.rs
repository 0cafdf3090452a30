//! Requests as programs send them, cut at every byte, and the codes of the replies.

use super::*;

fn connect(asked: &Asked) -> Option<(usize, String)> {
    match asked {
        Asked::Connect(length, target) => Some((*length, target.to_string())),
        _ => None,
    }
}

#[test]
fn every_form_of_a_target_is_read_and_a_cut_request_waits() {
    let mut name = vec![5, 1, 0, 3, 9];
    name.extend(b"a.example\x01\xbb");
    let mut v6 = vec![5, 1, 0, 4];
    v6.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 80]);
    for (bytes, wanted) in [
        (vec![5, 1, 0, 1, 10, 0, 0, 1, 0, 80], "10.0.0.1:80"),
        (name, "a.example:443"),
        (v6, "[2001:db8::1]:80"),
    ] {
        assert_eq!(connect(&read_five(&bytes)), Some((bytes.len(), wanted.to_owned())));
        for length in 0..bytes.len() {
            assert_eq!(read_five(&bytes[..length]), Asked::Incomplete, "{wanted} {length}");
        }
        let longer = [bytes.as_slice(), b"data"].concat();
        assert_eq!(connect(&read_five(&longer)), Some((bytes.len(), wanted.to_owned())));
    }
    for (bytes, wanted) in [
        (b"\x04\x01\x00\x50\x0a\x00\x00\x01me\x00".as_slice(), "10.0.0.1:80"),
        (b"\x04\x01\x00\x50\x00\x00\x00\x07\x00a.example\x00", "a.example:80"),
    ] {
        assert_eq!(read_first(bytes).0, Version::Four);
        assert_eq!(connect(&read_first(bytes).1), Some((bytes.len(), wanted.to_owned())));
        for length in 1..bytes.len() {
            assert_eq!(read_first(&bytes[..length]).1, Asked::Incomplete, "{wanted} {length}");
        }
    }
}

#[test]
fn what_is_not_offered_is_refused_by_its_code() {
    for (bytes, code) in [
        (vec![5, 2, 0, 1, 10, 0, 0, 1, 0, 80], 7),
        (vec![5, 3, 0, 1, 10, 0, 0, 1, 0, 80], 7),
        (vec![5, 1, 0, 9, 10, 0, 0, 1, 0, 80], 8),
        (vec![5, 1, 0, 1, 10, 0, 0, 1, 0, 0], 1),
        (vec![5, 1, 0, 3, 1, b' ', 0, 80], 1),
        (vec![5, 1, 0, 3, 0, 0, 80], 1),
    ] {
        let Asked::Refused(reply) = read_five(&bytes) else { panic!("{bytes:?}") };
        assert_eq!((reply[1], reply.len()), (code, 10), "{bytes:?}");
    }
    assert_eq!(read_five(&[4, 1, 0, 1, 0]), Asked::Nonsense);
    // A password is all that this program offers.
    assert_eq!(read_first(&[5, 1, 2]).1, Asked::Refused(vec![5, 0xff]));
    assert_eq!(read_first(&[5, 2, 2, 0, 9]).1, Asked::Greeting(4, [5, 0]));
    assert_eq!(read_first(b"GET / HTTP/1.1").1, Asked::Nonsense);
    assert_eq!(read_first(&[4, 2, 0, 80, 10, 0, 0, 1, 0]).1, Asked::Refused(four(91)));
    assert_eq!(read_first(&[4; 300]).1, Asked::Nonsense, "a name without an end");
}

#[test]
fn each_verdict_has_its_code() {
    for (verdict, code) in [
        (Verdict::Connected, 0),
        (Verdict::Refused, 5),
        (Verdict::NetworkUnreachable, 3),
        (Verdict::HostUnreachable, 4),
        (Verdict::NameNotFound, 4),
        (Verdict::TimedOut, 6),
        (Verdict::NotAllowed, 2),
        (Verdict::OutOfResources, 1),
    ] {
        assert_eq!(reply(Version::Five, &Answer::failed(verdict, ""))[1], code, "{verdict}");
        let wanted = if code == 0 { 90 } else { 91 };
        assert_eq!(reply(Version::Four, &Answer::failed(verdict, ""))[1], wanted, "{verdict}");
    }
    let bound = Answer::connected(Some("[2001:db8::1]:8080".parse().unwrap()));
    assert_eq!(reply(Version::Five, &bound).len(), 22);
}
