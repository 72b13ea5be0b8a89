//! The simulator's payer and network: time passes, and its word reaches us as a rail's callback would.

use domain::Id;
use domain::job::ClaimedJob;
use domain::refund::Refund;
use domain::simulator::{SimulatedPayment, SimulatedRefund};
use store::queries::jobs;

use crate::app::App;
use crate::error::Failure;
use crate::rails::simulator::keep_refund;

pub(super) async fn simulate(app: &App, claimed: &ClaimedJob) -> Result<(), Failure> {
    let domain::job::Job::SimulatePayer(id) = claimed.job else {
        return Err(Failure::Broken("not the simulator's job".into()));
    };
    let scope = claimed.scope;
    let payment = app
        .commit(move |tx, _| {
            let Some(mut payment) = tx.find::<SimulatedPayment>(scope, id)? else { return Ok(None) };
            payment.act(tx.now());
            tx.save(&mut payment)?;
            Ok(Some(payment))
        })
        .await?;
    let Some(payment) = payment else { return done(app, claimed).await };
    // A process that dies here sends its word again: a rail's callback may come twice at any time.
    for _ in 0..payment.reports {
        app.report(scope, id, payment.report(), None).await?;
    }
    done(app, claimed).await
}

pub(super) async fn simulate_refund(app: &App, claimed: &ClaimedJob, id: Id<Refund>) -> Result<(), Failure> {
    let scope = claimed.scope;
    let refund = app
        .commit(move |tx, _| {
            let Some(mut refund) = tx.find::<SimulatedRefund>(scope, id)? else { return Ok(None) };
            refund.act(tx.now());
            keep_refund(tx, &mut refund)?;
            Ok(Some(refund))
        })
        .await?;
    let Some(refund) = refund else { return done(app, claimed).await };
    for _ in 0..refund.reports {
        app.report_refund(scope, id, refund.report()).await?;
    }
    done(app, claimed).await
}

async fn done(app: &App, claimed: &ClaimedJob) -> Result<(), Failure> {
    let claimed = claimed.clone();
    app.commit(move |tx, _| Ok(jobs::done(tx, &claimed)?)).await
}
