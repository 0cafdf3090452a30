//! Many independent operations on a store in one call ([`Store::batch`]), so that one behind a network gets them together.

use hikyaku_store::{ErrorKind, Op, Reply, Result, Store, StoreError, StorePath};

/// Operations of one call.
const OPS_MAX: usize = 1024;

/// Does the operations; the results in their order.
pub(crate) fn all(store: &dyn Store, ops: &[Op<'_>]) -> Vec<Result<Reply>> {
    let unanswered = || Err(StoreError::new("do", &StorePath::ROOT, ErrorKind::Gone));
    let mut results: Vec<Result<Reply>> = ops.iter().map(|_| unanswered()).collect();
    for (ops, results) in ops.chunks(OPS_MAX).zip(results.chunks_mut(OPS_MAX)) {
        store.batch(ops, &mut |index, result| results[index] = result);
    }
    results
}

/// What has each of these names; `None` if nothing has.
pub(crate) fn look<'a>(
    store: &dyn Store,
    paths: impl Iterator<Item = &'a StorePath>,
) -> Vec<Result<Option<hikyaku_store::Found>>> {
    let ops: Vec<Op<'_>> = paths.map(Op::Look).collect();
    let found = all(store, &ops).into_iter().map(|reply| match reply {
        Ok(Reply::Found(found)) => Ok(Some(found)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Ok(_) => Err(StoreError::new("look at", &StorePath::ROOT, ErrorKind::Damaged)),
        Err(error) => Err(error),
    });
    found.collect()
}

/// The numbers of these paths level by level: those of a level are independent of each other.
pub(crate) fn levels<'a>(paths: impl Iterator<Item = &'a StorePath>) -> Vec<Vec<usize>> {
    let mut levels: Vec<Vec<usize>> = Vec::new();
    for (number, path) in paths.enumerate() {
        let depth = path.names().count();
        levels.resize(levels.len().max(depth + 1), Vec::new());
        levels[depth].push(number);
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_store::Memory;

    fn path(text: &str) -> StorePath {
        StorePath::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn each_operation_gets_its_own_result() {
        let store = Memory::default();
        let paths: Vec<StorePath> = (0..500).map(|n| path(&format!("d{n}"))).collect();
        let ops: Vec<Op<'_>> = paths.iter().step_by(2).map(|at| Op::MakeDir(at, 0o755)).collect();
        assert!(all(&store, &ops).iter().all(Result::is_ok));
        let found = look(&store, paths.iter());
        assert!(
            found
                .iter()
                .enumerate()
                .all(|(n, found)| { found.as_ref().unwrap().is_some() == (n % 2 == 0) })
        );
        assert!(all(&store, &[]).is_empty());
    }

    #[test]
    fn a_directory_is_a_level_above_its_entries() {
        let paths = ["a", "a/b", "", "c", "a/b/c"].map(path);
        assert_eq!(levels(paths.iter()), [vec![2], vec![0, 3], vec![1], vec![4]]);
    }
}
