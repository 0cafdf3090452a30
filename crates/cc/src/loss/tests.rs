//! Steady loss becomes ambient, a sudden one is excess first.

use super::*;

fn round(model: &mut LossModel, lost: u64, of: u64) -> f64 {
    model.on_ack(Settled { arrived: of - lost, lost, below: 1 });
    model.end_round(100, Queue::Free)
}

#[test]
fn steady_loss_is_ambient() {
    let mut model = LossModel::default();
    for lost in [10, 12, 9, 11, 8, 10, 13, 7] {
        assert_eq!(round(&mut model, lost, 1000), 0.0);
    }
    assert!((model.ambient() - 0.01).abs() < 0.002);
}

#[test]
fn a_jump_is_excess_until_a_look_has_shown_it() {
    let mut model = LossModel::default();
    (0..10).for_each(|_| assert_eq!(round(&mut model, 0, 1000), 0.0));
    for _ in 0..2 * ROUNDS {
        assert!(round(&mut model, 200, 1000) > 0.05, "however long it lasts");
    }
    assert!(model.is_doubted());
    model.on_ack(Settled { arrived: 800, lost: 200, below: 1 });
    model.end_test(100);
    assert!(!model.is_doubted());
    assert_eq!(round(&mut model, 200, 1000), 0.0);
}

#[test]
fn what_was_sent_before_a_look_is_no_part_of_it() {
    let mut model = LossModel::default();
    model.count_from(100);
    model.on_ack(Settled { arrived: 0, lost: 100, below: 100 });
    model.on_ack(Settled { arrived: 100, lost: 0, below: 200 });
    assert_eq!(model.seen(), (100, 0));
}

#[test]
fn few_packets_say_nothing() {
    let mut model = LossModel::default();
    assert_eq!(round(&mut model, 3, 10), 0.0);
    assert_eq!(model.ambient(), 0.0);
}

#[test]
fn an_overflowing_queue_never_becomes_the_paths_own_loss() {
    let mut model = LossModel::default();
    (0..10).for_each(|_| assert_eq!(round(&mut model, 10, 1000), 0.0));
    for _ in 0..50 {
        model.on_ack(Settled { arrived: 500, lost: 500, below: 1 });
        assert!(model.end_round(100, Queue::Full) > 0.4);
    }
    assert!((model.ambient() - 0.01).abs() < 0.001);
}

#[test]
fn what_goes_away_with_less_under_way_was_never_the_paths_own() {
    let mut model = LossModel::default();
    (0..8).map(|_| round(&mut model, 20, 1000)).for_each(drop);
    assert!((model.ambient() - 0.02).abs() < 1e-9, "it has lasted");
    model.on_ack(Settled { arrived: 1000, lost: 0, below: 1 });
    model.end_test(100);
    assert!(model.ambient() < 0.005);
    assert!(round(&mut model, 20, 1000) > 0.0, "and it counts as ours");
    model.on_ack(Settled { arrived: 950, lost: 50, below: 1 });
    model.end_test(100);
    (0..8).map(|_| round(&mut model, 50, 1000)).for_each(drop);
    assert!(model.ambient() > 0.04, "until it is seen to be");
}
