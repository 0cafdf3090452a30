//! Code, headings, links and inline code are told apart.

use super::*;

fn texts(pieces: &[Piece]) -> Vec<(usize, &str)> {
    pieces.iter().map(|piece| (piece.line, piece.text.as_str())).collect()
}

#[test]
fn a_code_block_is_no_text() {
    let kinds: Vec<LineKind> =
        lines("a\n```sh\n# b\n~~~\n```\nc").iter().map(|line| line.kind).collect();
    use LineKind::{Code, Fence, Text};
    assert_eq!(kinds, [Text, Fence, Code, Code, Fence, Text]);
}

#[test]
fn headings_have_levels_and_names() {
    let text =
        "# One\n```sh\n# a comment\n```\n#tag\n## `two` & three_4: (5)\n### One\n## Ort 名前\n";
    let found: Vec<_> = lines(text).iter().filter_map(heading).collect();
    assert_eq!(found, [(1, "One"), (2, "`two` & three_4: (5)"), (3, "One"), (2, "Ort 名前")]);
    assert_eq!(heading_anchors(text), ["one", "two--three_4-5", "one-1", "ort-名前"]);
}

#[test]
fn links_stand_outside_of_code() {
    let text = "See [a](b.md#c) and\n![d](e.svg \"f\").\n\n`[g](h.md)`\n\n```\n[i](j.md)\n```\n[k]: l.md\n\
                <img src=\"m.png\">\n";
    assert_eq!(
        texts(&link_targets(text)),
        [(1, "b.md#c"), (2, "e.svg"), (9, "l.md"), (10, "m.png")]
    );
}

#[test]
fn inline_code_may_go_over_lines() {
    let text = "A `b\nc` and `d/e.rs`.\n\n`f`\n```\n`g`\n```\n";
    assert_eq!(texts(&inline_code(text)), [(1, "b\nc"), (2, "d/e.rs"), (4, "f")]);
    assert_eq!(without_inline_code("a `b` c `d`, `e"), "a x c x, `e");
}
