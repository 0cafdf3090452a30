//! Pools: how many connections to one server carry files.

use super::*;
use crate::{Epoch, Pool, Tuning};
use hikyaku_store::ConnectionCount;
use hikyaku_tuner::{ClimbOptions, Controller};
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// The connections of one server.
#[derive(Default)]
struct Server {
    /// How many carry a request now, and how many did at most.
    busy: AtomicUsize,
    most: AtomicUsize,
    refused: AtomicUsize,
    rested: AtomicUsize,
}

/// A connection to a server that accepts a number of requests at once.
struct Connection {
    fetcher: Arc<dyn Fetcher>,
    server: Arc<Server>,
    accepted: usize,
}

impl Fetcher for Connection {
    fn traits(&self) -> FetcherTraits {
        let connections = ConnectionCount::Tuned;
        FetcherTraits { request_bytes: Some(1 << 20), connections, ..self.fetcher.traits() }
    }

    fn ranges(
        &self,
        file: &Wanted,
        asked: &Asked<'_>,
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(Segment<'_>),
    ) -> Result<usize, Unfetched> {
        let server = &self.server;
        let busy = server.busy.fetch_add(1, Ordering::SeqCst) + 1;
        let done = if busy > self.accepted {
            server.refused.fetch_add(1, Ordering::SeqCst);
            Err(Unfetched::Full)
        } else {
            server.most.fetch_max(busy, Ordering::SeqCst);
            // Other connections get requests meanwhile.
            thread::sleep(Duration::from_millis(20));
            self.fetcher.ranges(file, asked, cut, arrived, each)
        };
        server.busy.fetch_sub(1, Ordering::SeqCst);
        done
    }

    fn small(
        &self,
        files: &[&Wanted],
        cut: &Cut,
        arrived: &(dyn Fn(u64) + Sync),
        each: &mut dyn FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<(), Unfetched> {
        self.fetcher.small(files, cut, arrived, each)
    }

    fn limit(&self, rate: Option<Rate>) {
        self.fetcher.limit(rate);
    }

    fn round_trip(&self) -> Duration {
        Duration::ZERO
    }

    fn is_alive(&self) -> bool {
        true
    }

    fn rest(&self) {
        self.server.rested.fetch_add(1, Ordering::SeqCst);
    }

    fn close(&self, why: &str) {
        self.fetcher.close(why);
    }
}

/// Fetches a file by a pool of 8 connections with this rule. Its size is in MiB.
fn pooled(
    mib: usize,
    controller: Controller,
    accepted: usize,
    on_epoch: &(dyn Fn(&Epoch) + Sync),
) -> Server {
    let (source, target) = (Memory::default(), Arc::new(Memory::default()));
    let bytes = random(1, (mib << 20) + 17);
    put(&source, "f", &bytes);
    let found = source.look(&StorePath::new(b"f").unwrap()).unwrap();
    let store: Arc<dyn Store> = Arc::new(source);
    let server = Arc::new(Server::default());
    let connection = |fetcher| -> Arc<dyn Fetcher> {
        Arc::new(Connection { fetcher, server: server.clone(), accepted })
    };
    let servers: Vec<_> = fetchers(&store, 8).unwrap().into_iter().map(connection).collect();
    let census = store_census(&BTreeMap::from([(b"f".to_vec(), found)]), servers.len());
    let meter = Meter::new(servers.len());
    let tuning = Tuning::new(controller);
    let pool = Pool { servers: (0..8).map(ServerId).collect(), tuning, on_epoch };
    let fetched = tests::fetched_by(&servers, &[pool], &census, &target, &meter);
    assert!(fetched.failed.is_empty(), "{fetched:?}");
    assert!(get(&target, "f") == Some(bytes));
    drop(servers);
    Arc::into_inner(server).unwrap()
}

#[test]
fn a_fixed_number_of_connections_is_used() {
    let server = pooled(40, Controller::fixed(3), usize::MAX, &|_| ());
    assert_eq!(server.most.into_inner(), 3);
}

#[test]
fn a_server_that_grants_two_connections_is_left_with_two() {
    let server = pooled(60, Controller::fixed(8), 2, &|_| ());
    assert_eq!(server.most.into_inner(), 2);
    // At first all are tried; those that were refused rest.
    assert!(server.refused.into_inner() <= 12);
    assert!(server.rested.into_inner() >= 6);
}

#[test]
fn the_tuner_hears_of_epochs_and_decides_the_number() {
    let (epochs, has_grown) = (AtomicUsize::new(0), AtomicBool::new(false));
    let on_epoch = |epoch: &Epoch| {
        epochs.fetch_add(1, Ordering::SeqCst);
        has_grown.fetch_or(epoch.measured.connections > 1.5, Ordering::SeqCst);
    };
    let server =
        pooled(300, Controller::climb(&ClimbOptions { first: 1, cap: 8 }), usize::MAX, &on_epoch);
    // Each connection carries a segment in 20 ms: two carry twice as much as one.
    assert!(epochs.into_inner() > 1 && has_grown.into_inner());
    assert!(server.most.into_inner() > 1);
}
