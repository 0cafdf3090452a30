//! Who dials whom, and what is said of it.

use super::*;
use crate::service::Readers;
use hikyaku_net::blocking::{Stop, block_on, wait};
use hikyaku_net::{Bytes, CloseReason, Endpoint, EndpointConfig, Memory, OnDrop};
use std::thread;
use std::time::Instant;

const PATIENCE: Duration = Duration::from_secs(20);

const SERVICE: Service = Service {
    name: "test",
    streams_max: 16,
    readers: Readers::One,
    path_memory: PathMemory::OfUser,
    loss: crate::Loss::Ends,
};

fn door() -> Door {
    door_of(&SERVICE)
}

fn door_of(service: &Service) -> Door {
    let config = DoorConfig {
        ports: &(40_000..=59_999),
        tuning: &Tuning::default(),
        service,
        memory: DataSize::from_bytes(1 << 30),
        closing: Duration::from_millis(20),
    };
    Door::open(&config).unwrap()
}

fn key(door: &Door) -> Fingerprint {
    door.invitation().key.parse().unwrap()
}

fn at(door: &Door) -> Vec<SocketAddr> {
    vec![SocketAddr::from((Ipv4Addr::LOCALHOST, door.invitation().port))]
}

#[test]
fn paths_are_remembered_if_the_service_wants_it() {
    assert_eq!(door().config.endpoint.memory, Memory::of_user());
    let measures = Service { path_memory: PathMemory::Off, ..SERVICE };
    assert_eq!(door_of(&measures).config.endpoint.memory, Memory::Off);
}

#[test]
fn a_secret_is_not_printed() {
    let door = door();
    let printed = format!("{:?}", door.invitation());
    assert!(printed.contains(&door.invitation().key), "{printed}");
    assert!(!printed.contains(&door.invitation().secret), "{printed}");
}

#[test]
fn either_end_may_be_the_one_that_dials() {
    for (near_knows, far_knows) in [(true, true), (true, false), (false, true)] {
        let (near, far) = (door(), door());
        let known = |knows: bool, door: &Door| if knows { at(door) } else { Vec::new() };
        let (to_far, to_near) = (known(near_knows, &far), known(far_knows, &near));
        let until = Some(Instant::now() + PATIENCE);
        thread::scope(|scope| {
            let served = scope.spawn(|| {
                let door = Some((to_near, near.invitation().clone()));
                let met = far.be_met(key(&near), door, PATIENCE);
                let (_connection, mut stream) =
                    wait(met, &Stop::default(), until).unwrap().unwrap();
                let asked = wait(stream.read_chunk(), &Stop::default(), until).unwrap();
                asked.unwrap().unwrap().to_vec()
            });
            let met = near.meet("far", far.invitation(), to_far, PATIENCE);
            let connection = wait(met, &Stop::default(), until).unwrap().unwrap();
            let ask = async {
                let mut stream = connection.open_stream().await.unwrap();
                stream.write_chunk(Bytes::from_static(b"copy")).await.unwrap();
                stream
            };
            let _stream = wait(ask, &Stop::default(), until).unwrap();
            assert_eq!(served.join().unwrap(), b"copy", "{near_knows} {far_knows}");
        });
    }
}

/// Dials `door` as one who has seen a first packet to it: the token is all that there is to be seen. Gets
/// as far as one can, says something there if that is inside, and tells how it ended.
async fn intrude(door: &Door, identity: Option<&Identity>) -> CloseReason {
    let mut config = EndpointConfig::default();
    config.on_drop = OnDrop::Wait;
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), config).unwrap();
    let mut config = ConnectConfig::new(Trust::Pinned(key(door)));
    config.secret = Some(door.invitation().secret.parse().unwrap());
    if let Some(identity) = identity {
        config.credentials = config.credentials.with_identity(identity);
    }
    let connection = match endpoint.connect(Target::at("door", at(door)), config).await {
        Ok(connection) => connection,
        Err(ConnectError::Refused { reason, .. }) => return reason,
        Err(error) => panic!("{error}"),
    };
    // The door may have closed the connection by now.
    if let Ok(mut stream) = connection.open_stream().await {
        let _ = stream.write_chunk(Bytes::from_static(b"an order")).await;
        let told = stream.read_chunk().await;
        assert!(told.is_err(), "it was told {told:?}");
    }
    assert!(connection.accept_stream().await.is_err());
    connection.closed().await
}

// spec: hs-9
#[test]
fn who_repeats_a_first_packet_is_neither_told_nor_obeyed_anything() {
    let until = Some(Instant::now() + PATIENCE);
    let other = Identity::generate().unwrap();
    for identity in [None, Some(&other)] {
        let (near, far) = (door(), door());
        thread::scope(|scope| {
            let near_end = scope.spawn(|| {
                let met = near.meet("far", far.invitation(), Vec::new(), PATIENCE);
                let connection = wait(met, &Stop::default(), until).unwrap().unwrap();
                block_on(connection.open_stream()).map(drop).unwrap();
            });
            let far_end = scope.spawn(|| {
                let met = far.be_met(key(&near), None, PATIENCE);
                let (_connection, mut stream) =
                    wait(met, &Stop::default(), until).unwrap().unwrap();
                block_on(stream.read_chunk()).unwrap().unwrap().to_vec()
            });
            for door in [&near, &far] {
                let end = wait(intrude(door, identity), &Stop::default(), until).unwrap();
                assert!(matches!(end, CloseReason::Peer { .. }), "{end:?}");
            }
            // Those who were meant still come.
            let to_near = far.dial("near", near.invitation(), at(&near), PATIENCE);
            let _to_near = wait(to_near, &Stop::default(), until).unwrap().unwrap();
            near_end.join().unwrap();
            let to_far = near.dial("far", far.invitation(), at(&far), PATIENCE);
            let to_far = wait(to_far, &Stop::default(), until).unwrap().unwrap();
            let mut stream = block_on(to_far.open_stream()).unwrap();
            block_on(stream.write_chunk(Bytes::from_static(b"the order"))).unwrap();
            assert_eq!(far_end.join().unwrap(), b"the order");
        });
    }
}

#[test]
fn nobody_comes_who_does_not_know_the_secret() {
    let (near, far) = (door(), door());
    let mut invitation = far.invitation().clone();
    invitation.secret = near.invitation().secret.clone();
    let met = near.meet("far", &invitation, at(&far), Duration::from_millis(300));
    let until = Some(Instant::now() + Duration::from_secs(1));
    assert!(wait(met, &Stop::default(), until).is_err(), "it hears nothing");
}
