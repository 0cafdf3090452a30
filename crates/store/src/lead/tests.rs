//! Paths with links, and where they lead.

use super::*;

fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

/// A store with `d/f` and these links.
fn look(at: &StorePath) -> Result<Step, ()> {
    let links = [
        ("to-f", "d/f"),
        ("to-d", "d"),
        ("d/up", "../to-f"),
        ("d/root", ".."),
        ("out", "../x"),
        ("absolute", "/d/f"),
        ("nowhere", "d/nothing"),
        ("nowhere-deep", "nothing/deep"),
        ("ring", "rung"),
        ("rung", "ring"),
    ];
    let text = links.iter().find(|(name, _)| at.as_bytes() == name.as_bytes());
    Ok(match (text, at.as_bytes()) {
        (Some((_, text)), _) => Step::Link(text.as_bytes().to_vec()),
        (None, b"d" | b"d/f") => Step::Other,
        _ => Step::Nothing,
    })
}

#[test]
fn links_lead_to_what_they_say() {
    use End::{Away, Dangling, Nothing, There};
    for (named, led, end) in [
        ("d/f", "d/f", There),
        ("to-f", "d/f", There),
        ("to-d", "d", There),
        ("to-d/f", "d/f", There),
        ("to-d/new", "d/new", Nothing),
        ("d/up", "d/f", There),
        ("to-d/up", "d/f", There),
        ("d/root", "", There),
        ("d/root/to-f", "d/f", There),
        ("new", "new", Nothing),
        ("new/er", "new/er", Nothing),
        ("nowhere", "d/nothing", Dangling),
        ("nowhere-deep", "nothing/deep", Dangling),
        ("out", "out", Away),
        ("absolute", "absolute", Away),
        ("ring", "ring", Away),
    ] {
        let found = lead(&path(named), (Root::Somewhere, Last::Followed), look).unwrap();
        assert_eq!(found, Led { path: path(led), end }, "{named}");
    }
    let all = lead(&path("absolute"), (Root::OfAll, Last::Followed), look).unwrap();
    assert_eq!(all, Led { path: path("d/f"), end: There });
    let out = lead(&path("out"), (Root::OfAll, Last::Followed), look).unwrap();
    assert_eq!(out, Led { path: path("x"), end: Dangling });
}

#[test]
fn the_last_link_may_be_meant_itself() {
    for (named, led) in [("to-f", "to-f"), ("to-d/up", "d/up"), ("d/f", "d/f")] {
        let found = lead(&path(named), (Root::Somewhere, Last::Kept), look).unwrap();
        assert_eq!(found, Led { path: path(led), end: End::There }, "{named}");
    }
}
