//! Tests of what differs.

use super::*;
use crate::options::Sizes;

const KNOWN: Known = Known { way: Way::Sent, content: Comparison::Differs };

fn meta(kind: Kind, size: u64, mode: u32, secs: i64) -> Meta {
    Meta { kind, size, mode, modified: Time { secs, nanos: 5 }, identity: None }
}

fn letters(source: &Meta, target: Option<&Meta>, options: &Options) -> String {
    change(source, target, KNOWN, options).map(|change| change.letters).unwrap_or_default()
}

#[test]
fn eleven_letters_say_what_differs() {
    let archive = Options { keeps_modes: true, keeps_times: true, ..Options::default() };
    let plain = Options::default();
    let file = |size, mode, modified| meta(Kind::File, size, mode, modified);
    let dir = |mode, modified| meta(Kind::Dir, 0, mode, modified);
    let link = |modified| meta(Kind::Link, 3, 0o777, modified);
    let cases = [
        (file(1, 0o644, 5), None, &archive, "<f+++++++++"),
        (dir(0o755, 5), None, &archive, "cd+++++++++"),
        (link(5), None, &archive, "cL+++++++++"),
        (file(1, 0o644, 5), Some(file(1, 0o644, 5)), &archive, ""),
        (file(1, 0o644, 5), Some(file(2, 0o644, 5)), &archive, "<f.s......."),
        (file(1, 0o644, 5), Some(file(1, 0o644, 6)), &archive, "<f..t......"),
        (file(1, 0o644, 5), Some(file(1, 0o644, 6)), &plain, "<f..T......"),
        (file(1, 0o644, 5), Some(file(1, 0o600, 5)), &archive, ".f...p....."),
        (dir(0o755, 5), Some(dir(0o700, 9)), &archive, ".d..tp....."),
        (dir(0o755, 5), Some(dir(0o700, 9)), &plain, ""),
        (link(5), Some(link(5)), &archive, "cLc........"),
        (link(5), Some(link(6)), &archive, "cLc.t......"),
    ];
    for (source, target, options, wanted) in cases {
        assert_eq!(letters(&source, target.as_ref(), options), wanted, "{source:?} {target:?}");
    }
    let known = Known { content: Comparison::Same, ..KNOWN };
    let no_links = Options { times: Times::NotOfLinks, ..archive.clone() };
    assert_eq!(change(&link(5), Some(&link(6)), known, &no_links), None);
}

#[test]
fn options_decide_what_is_left_alone() {
    let (old, new) = (meta(Kind::File, 1, 0, 5), meta(Kind::File, 2, 0, 9));
    let with = |set: fn(&mut Options)| {
        let mut options = Options::default();
        set(&mut options);
        options
    };
    let same = Meta { size: 1, ..new };
    let bigger = Meta { size: 3, ..old };
    let exact = Meta { modified: Time { secs: 5, nanos: 6 }, ..old };
    let cases = [
        (&old, Some(&new), with(|options| options.is_update = true), false),
        (&new, Some(&old), with(|options| options.is_update = true), true),
        (
            &same,
            Some(&old),
            with(|options| (options.is_update, options.window) = (true, Window::Seconds(3))),
            true,
        ),
        (
            &bigger,
            Some(&old),
            with(|options| (options.is_update, options.window) = (true, Window::Seconds(1))),
            false,
        ),
        (
            &bigger,
            Some(&old),
            with(|options| (options.is_update, options.window) = (true, Window::Seconds(0))),
            true,
        ),
        (&old, Some(&same), with(|options| options.quick = Quick::Size), false),
        (&old, Some(&old), with(|options| options.quick = Quick::Never), true),
        (&old, Some(&same), with(|options| options.window = Window::Seconds(4)), false),
        (&old, Some(&same), with(|options| options.window = Window::Seconds(3)), true),
        (&old, Some(&exact), with(|_| {}), false),
        (&old, Some(&old), with(|options| options.quick = Quick::Content), true),
        (&old, Some(&exact), with(|options| options.window = Window::Exact), true),
        (&new, None, with(|options| options.sizes = Sizes { min: 0, max: 1 }), false),
        (&old, None, with(|options| options.sizes = Sizes { min: 2, max: 9 }), false),
    ];
    for (source, target, options, goes) in cases {
        assert_eq!(!letters(source, target, &options).is_empty(), goes, "{target:?} {options:?}");
    }
}
