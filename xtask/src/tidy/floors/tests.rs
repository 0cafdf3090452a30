//! Wrong arrows are seen.

use super::*;

fn said(name: &str, dependencies: &[(&str, Option<&str>)]) -> Vec<String> {
    check(&[Package::for_test(name, dependencies)])
        .into_iter()
        .map(|finding| finding.text)
        .collect()
}

#[test]
fn arrows_down_are_fine() {
    assert!(said("hikyaku-proto", &[("hikyaku-wire", None), ("bytes", None)]).is_empty());
    assert!(said("hikyaku-sim", &[("hikyaku-proto", None), ("hikyaku-link", None)]).is_empty());
}

#[test]
fn arrows_up_or_sideways_are_not() {
    let up = said("hikyaku-wire", &[("hikyaku-proto", None)]);
    assert_eq!(up, ["hikyaku-wire may not know hikyaku-proto: not a lower floor"]);
    assert_eq!(said("hikyaku-wire", &[("hikyaku-cc", None)]).len(), 1);
}

#[test]
fn dev_arrows_obey_too() {
    assert_eq!(said("hikyaku-proto", &[("hikyaku-sim", Some("dev"))]).len(), 1);
}

#[test]
fn the_simulator_is_for_tests() {
    assert_eq!(said("hikyaku-perf", &[("hikyaku-sim", None)]).len(), 1);
    assert!(said("hikyaku-perf", &[("hikyaku-sim", Some("dev"))]).is_empty());
}

#[test]
fn pure_crates_use_pure_libraries() {
    let said = said("hikyaku-cc", &[("tokio", None), ("proptest", Some("dev"))]);
    assert_eq!(said, ["hikyaku-cc is pure and may not use tokio"]);
}

#[test]
fn a_new_crate_needs_a_floor() {
    assert_eq!(said("hikyaku-new", &[]), ["hikyaku-new has no floor in xtask's table"]);
}

#[test]
fn the_checks_know_no_product() {
    let text = "xtask may not know hikyaku-units: it checks a product that does not compile";
    assert_eq!(said("xtask", &[("hikyaku-units", None), ("clap", None)]), [text]);
    let bench = Package {
        manifest_path: "bench/harness/Cargo.toml".to_owned(),
        ..Package::for_test("hikyaku-bench-harness", &[("hikyaku-sim", None), ("xtask", None)])
    };
    assert!(check(&[bench]).is_empty());
}

#[test]
fn errors_without_kinds_are_for_users() {
    for (name, kind, count) in [
        ("hikyaku-copy", None, 0),
        ("hikyaku-console", None, 0),
        ("hikyaku-reach", None, 0),
        ("hikyaku-net", None, 1),
        ("hikyaku-net", Some("dev"), 0),
        ("hikyaku-mover", None, 1),
        ("hikyaku-capi", None, 1),
        ("hikyaku-python", None, 1),
    ] {
        assert_eq!(said(name, &[("anyhow", kind)]).len(), count, "{name} {kind:?}");
    }
}
