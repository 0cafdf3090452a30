//! What a settings file says, and what is said of its mistakes.

use super::*;

static RATE: Key<u32> = Key {
    name: "rate",
    flag: "-l",
    default: "none",
    help: "The most a second",
    read: |text| text.parse().map_err(|_| "must be a number".to_owned()),
};
static NAME: Key<String> = Key {
    name: "name",
    flag: "--name",
    default: "me",
    help: "A name",
    read: |text| Ok(text.to_owned()),
};

fn keys() -> Keys {
    Keys::default().with(&RATE).with(&NAME)
}

#[test]
fn the_longest_pattern_wins_and_a_flag_before_it() {
    let settings = Settings::parse(
        "[default]\nrate = \"100\"\nname = true\n\
         [host.\"*.example.org\"]\nrate = 200\n\
         [host.\"fast.example.org\"]\nrate = 300\n",
        &keys(),
    )
    .unwrap();
    let found = |host| settings.find("rate", host).map(|(text, of)| (text, of.title.as_str()));
    assert_eq!(found("fast.example.org"), Some(("300", "host.\"fast.example.org\"")));
    assert_eq!(found("slow.example.org"), Some(("200", "host.\"*.example.org\"")));
    assert_eq!(found("elsewhere"), Some(("100", "default")));
    assert_eq!(settings.get(&RATE, "fast.example.org").unwrap(), Some(300));
    assert_eq!(settings.get(&NAME, "x").unwrap().as_deref(), Some("true"));
    assert_eq!(settings.resolve(Some(7), &RATE, "x").unwrap(), Some(7));
    assert_eq!(settings.resolve(None, &RATE, "x").unwrap(), Some(100));
    assert_eq!(Settings::default().get(&RATE, "x").unwrap(), None);
}

#[test]
fn a_name_is_registered_once() {
    assert_eq!(keys().with(&RATE).names().collect::<Vec<_>>(), ["rate", "name"]);
}

const KEY: &str = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

#[test]
fn a_cluster_has_hosts_keys_and_a_port() {
    let text = format!(
        "[cluster.store]\nhosts = [\"s[01-03].x\", \"t\"]\nkeys = \"{KEY}\"\nport = 5300\n\
         [cluster.small]\nhosts = \"a\"\n"
    );
    let settings = Settings::parse(&text, &keys()).unwrap();
    let store = settings.cluster("store").unwrap();
    assert_eq!(store.hosts, ["s01.x", "s02.x", "s03.x", "t"]);
    assert_eq!(store.keys, [KEY.parse().unwrap()]);
    assert_eq!(store.port.map(std::num::NonZeroU16::get), Some(5300));
    let small = settings.cluster("small").unwrap();
    assert_eq!(
        (small.hosts.as_slice(), small.keys.len(), small.port),
        (&["a".to_owned()][..], 0, None)
    );
    assert_eq!(settings.cluster("other"), None);
}

#[test]
fn what_is_wrong_is_named() {
    let cases = [
        ("rate = 1", "'rate': there are the sections"),
        ("host = 1", "'host' is no section"),
        ("default = 1", "'default' is no section"),
        ("[host]\nx = 1", "'host.\"x\"' is no section"),
        ("[default]\nrat = 1", "[default] rat: there is no such setting; there are rate, name"),
        ("[host.x]\nrate = \"fast\"", "[host.\"x\"] rate = \"fast\": must be a number"),
        ("[host.\"[\"]\nrate = 1", "'[' is not a pattern"),
        ("[default]\nrate = [1]", "[default] rate: must be a text, a number"),
        ("[default", "1"),
        ("cluster = 1", "'cluster' is no section"),
        ("[cluster]\nx = 1", "'cluster.x' is no section"),
        ("[cluster.x]\nport = 1", "[cluster.x] hosts: must name the servers"),
        ("[cluster.x]\nhosts = []", "[cluster.x] hosts: must name the servers"),
        ("[cluster.x]\nhosts = 1", "[cluster.x] hosts: must be a text"),
        ("[cluster.x]\nhosts = [1]", "[cluster.x] hosts: must be a text"),
        ("[cluster.x]\nhosts = \"-a\"", "[cluster.x] hosts = \"-a\": '-a' is not"),
        ("[cluster.x]\nhosts = [\"a[1-3]\", \"a2\"]", "a2 is named twice"),
        ("[cluster.x]\nhosts = [\"a[1-4000]\", \"b[1-4000]\"]", "more than 4096"),
        ("[cluster.x]\nhosts = \"a\"\nport = 0", "[cluster.x] port: must be a number"),
        ("[cluster.x]\nhosts = \"a\"\nport = 65536", "[cluster.x] port: must be a number"),
        ("[cluster.x]\nhosts = \"a\"\nkeys = \"b\"", "[cluster.x] keys = \"b\""),
        (
            "[cluster.x]\nhosts = \"a\"\nroot = \"/\"",
            "root: there is no such setting; there are hosts",
        ),
        ("[cluster.\"a:b\"]\nhosts = \"a\"", "the name of a cluster"),
    ];
    for (text, wanted) in cases {
        let error = Settings::parse(text, &keys()).expect_err(text).to_string();
        assert!(error.contains(wanted), "{text}: {error}");
    }
}
