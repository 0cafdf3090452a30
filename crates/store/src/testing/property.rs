//! Random operations on three names and two directories, compared with a model that maps paths to
//! bytes.

use super::{Case, Rig, get, path, random, why};
use crate::{Access, ErrorKind, Finish, Kind, Make, Naming, Replace, Store, StorePath};
use std::collections::BTreeMap;

pub(super) const CASES: &[Case] =
    &[Case { name: "random operations have the effect of the model's", run: random_operations }];

const STEPS: usize = 60;
const SIZE_MAX: usize = 64 << 10;

/// The bytes of each file; `None` for a directory.
type Model = BTreeMap<String, Option<Vec<u8>>>;

fn random_operations(rig: &dyn Rig) {
    for seed in 0..rig.seeds() {
        let store = rig.store();
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut model = Model::new();
        for step in 0..STEPS {
            // Each operation uses another store over the same storage.
            let store = rig.store();
            one(&*store, &mut model, &mut rng);
            compare(&*store, &model, (seed, step));
        }
        clear(&*store, &model);
    }
}

fn name(rng: &mut fastrand::Rng) -> String {
    let file = ["a", "b", "c"][rng.usize(..3)];
    match rng.u8(..5) {
        0 => "d".to_owned(),
        1 => "e".to_owned(),
        2 => format!("d/{file}"),
        3 => format!("e/{file}"),
        _ => file.to_owned(),
    }
}

fn is_dir(model: &Model, at: &str) -> Option<bool> {
    model.get(at).map(Option::is_none)
}

/// Whether the directory of a path exists.
fn has_parent(model: &Model, at: &str) -> bool {
    at.rsplit_once('/').is_none_or(|(dir, _)| is_dir(model, dir) == Some(true))
}

fn has_children(model: &Model, at: &str) -> bool {
    let prefix = format!("{at}/");
    model.keys().any(|other| other.starts_with(&prefix))
}

fn one(store: &dyn Store, model: &mut Model, rng: &mut fastrand::Rng) {
    let at = name(rng);
    let there = is_dir(model, &at);
    let able = store.abilities();
    match rng.u8(..8) {
        0 => {
            let made = store.make_dir(&path(&at), 0o755);
            if there.is_none() && has_parent(model, &at) {
                made.unwrap();
                model.insert(at, None);
            } else {
                assert!(made.is_err(), "{at}");
            }
        }
        1 | 2 => {
            let bytes = random(rng.u64(..), rng.usize(..SIZE_MAX));
            let named = store.create(&path(&at), &Make::default()).and_then(|draft| {
                draft.write_at(0, &bytes)?;
                draft.name(Naming::Replace, &Finish::default())
            });
            if has_parent(model, &at) && there != Some(true) {
                named.unwrap();
                model.insert(at, Some(bytes));
            } else {
                assert!(named.is_err(), "{at}");
            }
        }
        3 | 4 => {
            let kind = if rng.bool() { Kind::File } else { Kind::Dir };
            let removed = store.remove(&path(&at), kind);
            let is_it = there == Some(kind == Kind::Dir);
            if is_it && !has_children(model, &at) {
                removed.unwrap();
                model.remove(&at);
            } else {
                assert!(removed.is_err(), "{at}");
            }
        }
        5 if able.rename => {
            let to = name(rng);
            rename(store, model, &at, &to);
        }
        _ if able.update => {
            let opened = store.open(&path(&at), Access::Update);
            if there != Some(false) {
                let wanted = if there.is_some() { ErrorKind::IsDir } else { ErrorKind::NotFound };
                let got = why(opened.map(drop));
                let is_wanted = got == Some(wanted) || got == Some(ErrorKind::NotDir);
                assert!(is_wanted, "{at}: {got:?}");
                return;
            }
            let open = opened.unwrap();
            let (from, bytes) = (rng.usize(..SIZE_MAX), random(rng.u64(..), rng.usize(1..9000)));
            open.write_at(from as u64, &bytes).unwrap();
            let Some(Some(content)) = model.get_mut(&at) else { return };
            let length = content.len().max(from + bytes.len());
            content.resize(length, 0);
            content[from..from + bytes.len()].copy_from_slice(&bytes);
            if rng.bool() {
                let length = rng.usize(..SIZE_MAX);
                open.set_len(length as u64).unwrap();
                content.resize(length, 0);
            }
        }
        _ => {}
    }
}

fn rename(store: &dyn Store, model: &mut Model, from: &str, to: &str) {
    let renamed = store.rename(&path(from), &path(to), Replace::Allowed);
    let below = to.starts_with(&format!("{from}/"));
    let (old, new) = (is_dir(model, from), is_dir(model, to));
    let fits = match (old, new) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(a), Some(b)) => a == b && (!b || from == to || !has_children(model, to)),
    };
    if !fits || below || !has_parent(model, to) {
        assert!(renamed.is_err(), "{from} to {to}");
        return;
    }
    renamed.unwrap();
    if from == to {
        return;
    }
    let prefix = format!("{from}/");
    let moved: Vec<String> = model
        .keys()
        .filter(|other| *other == from || other.starts_with(&prefix))
        .cloned()
        .collect();
    for other in moved {
        let entry = model.remove(&other).flatten();
        model.insert(format!("{to}{}", &other[from.len()..]), entry);
    }
}

fn compare(store: &dyn Store, model: &Model, at: (u64, usize)) {
    let mut found = Model::new();
    let mut open = vec![StorePath::ROOT];
    while let Some(dir) = open.pop() {
        for item in store.list(&dir, None, 1000).unwrap().items {
            let path = dir.join(&item.name).unwrap();
            let text = String::from_utf8(path.as_bytes().to_vec()).unwrap();
            let content = match item.found.kind {
                Kind::Dir => {
                    open.push(path);
                    None
                }
                _ => Some(get(store, &text)),
            };
            found.insert(text, content);
        }
    }
    assert!(found == *model, "seed {}, step {}: {:?}", at.0, at.1, found.keys());
}

fn clear(store: &dyn Store, model: &Model) {
    for (at, content) in model.iter().rev() {
        let kind = if content.is_none() { Kind::Dir } else { Kind::File };
        store.remove(&path(at), kind).unwrap();
    }
}
