//! The smallest history that still fails: operations and faults are taken out for as long as it does.

use crate::history::{Outcome, Violation, play};
use crate::operation::{Fault, Operation};
use crate::world::Template;

pub async fn shrink(template: &Template, operations: &[Operation]) -> (Vec<Operation>, Option<Violation>) {
    let mut smallest = operations.to_vec();
    let mut violation = play(template, &smallest, false).await.violation;
    let Some(known) = &violation else { return (smallest, None) };
    smallest.truncate(known.step + 1);
    let mut part = (smallest.len() / 2).max(1);
    loop {
        let mut is_smaller = false;
        let mut from = 0;
        while from < smallest.len() {
            let until = (from + part).min(smallest.len());
            let mut fewer = smallest.clone();
            fewer.drain(from..until);
            let Outcome { violation: found, .. } = play(template, &fewer, false).await;
            if found.is_some() {
                (smallest, violation, is_smaller) = (fewer, found, true);
            } else {
                from = until;
            }
        }
        if part == 1 && !is_smaller {
            break;
        }
        part = if is_smaller { part } else { (part / 2).max(1) };
    }
    for place in 0..smallest.len() {
        let mut calmer = smallest.clone();
        calmer[place].fault = Fault::None;
        let Outcome { violation: found, .. } = play(template, &calmer, false).await;
        if calmer != smallest && found.is_some() {
            (smallest, violation) = (calmer, found);
        }
    }
    (smallest, violation)
}
