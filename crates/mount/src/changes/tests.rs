//! Which answers are used after which changes.

use super::*;

fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

#[test]
fn an_answer_from_before_a_change_of_its_path_is_not_used() {
    let mut changes = Changes::default();
    let before = changes.turn();
    changes.name(&path("a/b"));
    let after = changes.turn();
    // (path, as a name, as a directory that was listed)
    let cases = [
        ("a/b", false, false),
        ("a/b/c", false, false),
        ("a/b/c/d", false, false),
        ("a", true, false),
        ("a/bc", true, true),
        ("a/c", true, true),
        ("", true, true),
    ];
    for (at, as_name, as_listing) in cases {
        assert_eq!(changes.serves(&path(at), before), as_name, "{at}");
        assert_eq!(changes.serves_entries(&path(at), before), as_listing, "{at}");
        assert!(changes.serves_entries(&path(at), after), "{at}");
    }
    changes.entries(&path("c"));
    assert!(changes.serves(&path("c/x"), after) && !changes.serves_entries(&path("c"), after));
}

#[test]
fn while_a_change_is_under_way_no_answer_about_its_path_is_used() {
    let mut changes = Changes::default();
    changes.begin(&path("d"));
    changes.begin(&path("d"));
    changes.end(&path("d"));
    let turn = changes.turn();
    assert!(!changes.serves(&path("d"), turn) && !changes.serves_entries(&path("d/e"), turn));
    assert!(changes.serves(&path("e"), turn) && changes.is_under_way(&path("d/e/f")));
    changes.end(&path("d"));
    assert!(changes.serves(&path("d/e"), turn) && !changes.is_under_way(&path("d")));
}

#[test]
fn what_is_forgotten_is_taken_for_changed() {
    let mut changes = Changes::default();
    let mut turns = Vec::new();
    for n in 0..PATHS_MAX {
        turns.push(changes.turn());
        changes.name(&path(&format!("d/{n}")));
    }
    assert!(changes.is_full());
    let (oldest, before) = (turns[PATHS_MAX - 2], turns[PATHS_MAX - 3]);
    changes.begin(&path("under/way"));
    changes.prune(oldest);
    assert!(!changes.is_full() && changes.paths.len() < 8);
    assert!(changes.serves(&path("x"), oldest) && !changes.serves(&path("x"), before));
    assert!(!changes.serves(&path(&format!("d/{}", PATHS_MAX - 1)), oldest));
    assert!(changes.is_under_way(&path("under/way")));
}
