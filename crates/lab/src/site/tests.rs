//! Tests of names, hosts and addresses.

use super::*;

fn layout(sites: &[&str]) -> Result<Layout, String> {
    Layout::new(sites.iter().map(|site| site.parse().unwrap()).collect())
}

#[test]
fn sites_are_parsed() {
    assert_eq!("tokyo:4".parse(), Site::new("tokyo", 4));
    assert_eq!("tokyo".parse(), Site::new("tokyo", 1));
    assert_eq!("s3x:64".parse(), Site::new("s3x", 64));
    for wrong in ["", ":3", "tokyo:", "tokyo:0", "tokyo:65", "tokyo:-1", "tokyo:x", "a-b:1"] {
        assert!(wrong.parse::<Site>().is_err(), "{wrong}");
    }
    // With digits at the end, host 1 of `a1` and host 11 of `a` would have the same name.
    for wrong in ["a1", "1a", "Tokyo", "to kyo", "averyveryverylongname"] {
        let error = wrong.parse::<Site>().unwrap_err();
        assert!(error.contains("not a site's name"), "{error}");
    }
}

#[test]
fn the_names_of_sites_are_unique() {
    assert!(layout(&["a:1"]).is_err());
    assert!(layout(&["a:1", "b:1"]).is_ok());
    assert!(layout(&["a:1", "b:2", "a:3"]).unwrap_err().contains("two sites 'a'"));
}

#[test]
fn a_hosts_name_maps_back_to_the_host() {
    let layout = layout(&["tokyo:2", "nict:11"]).unwrap();
    let names: Vec<_> = layout.hosts().map(|host| layout.name(host)).collect();
    assert_eq!(names[..4], ["tokyo1", "tokyo2", "nict1", "nict2"]);
    for host in layout.hosts().chain(layout.gateways()) {
        let name = layout.name(host);
        assert_eq!(layout.find(&name), Some(host));
        assert!(is_host_name(&name));
        assert_eq!(address::site_of(host.ipv4().into()), Some(host.site));
        assert_eq!(address::site_of(host.ipv6().into()), Some(host.site));
    }
    assert_eq!(layout.find("nict11").unwrap().ipv4().to_string(), "10.77.2.11");
    assert_eq!(layout.find("nict").unwrap().ipv4().to_string(), "10.77.2.254");
    for nobody in ["tokyo3", "tokyo0", "kyoto1", ""] {
        assert_eq!(layout.find(nobody), None, "{nobody}");
    }
}

#[test]
fn the_hosts_file_lists_all_hosts_and_gateways() {
    let text = layout(&["a:1", "b:1"]).unwrap().hosts_file();
    let ends = ["10.77.1.1 a1\n", "10.77.2.1 b1\n", "10.77.1.254 a\n", "10.77.2.254 b\n"];
    assert!(text.ends_with(&ends.concat()), "{text}");
}

#[test]
fn a_pair_names_two_sites_of_the_lab() {
    let layout = layout(&["a:1", "b:1", "c:1"]).unwrap();
    let pair = |text: &str| layout.pair(&text.parse()?);
    assert_eq!(pair("a-c"), Ok((0, 2)));
    assert_eq!(pair("c-a"), Ok((2, 0)));
    assert!(pair("a-d").unwrap_err().contains("no site 'd'"));
    for wrong in ["a", "a-a", "a-", "a-b-c", "a1-b"] {
        assert!(pair(wrong).unwrap_err().contains("not two sites"), "{wrong}");
    }
}
