//! Batches: all lookups of a run go in a few requests, and each change has a thread that waits for its answers.

use crate::convert::found;
use crate::gfarm::{Gfarm, Trouble};
use crate::place::place;
use hikyaku_gfarm::{CallError, Each, Metadata};
use hikyaku_store::{Doing, Found, Kind, Op, Reply, Result, StorePath, do_at_once, doing, runs};

/// Changes under way at once.
const THREADS: usize = 16;

/// A lookup of a batch: its index and its path.
type Lookup<'a> = (usize, &'a StorePath);

impl Gfarm {
    /// [`Store::batch`](hikyaku_store::Store::batch).
    pub(crate) fn do_all(&self, ops: &[Op<'_>], each: &mut dyn FnMut(usize, Result<Reply>)) {
        for run in runs(ops) {
            let (mut looks, mut links, mut changes) = (Vec::new(), Vec::new(), Vec::new());
            for (index, op) in ops[run.clone()].iter().enumerate() {
                let index = run.start + index;
                match *op {
                    Op::Look(path) => looks.push((index, path)),
                    Op::ReadLink(path) => links.push((index, path)),
                    op => changes.push((index, op)),
                }
            }
            self.look_at_all(looks, each);
            self.read_all(links, each);
            do_at_once(self, &changes, THREADS, each);
        }
    }

    fn look_at_all(
        &self,
        mut lookups: Vec<Lookup<'_>>,
        each: &mut dyn FnMut(usize, Result<Reply>),
    ) {
        let looking = |path| doing("look at", path);
        // The name of a draft is not found.
        lookups.retain(|(index, path)| match *path == &StorePath::ROOT {
            true => true,
            false => place(looking(path)).map_err(|error| each(*index, Err(error))).is_ok(),
        });
        let stats = self.each_of(&lookups, looking, |session, paths| session.look(paths));
        let mut links = Vec::new();
        for ((index, path), stat) in lookups.into_iter().zip(stats) {
            match stat.map(|stat| found(&stat)) {
                // The size of a link is that of its text.
                Ok(found) if found.kind == Kind::Link => links.push(((index, path), found)),
                looked => each(index, looked.map(Reply::Found)),
            }
        }
        let lookups: Vec<Lookup<'_>> = links.iter().map(|(lookup, _)| *lookup).collect();
        let texts = self.each_of(&lookups, looking, |session, paths| session.read_links(paths));
        for (((index, _), found), text) in links.into_iter().zip(texts) {
            each(index, text.map(|text| Reply::Found(Found { size: text.len() as u64, ..found })));
        }
    }

    fn read_all(&self, lookups: Vec<Lookup<'_>>, each: &mut dyn FnMut(usize, Result<Reply>)) {
        let reading = |path| doing("read the link", path);
        let texts = self.each_of(&lookups, reading, |session, paths| session.read_links(paths));
        for ((index, _), text) in lookups.into_iter().zip(texts) {
            each(index, text.map(Reply::Text));
        }
    }

    /// One answer for each lookup.
    fn each_of<'a, T>(
        &self,
        lookups: &[Lookup<'a>],
        doing: impl Fn(&'a StorePath) -> Doing<'a>,
        question: impl Fn(&Metadata, &[&[u8]]) -> std::result::Result<Each<T>, CallError>,
    ) -> Vec<Result<T>> {
        if lookups.is_empty() {
            return Vec::new();
        }
        let paths: Vec<&[u8]> = lookups.iter().map(|(_, path)| path.as_bytes()).collect();
        let mut answers: Vec<std::result::Result<T, Trouble>> =
            match self.ask(|session| question(session, &paths)) {
                Ok((_, answers)) => {
                    answers.into_iter().map(|answer| answer.map_err(Trouble::from)).collect()
                }
                Err(trouble) => paths.iter().map(|_| Err(trouble.clone())).collect(),
            };
        answers.resize_with(paths.len(), || Err(Trouble::Away("gfmd gives no answer".to_owned())));
        lookups.iter().zip(answers).map(|((_, path), answer)| doing(path).or(answer)).collect()
    }
}
