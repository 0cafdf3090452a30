//! What the user may name, and the commands that come of it.

use super::super::taken::Network;
use super::*;

/// All rules.
fn all(taken: &Taken, cgroup: Option<&Cgroup>, table: &str) -> String {
    let source = Source::of(&taken.from, cgroup).unwrap();
    let marks = Marks::all().next().unwrap();
    let script = Script { taken, source, table, device: "hk7", port: 4000, marks };
    script.base() + &script.new_connections()
}

#[test]
fn rules_are_made_of_names_and_numbers_only() {
    for text in ["", "a b", "eth0;", "a\"", "0123456789abcdef", "a\n"] {
        assert!(text.parse::<Interface>().is_err(), "{text:?}");
    }
    for text in [
        "",
        "10.0.0.0/33",
        "10.0.0/8",
        "10.0.0.0/255",
        "::/129",
        "10.0.0.0/8 }",
        "web",
        "10.0.0.0/",
    ] {
        assert!(text.parse::<Network>().is_err(), "{text:?}");
    }
    for (text, wanted) in [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("192.0.2.1", "192.0.2.1/32"),
        ("2001:db8::1", "2001:db8::1/128"),
    ] {
        assert_eq!(text.parse::<Network>().unwrap().to_string(), wanted);
    }
    let of = |to: &[&str]| {
        let to = to.iter().map(|text| text.parse().unwrap()).collect();
        let taken = Taken { from: Clients::At("eth1".parse().unwrap()), to };
        all(&taken, None, "hikyaku_7")
    };
    let first = "tcp flags & (fin | syn | rst | ack) == syn";
    let text = of(&["10.0.0.0/8", "192.0.2.1", "2001:db8::/32"]);
    let wanted = [
        "add table inet hikyaku_7 { flags owner; }".to_owned(),
        "add chain inet hikyaku_7 new".to_owned(),
        "add chain inet hikyaku_7 take { type filter hook prerouting priority mangle; policy accept; }".to_owned(),
        format!(
            "add rule inet hikyaku_7 take iifname \"hk7\" meta nfproto ipv4 {first} tproxy ip to :4000 \
             meta mark set 26731 accept"
        ),
        format!(
            "add rule inet hikyaku_7 take iifname \"hk7\" meta nfproto ipv6 {first} tproxy ip6 to :4000 \
             meta mark set 26731 accept"
        ),
        "add rule inet hikyaku_7 take iifname \"eth1\" meta l4proto tcp socket transparent 1 meta mark \
         set 26731 accept".to_owned(),
        "add rule inet hikyaku_7 take iifname \"eth1\" jump new".to_owned(),
        format!(
            "add rule inet hikyaku_7 new ip daddr {{ 10.0.0.0/8, 192.0.2.1/32 }} {first} meta mark set 26732 accept"
        ),
        format!(
            "add rule inet hikyaku_7 new ip6 daddr {{ 2001:db8::/32 }} ip6 nexthdr tcp {first} meta mark set \
             26732 accept"
        ),
        "add rule inet hikyaku_7 new return comment \"the last one\"".to_owned(),
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), wanted);
    assert!(!of(&["10.0.0.0/8"]).contains("ip6"), "IPv6 is not touched without such a network");
}

#[test]
fn only_packets_of_the_command_are_taken_in() {
    let taken = Taken { from: Clients::OfCommand, to: vec!["10.0.0.0/8".parse().unwrap()] };
    let cgroup = Cgroup::for_test("user.slice/hikyaku-7", 2);
    let text = all(&taken, Some(&cgroup), "t");
    let flags = "tcp flags & (fin | syn | rst | ack)";
    let wanted = [
        "add table inet t { flags owner; }".to_owned(),
        "add chain inet t new".to_owned(),
        "add chain inet t take { type filter hook prerouting priority mangle; policy accept; }"
            .to_owned(),
        format!(
            "add rule inet t take iifname \"hk7\" meta nfproto ipv4 {flags} == syn tproxy ip to :4000 meta mark set \
             26731 accept"
        ),
        "add chain inet t send { type route hook output priority mangle; policy accept; }"
            .to_owned(),
        "add rule inet t send oifname \"lo\" return".to_owned(),
        format!(
            "add rule inet t send {flags} != syn ct direction original ct mark 26731 meta mark set 26731 accept"
        ),
        format!("add rule inet t send {flags} == syn ct mark 26731 ct mark set 0"),
        format!(
            "add rule inet t send {flags} == syn socket cgroupv2 level 2 \"user.slice/hikyaku-7\" jump new"
        ),
        format!(
            "add rule inet t new ip daddr {{ 10.0.0.0/8 }} {flags} == syn ct mark set 26731 meta mark set 26732 accept"
        ),
        "add rule inet t new return comment \"the last one\"".to_owned(),
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), wanted);
}
