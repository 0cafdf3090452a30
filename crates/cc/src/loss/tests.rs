//! Steady loss becomes ambient, a sudden one is excess first.

use super::*;

fn round(model: &mut LossModel, lost: u64, of: u64) -> f64 {
    model.on_ack(Settled { arrived: of - lost, lost });
    model.end_round(100, false)
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
fn a_jump_is_excess_until_it_has_lasted() {
    let mut model = LossModel::default();
    (0..10).for_each(|_| assert_eq!(round(&mut model, 0, 1000), 0.0));
    assert!(round(&mut model, 50, 1000) > 0.04);
    (0..ROUNDS).for_each(|_| {
        round(&mut model, 50, 1000);
    });
    assert_eq!(round(&mut model, 50, 1000), 0.0);
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
        model.on_ack(Settled { arrived: 500, lost: 500 });
        assert!(model.end_round(100, true) > 0.4);
    }
    assert!((model.ambient() - 0.01).abs() < 0.001);
}
