//! Places at servers that grant few, none, or what they granted before.

use super::*;

const A: &str = "a:80";
const GOES_ON: &dyn Fn() -> bool = &|| true;

fn granted(grants: &Grants) -> Place {
    let mut place = grants.place(A).unwrap();
    place.granted();
    place
}

#[test]
fn connections_beyond_those_that_were_left_get_no_place() {
    let grants = Grants::default();
    let two = [granted(&grants), granted(&grants)];
    let mut third = grants.place(A).unwrap();
    assert_eq!(third.refused(GOES_ON), Others::Open);
    assert_eq!(grants.place(A).err(), Some(NoPlace::Full));
    assert_eq!((grants.known(A), grants.known("b:80")), (Some(2), None));
    assert!(grants.place("b:80").is_ok());
    drop(two);
    assert_eq!(
        grants.place(A).err(),
        Some(NoPlace::UnderWay),
        "the server may not have noticed it"
    );
}

#[test]
fn a_server_that_refuses_all_is_full_of_none() {
    let grants = Grants::default();
    let places: Vec<Place> = (0..4).map(|_| grants.place(A).unwrap()).collect();
    let refused = std::thread::scope(|scope| {
        let threads: Vec<_> = places
            .into_iter()
            .map(|mut place| scope.spawn(move || place.refused(GOES_ON)))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(refused, [Others::None; 4]);
    assert_eq!(grants.known(A), None);
}

#[test]
fn a_refusal_waits_for_the_answers_to_others() {
    let grants = Grants::default();
    let mut first = grants.place(A).unwrap();
    let mut second = grants.place(A).unwrap();
    std::thread::scope(|scope| {
        let verdict = scope.spawn(|| second.refused(GOES_ON));
        // The refusal has been counted.
        while grants.known(A).is_none() {
            grants.wait();
        }
        first.granted();
        assert_eq!(verdict.join().unwrap(), Others::Open);
    });
    assert_eq!(grants.known(A), Some(1));
}

#[test]
fn servers_without_connections_are_forgotten() {
    let grants = Grants::default();
    let kept = granted(&grants);
    for number in 0..10 * SERVERS_MAX {
        drop(grants.place(&format!("{number}:80")));
    }
    assert!(grants.servers().len() <= SERVERS_MAX && grants.servers().contains_key(A));
    drop(kept);
}

#[test]
fn few_are_opened_before_any_is_answered() {
    let grants = Grants::default();
    let places: Vec<Place> = std::iter::from_fn(|| grants.place(A).ok()).take(99).collect();
    assert_eq!(places.len(), 5);
    assert_eq!(grants.place(A).err(), Some(NoPlace::UnderWay));
}

#[test]
fn a_number_that_is_recalled_is_kept_to_until_more_are_granted() {
    #[derive(Default)]
    struct Two(Mutex<Vec<Option<u32>>>);
    impl GrantMemory for Two {
        fn recall(&self, _: &str) -> Option<u32> {
            Some(2)
        }

        fn note(&self, _: &str, granted: Option<u32>) {
            self.0.lock().unwrap().push(granted);
        }
    }
    let memory = Arc::new(Two::default());
    let grants = Grants::remembering(memory.clone());
    let _two = [granted(&grants), granted(&grants)];
    assert_eq!(grants.place(A).err(), Some(NoPlace::Full));
    assert!(memory.0.lock().unwrap().is_empty());
    grants.servers().get_mut(A).unwrap().cap.forget();
    let _third = granted(&grants);
    assert_eq!(*memory.0.lock().unwrap(), [None]);
}
