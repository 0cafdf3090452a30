//! Transfers from several servers in this process.

use super::*;
use hikyaku_net::Side;
use hikyaku_pipes::{Config, Pipe};
use hikyaku_reach::Connection;
use hikyaku_remote::{Client, Limits, RemoteError, Server};
use hikyaku_store::{
    Access, Change, Fetcher, Finish, Make, Memory, Naming, Store, StorePath, Time,
};
use hikyaku_units::Rate;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

/// Servers over these stores, each at most at its rate.
pub(crate) struct Cluster {
    pub(crate) clients: Vec<Client>,
    pub(crate) ends: Vec<Connection>,
}

impl Cluster {
    fn servers(&self) -> Vec<Arc<dyn Fetcher>> {
        let fetcher = |client: &Client| -> Arc<dyn Fetcher> { Arc::new(client.clone()) };
        self.clients.iter().map(fetcher).collect()
    }
}

fn cluster(stores: Vec<(Arc<Memory>, Option<Rate>)>) -> Cluster {
    cluster_with(stores, Limits::default())
}

pub(crate) fn cluster_with(stores: Vec<(Arc<Memory>, Option<Rate>)>, limits: Limits) -> Cluster {
    let (mut clients, mut ends) = (Vec::new(), Vec::new());
    for (store, rate) in stores {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let end = |socket: UnixStream, side| {
            let pipe = Pipe::new(socket.try_clone().unwrap(), socket);
            let pipes = hikyaku_pipes::Connection::new(vec![pipe], side, Config::default());
            let connection = Connection::from(pipes.unwrap());
            connection.set_payload_rate(rate);
            connection
        };
        let theirs = end(theirs, Side::Server);
        ends.push(theirs.clone());
        thread::spawn(move || Server::new(store, limits).attend(theirs));
        clients.push(Client::new(end(ours, Side::Client)).unwrap());
    }
    Cluster { clients, ends }
}

/// Servers over these stores, without a limit.
pub(crate) fn cluster_of(stores: &[Arc<Memory>]) -> Cluster {
    cluster(stores.iter().map(|store| (store.clone(), None)).collect())
}

pub(crate) fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

pub(crate) fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| rng.u8(..)).collect()
}

pub(crate) fn put(store: &Memory, at: &str, bytes: &[u8]) {
    let draft = store.create(&path(at), &Make::default()).unwrap();
    draft.write_at(0, bytes).unwrap();
    let modified = Some(Time { secs: 1_000_000, nanos: 5 });
    draft.name(Naming::Replace, &Finish { modified, ..Finish::default() }).unwrap();
}

pub(crate) fn get(store: &Memory, at: &str) -> Option<Vec<u8>> {
    let open = store.open(&path(at), Access::Read).ok()?;
    let mut bytes = vec![0; open.found().unwrap().size as usize];
    open.read_at(0, &mut bytes).unwrap();
    Some(bytes)
}

pub(crate) fn run(cluster: &Cluster, target: &Arc<Memory>) -> Fetched {
    let census = census(&cluster.clients, &StorePath::ROOT);
    fetched(cluster, &census, target, &Meter::new(cluster.clients.len()))
}

/// A census whose names are those at the target.
pub(crate) fn same_names(census: Census) -> Plan {
    let Census { dirs, links, files, left_out, lost } = census;
    let dirs = dirs.into_iter().map(|(path, meta)| (path.into(), meta)).collect();
    let links = links.into_iter().map(|(path, link)| (path.into(), link)).collect();
    Plan { dirs, links, files, left_out, lost, ..Plan::default() }
}

fn fetched(cluster: &Cluster, census: &Census, target: &Arc<Memory>, meter: &Meter) -> Fetched {
    fetched_with(cluster, census, target, meter, Parameters::default())
}

pub(crate) fn fetched_with(
    cluster: &Cluster,
    census: &Census,
    target: &Arc<impl Store + 'static>,
    meter: &Meter,
    parameters: Parameters,
) -> Fetched {
    fetched_from(&cluster.servers(), census, target, meter, parameters)
}

/// Fetches all files of a census by these channels.
pub(crate) fn fetched_from(
    servers: &[Arc<dyn Fetcher>],
    census: &Census,
    target: &Arc<impl Store + 'static>,
    meter: &Meter,
    parameters: Parameters,
) -> Fetched {
    fetched_over((servers, &[]), census, target, meter, parameters)
}

/// The same by pools of connections.
pub(crate) fn fetched_by(
    servers: &[Arc<dyn Fetcher>],
    pools: &[Pool<'_>],
    census: &Census,
    target: &Arc<impl Store + 'static>,
    meter: &Meter,
) -> Fetched {
    fetched_over((servers, pools), census, target, meter, Parameters::default())
}

fn fetched_over(
    (servers, pools): (&[Arc<dyn Fetcher>], &[Pool<'_>]),
    census: &Census,
    target: &Arc<impl Store + 'static>,
    meter: &Meter,
    parameters: Parameters,
) -> Fetched {
    let fetched = fetch(&Job {
        pools,
        dress: crate::Dress::Usual { umask: 0 },
        times: crate::Times::Kept,
        same: crate::Same::SizeAndTime,
        patience: Duration::from_millis(300),
        parameters,
        ..Job::new(
            servers,
            &same_names(census.clone()),
            target.clone(),
            (meter, &AtomicBool::new(false)),
        )
    });
    fetched.unwrap()
}

/// Names of files and their contents.
pub(crate) type Files = Vec<(String, Vec<u8>)>;

/// Files of many sizes, each on two of three servers.
pub(crate) fn stores() -> (Vec<Arc<Memory>>, Files) {
    let stores: Vec<_> = (0..3).map(|_| Arc::new(Memory::default())).collect();
    let mut files = Vec::new();
    for store in &stores {
        store.make_dir(&path("d"), 0o755).unwrap();
    }
    for n in 0..60 {
        let size = [0, 1, 300, 70_000, 300_000, 3 << 20, (5 << 20) + 17][n % 7];
        let (name, bytes) = (format!("d/file {n}"), random(n as u64, size));
        for store in [&stores[n % 3], &stores[(n + 1) % 3]] {
            put(store, &name, &bytes);
        }
        files.push((name, bytes));
    }
    stores[0].make_link(&path("d/link"), b"file 1").unwrap();
    (stores, files)
}

#[test]
fn every_file_arrives_from_several_servers() {
    let (stores, files) = stores();
    let cluster = cluster(stores.into_iter().map(|store| (store, None)).collect());
    let target = Arc::new(Memory::default());
    let fetched = run(&cluster, &target);
    assert_eq!((fetched.files, fetched.failed.len()), (60, 0), "{:?}", fetched.failed);
    for (name, bytes) in files {
        assert!(get(&target, &name) == Some(bytes), "{name}");
        let found = target.look(&path(&name)).unwrap();
        assert_eq!(found.modified, Time { secs: 1_000_000, nanos: 5 });
    }
    assert_eq!(target.read_link(&path("d/link")).unwrap(), b"file 1");
    assert_eq!(target.look(&path("d")).unwrap().mode, 0o755);
}

#[test]
fn a_server_that_dies_is_replaced_by_the_others() {
    let (stores, files) = stores();
    let rate = Some(Rate::from_bits_per_sec(200_000_000));
    let cluster = cluster(stores.into_iter().map(|store| (store, rate)).collect());
    let target = Arc::new(Memory::default());
    let killed = cluster.ends[1].clone();
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(400));
        killed.close(1, "killed");
    });
    let fetched = run(&cluster, &target);
    killer.join().unwrap();
    assert_eq!((fetched.files, fetched.failed.len()), (60, 0), "{:?}", fetched.failed);
    for (name, bytes) in files {
        assert!(get(&target, &name) == Some(bytes), "{name}");
    }
}

#[test]
fn a_file_that_only_dead_servers_have_fails_and_the_others_arrive() {
    let (stores, _) = stores();
    put(&stores[1], "only here", &random(9, 2 << 20));
    let cluster = cluster(stores.into_iter().map(|store| (store, None)).collect());
    let census = census(&cluster.clients, &StorePath::ROOT);
    cluster.ends[1].close(1, "killed");
    let target = Arc::new(Memory::default());
    let meter = Meter::new(3);
    let fetched = fetched(&cluster, &census, &target, &meter);
    assert_eq!(fetched.files, 60);
    assert_eq!(fetched.failed, [(b"only here".to_vec(), FetchError::OutOfReach)]);
    assert_eq!(fetched.lost.len(), 1);
    assert!(meter.servers()[1].is_lost());
}

#[test]
fn a_file_that_changes_meanwhile_fails_alone() {
    let (stores, _) = stores();
    let changed = stores[0].clone();
    let other = stores[1].clone();
    let cluster = cluster(stores.into_iter().map(|store| (store, None)).collect());
    let census = census(&cluster.clients, &StorePath::ROOT);
    for store in [changed, other] {
        let modified = Some(Time { secs: 2_000_000, nanos: 0 });
        store.change(&path("d/file 6"), &Change { modified, ..Change::default() }).unwrap();
    }
    let target = Arc::new(Memory::default());
    let fetched = fetched(&cluster, &census, &target, &Meter::new(3));
    assert_eq!(fetched.files, 59);
    assert_eq!(fetched.failed.len(), 1);
    assert_eq!(get(&target, "d/file 6"), None);
}

#[test]
fn what_is_there_is_not_fetched_again() {
    let (stores, _) = stores();
    let cluster = cluster(stores.into_iter().map(|store| (store, None)).collect());
    let target = Arc::new(Memory::default());
    assert_eq!(run(&cluster, &target).files, 60);
    put(&target, "d/file 6", b"another size");
    let again = run(&cluster, &target);
    assert_eq!((again.files, again.kept, again.failed.len()), (1, 59, 0));
}

#[test]
fn a_slow_server_that_is_not_waited_for_at_the_end_is_not_told_as_lost() {
    let store = Arc::new(Memory::default());
    put(&store, "large", &random(3, 6 << 20));
    let slow = Some(Rate::from_bits_per_sec(300_000));
    let cluster = cluster(vec![(store.clone(), None), (store, slow)]);
    let target = Arc::new(Memory::default());
    let meter = Meter::new(2);
    let census = census(&cluster.clients, &StorePath::ROOT);
    let fetched = fetched(&cluster, &census, &target, &meter);
    assert_eq!((fetched.files, fetched.failed.len()), (1, 0), "{:?}", fetched.failed);
    assert!(fetched.lost.is_empty(), "{:?}", fetched.lost);
}

/// A server that tells of a file that was not asked for, as soon as it is asked for anything.
fn liar() -> Client {
    use hikyaku_reach::talk;
    use hikyaku_remote::{Answer, Asked, Entry, Reply};
    let (ours, theirs) = UnixStream::pair().unwrap();
    let end = |socket: UnixStream, side| {
        let pipe = Pipe::new(socket.try_clone().unwrap(), socket);
        let pipes = hikyaku_pipes::Connection::new(vec![pipe], side, Config::default());
        Connection::from(pipes.unwrap())
    };
    let theirs = end(theirs, Side::Server);
    thread::spawn(move || {
        let mut found = None;
        while let Ok(stream) = hikyaku_net::blocking::block_on(theirs.accept_stream()) {
            let store = Memory::default();
            put(&store, "x", b"evil");
            found = found.or_else(|| store.look(&path("x")).ok());
            let (mut incoming, out, _writer) = talk(stream).unwrap();
            thread::spawn(move || {
                while let Ok(Some(body)) = incoming.hear() {
                    let (Asked { id, .. }, _) = hikyaku_transfer::decode(body).unwrap();
                    let path = b".ssh/authorized_keys".to_vec();
                    let entry = Entry { path, found: Ok(found.unwrap()), link: None };
                    let _ = out.say(&Answer { id, reply: Reply::Walked(vec![entry]) });
                    let _ = out.say(&Answer { id, reply: Reply::Done });
                }
            });
        }
    });
    Client::new(end(ours, Side::Client)).unwrap()
}

#[test]
fn a_server_cannot_add_a_name_to_what_was_asked_for() {
    let (stores, _) = stores();
    let mut cluster = cluster(stores.into_iter().map(|store| (store, None)).collect());
    cluster.clients.push(liar());
    let census = census(&cluster.clients, &path("d"));
    assert_eq!(census.files.len(), 60);
    assert!(census.files.iter().all(|file| file.path.as_bytes().starts_with(b"d/")));
    assert!(matches!(census.lost[..], [(ServerId(3), RemoteError::Protocol(_))]));
}

#[test]
fn a_server_whose_turn_has_not_come_is_asked_for_nothing() {
    let store = Arc::new(Memory::default());
    let files: Vec<_> = (0..20).map(|n| (format!("{n}"), random(n, 300_000))).collect();
    files.iter().for_each(|(name, bytes)| put(&store, name, bytes));
    let cluster = cluster(vec![(store.clone(), None), (store, None)]);
    let census = census(&cluster.clients, &StorePath::ROOT);
    let (target, meter) = (Arc::new(Memory::default()), Meter::new(2));
    let client = ClientParameters { stagger: Duration::from_secs(3600), ..ClientParameters::USUAL };
    let parameters = Parameters { client, ..Parameters::default() };
    let fetched = fetched_with(&cluster, &census, &target, &meter, parameters);
    assert_eq!((fetched.files, fetched.failed.len()), (20, 0), "{:?}", fetched.failed);
    assert_eq!(meter.servers()[1].bytes(), 0);
}
