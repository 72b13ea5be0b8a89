//! What was never issued is nobody's but its merchant's: its page tells nothing of it.

use dalasi::app::invoices::{self, NewInvoice};
use domain::Msisdn;

use crate::invoices::{create, rice};
use crate::world::{Page, World};

#[tokio::test]
async fn a_draft_tells_nothing_whatever_becomes_of_it() {
    let world = World::new().await;
    let draft = NewInvoice {
        is_draft: true,
        customer_phone: Some(Msisdn::parse("+2207654321").ok()),
        notes: "By hand".into(),
        ..rice(&world)
    };
    let draft = create(&world, draft).await.unwrap();
    let (id, scope) = (draft.id, world.scope);
    let known = ["115.00", "100.00", "Awa", "example.gm", "+220", "Rice", "By hand", draft.number.as_str()];
    let told = |page: &Page| known.map(|words| page.says(words) || page.body.contains(words));
    let document = format!("/invoice/{id}/pdf");
    let mut payer = world.payer_at(format!("/invoice/{id}")).await;
    assert_eq!(payer.page.heading(), "This invoice is not ready yet");
    assert_eq!(told(&payer.page), [false; 8], "{}", payer.page.body);

    world.app.commit(move |tx, context| invoices::cancel(tx, context, scope, id)).await.unwrap();
    let ended = "This invoice was cancelled. There is nothing to pay.";
    payer.reload().await;
    assert_eq!(payer.page.heading(), "Cancelled");
    assert!(payer.page.says(ended) && !payer.page.body.contains(&document), "{}", payer.page.body);
    assert_eq!(told(&payer.page), [false; 8], "{}", payer.page.body);

    // What was issued before is known already.
    let issued = create(&world, rice(&world)).await.unwrap().id;
    world.app.commit(move |tx, context| invoices::cancel(tx, context, scope, issued)).await.unwrap();
    payer.open(&format!("/invoice/{issued}")).await;
    assert_eq!(payer.page.heading(), "Cancelled");
    assert!(payer.page.says(ended) && payer.page.says("115.00") && payer.page.says("Rice"), "{}", payer.page.body);
}
