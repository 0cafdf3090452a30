//! Lines of authorised keys.

use super::*;
use hikyaku_crypto::Identity;
use hikyaku_forward::Host;

fn key() -> (String, Fingerprint) {
    let key = Identity::generate().unwrap().public_key();
    (key.to_string(), key.fingerprint())
}

/// A share of which nothing is wanted.
fn none(most: u32) -> Share {
    Share::new(Default::default(), most)
}

#[test]
fn a_line_is_options_a_key_and_a_comment() {
    let ((one, one_print), (two, two_print)) = (key(), key());
    let text = format!(
        "# clients\n\n  {one} anna@lab, ro\nroot=\"/runs, of anna/\",ro,max-rate=100mbit {two}\n"
    );
    let keys = Keys::parse(&text).unwrap();
    assert_eq!(keys.0[&one_print], Permit::default());
    let root = StorePath::new(b"runs, of anna").unwrap();
    let max_rate = Some(Rate::from_bits_per_sec(100_000_000));
    assert_eq!(
        keys.0[&two_print],
        Permit { root: Some(root), max_rate, writes: Writes::Refused, ..Permit::default() }
    );
    assert_eq!(keys.0.len(), 2);
    // All of what the daemon serves, said in so many words.
    let all = Keys::parse(&format!("root=/ {one}")).unwrap();
    assert_eq!(all.0[&one_print].root, Some(StorePath::ROOT));
}

#[test]
fn a_client_reaches_what_both_lists_allow() {
    let (one, print) = key();
    let of_daemon: AllowList = ["*:80".parse().unwrap()].into_iter().collect();
    let may = |options: &str, daemon: &AllowList, host: &str, port| {
        let keys = Keys::parse(&format!("{options} {one}")).unwrap();
        let lists = keys.0[&print].flows(daemon, none)?.targets;
        let (host, address) = (Host::parse(host).unwrap(), "192.0.2.1".parse().unwrap());
        Some(lists.iter().all(|list| list.permits(&host, address, port)))
    };
    for (options, host, port, wanted) in [
        ("ro", "web", 80, Some(true)),
        ("ro", "web", 81, Some(false)),
        ("forward=web:*", "web", 80, Some(true)),
        ("forward=web:*", "web", 81, Some(false)),
        ("forward=web:*,forward=db:80", "db", 80, Some(true)),
        ("forward=web:*", "db", 80, Some(false)),
        ("no-forward", "web", 80, None),
    ] {
        assert_eq!(may(options, &of_daemon, host, port), wanted, "{options} {host} {port}");
    }
    assert_eq!(may("forward=*:*", &AllowList::default(), "web", 80), None);
}

#[test]
fn a_daemon_listens_for_a_key_only_where_its_line_says_so() {
    let (one, print) = key();
    let of_daemon: AllowList = ["*:80".parse().unwrap()].into_iter().collect();
    for (options, wanted) in [("ro", false), ("listen=127.0.0.1:8000", true)] {
        let keys = Keys::parse(&format!("{options} {one}")).unwrap();
        let listens = keys.0[&print].flows(&of_daemon, none).unwrap().listens;
        let address = "127.0.0.1".parse().unwrap();
        assert_eq!(listens.permits(&Host::Address(address), address, 8000), wanted, "{options}");
        assert!(!listens.permits(&Host::Address(address), address, 8001), "{options}");
    }
}

#[test]
fn a_line_that_is_none_is_named() {
    let key = key().0;
    for (line, words) in [
        ("nonsense".to_owned(), "public key"),
        (format!("root=../up {key}"), "root=../up"),
        (format!("no-write {key}"), "unknown option 'no-write'"),
        (format!("max-rate=fast {key}"), "max-rate=fast"),
        (format!("max-rate=0 {key}"), "more than nothing"),
        (format!("forward=web {key}"), "forward=web"),
        (format!("listen=80 {key}"), "listen=80"),
        (format!("max-flows=-1 {key}"), "max-flows=-1"),
        (format!("{key}\n{key} again"), "earlier line"),
        // What may seem to forbid something, and would not.
        (format!("root= {key}"), "root= has no value"),
        (format!("root {key}"), "root= has no value"),
        (format!("root=\"\" {key}"), "root= has no value"),
        (format!("root=/a,root=/b {key}"), "root is given twice"),
        (format!("max-rate=1g,ro,max-rate=2g {key}"), "max-rate is given twice"),
        (format!("ro,ro {key}"), "ro is given twice"),
        (format!("ro=no {key}"), "ro takes no value"),
        (format!("no-forward= {key}"), "no-forward takes no value"),
        (format!("forward= {key}"), "forward= has no value"),
        (format!("no-forward,forward=web:* {key}"), "forward= has no effect beside no-forward"),
        (format!("forward=web:*,no-forward {key}"), "forward= has no effect beside no-forward"),
        (format!("no-forward,listen=127.0.0.1:80 {key}"), "listen= has no effect"),
        (format!("max-flows=2,no-forward {key}"), "max-flows= has no effect"),
        (format!("max-flows=0 {key}"), "max-flows=0: no-forward"),
        (format!("max-sessions=0 {key}"), "max-sessions=0"),
        (format!("max-rate=100 {key}"), "max-rate=100: 100 needs a unit"),
        (format!("max-rate=10mb {key}"), "10mbit or 10MB"),
        (format!("ro,,root=/a {key}"), "an option is empty"),
        (format!(",ro {key}"), "an option is empty"),
        (format!("ro, root=/a {key}"), "behind a comma"),
        (format!("root=\"/a {key}"), "a double quote is not closed"),
        (format!("root=/a\"b\" {key}"), "around a whole value"),
    ] {
        let (number, error) = Keys::parse(&format!("\n{line}")).unwrap_err();
        assert!(error.contains(words), "{line}: {error}");
        assert_eq!(number, 1 + line.lines().count());
    }
}

#[test]
fn a_change_of_the_file_counts_at_once() {
    let path = std::env::temp_dir().join(format!("hikyaku-authorized-{}", std::process::id()));
    let ((one, one_print), (two, two_print)) = (key(), key());
    let has = |list: &Authorized| [one_print, two_print].map(|key| list.find(&key).is_some());
    fs::write(&path, format!("{one}\n")).unwrap();
    let list = Authorized::read(&path).unwrap();
    assert_eq!(has(&list), [true, false]);
    fs::write(&path, format!("{two} and a comment\n")).unwrap();
    assert_eq!(has(&list), [false, true]);
    fs::write(&path, "nonsense").unwrap();
    assert_eq!(has(&list), [false, true], "the last list holds");
    fs::remove_file(&path).unwrap();
    assert_eq!(has(&list), [false, true]);
}

#[test]
fn a_list_that_does_not_exist_is_empty_until_it_is_made() {
    let path = std::env::temp_dir().join(format!("hikyaku-no-list-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    let (one, print) = key();
    let list = Authorized::read(&path).unwrap();
    assert!(list.waits_for_keys() && list.find(&print).is_none());
    // A list with a mistake lets no client in, and keeps a daemon from starting.
    fs::write(&path, "nonsense").unwrap();
    assert!(list.find(&print).is_none() && Authorized::read(&path).is_err());
    fs::write(&path, "# nothing yet\n").unwrap();
    assert!(Authorized::read(&path).unwrap().waits_for_keys());
    fs::write(&path, format!("{one}\n")).unwrap();
    assert!(list.find(&print).is_some() && !list.waits_for_keys());
    fs::remove_file(&path).unwrap();
    assert!(!Authorized::read(Path::new("/dev/null")).unwrap().waits_for_keys());
}

#[test]
fn a_list_that_others_may_write_to_lets_nobody_in() {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::temp_dir().join(format!("hikyaku-open-list-{}", std::process::id()));
    let ((one, one_print), (two, two_print)) = (key(), key());
    fs::write(&path, format!("{one}\n")).unwrap();
    let open_to = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    for mode in [0o666, 0o620, 0o602] {
        open_to(mode);
        let error = format!("{:#}", Authorized::read(&path).unwrap_err());
        assert!(error.contains("other users may change it"), "{mode:o}: {error}");
        assert!(error.contains(&format!("try: chmod go-w {}", path.display())), "{error}");
    }
    open_to(0o644);
    let list = Authorized::read(&path).unwrap();
    // It is opened to others while the daemon runs: what they write does not count.
    fs::write(&path, format!("{two} by somebody else\n")).unwrap();
    open_to(0o666);
    assert!(list.find(&two_print).is_none());
    assert!(list.find(&one_print).is_some(), "the last list holds");
    fs::remove_file(&path).unwrap();
}
