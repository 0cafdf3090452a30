//! The numbers of connections: each server has one, which all files that are fetched at once share.

use crate::args::GetArgs;
use crate::queue::Queue;
use hikyaku_http::Url;
use hikyaku_mover::Tuning;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The rules of a command.
pub(crate) struct Tunings<'a> {
    args: &'a GetArgs,
    /// Files that are fetched at once, and the servers of the files that are known.
    at_once: usize,
    urls: Vec<String>,
    /// All files are known.
    is_counted: bool,
    /// By the server; one for all if the user has set the number.
    all: Mutex<BTreeMap<String, Tuning>>,
}

/// Servers, by their positions in a list, whose connections have one number.
pub(crate) struct Group {
    pub(crate) servers: Vec<usize>,
    /// Connections of one file at most.
    pub(crate) cap: u32,
    pub(crate) tuning: Tuning,
}

impl<'a> Tunings<'a> {
    /// For these files, `at_once` of which are fetched at once.
    pub(crate) fn new(args: &'a GetArgs, queue: &Queue<'_>, at_once: usize) -> Self {
        let urls = queue.known().flat_map(|job| &job.urls).map(|url| Self::key(args, url));
        let (urls, is_counted) = (urls.collect(), queue.is_counted());
        Self { args, at_once, urls, is_counted, all: Mutex::default() }
    }

    /// The groups of the servers of a file, in the order of these positions.
    pub(crate) fn groups(&self, urls: &[Url], order: &[usize]) -> Vec<Group> {
        let mut keys: Vec<(String, Vec<usize>)> = Vec::new();
        for at in order {
            let key = urls.get(*at).map(|url| Self::key(self.args, url)).unwrap_or_default();
            match keys.iter_mut().find(|(other, _)| *other == key) {
                Some((_, servers)) => servers.push(*at),
                None => keys.push((key, vec![*at])),
            }
        }
        let cap = self.args.cap();
        let of_one = cap / u32::try_from(keys.len()).unwrap_or(u32::MAX).max(1);
        if of_one == 0 {
            let tuning = self.tuning(String::new());
            return vec![Group { servers: order.to_vec(), cap, tuning }];
        }
        let group = |(key, servers)| Group { servers, cap: of_one, tuning: self.tuning(key) };
        keys.into_iter().map(group).collect()
    }

    fn tuning(&self, key: String) -> Tuning {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let new = |key: &String| {
            let mut others: Vec<&String> = self.urls.iter().filter(|other| *other != key).collect();
            let all_files = match self.is_counted {
                true => self.urls.len() - others.len(),
                false => usize::MAX,
            };
            let files = all_files.clamp(1, self.at_once.max(1));
            others.sort_unstable();
            others.dedup();
            let servers = (1 + others.len()).min(self.at_once.max(1));
            let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            let cap = (self.args.cap() / number(servers)).max(1);
            let files = (number(files), number(all_files));
            Tuning::new(self.args.new_controller(cap)).for_jobs(files)
        };
        all.entry(key).or_insert_with_key(new).clone()
    }

    /// The name of the server of a URL, if each has a number of its own.
    fn key(args: &GetArgs, url: &Url) -> String {
        if args.is_tuned_by_server() { url.origin.host_and_port() } else { String::new() }
    }
}
