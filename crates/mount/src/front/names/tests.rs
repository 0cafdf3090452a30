//! Names in a directory that is given another path while the server is asked.

use super::super::testing::{Place, dir, file};
use crate::core::Core;
use crate::nodes::ROOT;
use crate::options::Checks;
use hikyaku_store::{ErrorKind, StorePath};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const THREAD: u32 = 7;

fn path(name: &str) -> StorePath {
    StorePath::new(name.as_bytes()).unwrap()
}

/// A mount of which the directory `a` is given the name `c` when the server is asked for a name in it first. `then` has the answers
/// of the server about other paths from then on.
fn renamed_at_the_first_question(
    then: impl Fn(&str) -> Result<u64, ErrorKind> + Send + 'static,
) -> Place {
    let core = Arc::<OnceLock<Arc<Core>>>::default();
    let renames = core.clone();
    let mut is_renamed = false;
    let place = Place::new((Duration::ZERO, Checks::Omitted), move |asked| {
        let asked = std::str::from_utf8(asked.as_bytes()).unwrap();
        if asked == "a" {
            return Ok(dir(50));
        }
        if !std::mem::replace(&mut is_renamed, true) {
            let core: &Arc<Core> = renames.get().unwrap();
            let mut state = core.state();
            for name in ["a", "c"] {
                state.note_change(&path(name));
            }
            state.nodes.rename(&path("a"), &path("c"));
        }
        then(asked).map(file)
    });
    assert!(core.set(place.core.clone()).is_ok());
    place
}

#[test]
fn a_name_is_found_in_a_directory_that_gets_another_path() {
    let place = renamed_at_the_first_question(|asked| match asked {
        "c/f" => Ok(100),
        _ => Err(ErrorKind::NotFound),
    });
    let a = place.look_up(THREAD, ROOT, "a").unwrap();
    let found = place.look_up(THREAD, a, "f").unwrap();
    assert_eq!(
        place.core.state().nodes.of_path(&path("c/f")).map(|(number, _)| number),
        Some(found)
    );
}

#[test]
fn a_name_of_another_directory_that_gets_the_path_is_not_found() {
    let place = renamed_at_the_first_question(|asked| match asked {
        "a/f" => Ok(100),
        _ => Err(ErrorKind::NotFound),
    });
    let a = place.look_up(THREAD, ROOT, "a").unwrap();
    assert_eq!(place.look_up(THREAD, a, "f"), Ok(0));
}
