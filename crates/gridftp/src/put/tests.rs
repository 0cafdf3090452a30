//! The ends of parts while connections are added.

use super::*;

fn deal(length: u64) -> Arc<Deal<'static>> {
    let part = Part { path: b"/f", offset: 0, length };
    Arc::new(Deal::new(&part, Arc::new(|_, _: &mut [u8]| Ok(())), 1))
}

fn sends(deal: &Deal<'_>) -> Option<Option<u32>> {
    match deal.end(0) {
        May::Send(all) => Some(all),
        May::Wait => None,
    }
}

#[test]
fn the_last_connection_of_a_part_sends_the_number_of_all() {
    let belt = Belt::new(vec![2]);
    let one = deal(3);
    belt.push(one.clone());
    assert_eq!([sends(&one), sends(&one)], [Some(None), Some(Some(2))]);
    assert!(!one.join(0), "its last end is sent");
}

#[test]
fn a_connection_that_is_opened_meanwhile_sends_the_ends_of_all_parts_that_have_not_ended() {
    let belt = Belt::new(vec![2]);
    let parts = [deal(3), deal(3), deal(3)];
    parts[..2].iter().for_each(|part| belt.push(part.clone()));
    assert_eq!([sends(&parts[0]), sends(&parts[0])], [Some(None), Some(Some(2))]);
    // The first part has ended, and the server has not confirmed it.
    assert!(belt.hold() && !belt.is_first_held());
    assert_eq!([sends(&parts[1]), sends(&parts[1])], [None, None], "the part waits");
    belt.pop();
    assert!(belt.is_first_held());
    belt.expect(1);
    let place = belt.join(0);
    assert_eq!((place.first, place.rank), (1, 2));
    belt.arrived();
    belt.push(parts[2].clone());
    for part in &parts[1..] {
        assert_eq!([(); 3].map(|()| sends(part)), [Some(None), Some(None), Some(Some(3))]);
    }
}

#[test]
fn a_part_goes_on_without_connections_that_cannot_be_opened() {
    let belt = Belt::new(vec![1]);
    let one = deal(3);
    assert!(!belt.hold(), "no part has not ended");
    belt.push(one.clone());
    assert!(belt.hold() && belt.is_first_held());
    belt.expect(2);
    belt.release();
    belt.arrived();
    assert_eq!(sends(&one), None);
    belt.arrived();
    assert_eq!(sends(&one), Some(Some(1)));
}

#[test]
fn a_part_does_not_wait_if_no_connection_is_opened() {
    let belt = Belt::new(vec![1]);
    let one = deal(3);
    belt.push(one.clone());
    assert!(belt.hold());
    belt.release();
    assert_eq!(sends(&one), Some(Some(1)));
}
