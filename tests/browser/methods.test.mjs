// A session is paid by each of the four methods, through the pages, with JavaScript on and off.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { button, goTo, launch, link, look, payer, reach, SCRIPTS, withScripts } from './browser.mjs'
import { MERCHANT, QUIET_PHONE, decide, giveCode, open, paid, toSimulator, useCard, withPhone, backToPayment } from './flows.mjs'
import { eventually, startServer, startShop } from './server.mjs'

let server, shop, browser
before(async () => {
  server = await startServer()
  shop = await startShop()
  browser = await launch()
})
after(async () => {
  await browser?.close()
  await shop?.stop()
  await server?.stop()
})

const create = fields =>
  server.api('POST', '/v1/checkouts', {
    amount: '1250.00',
    description: 'Two books and a map',
    reference: 'order-1042',
    success_url: `${shop.url}/thanks?order=1042#top`,
    failure_url: `${shop.url}/sorry`,
    ...fields,
  })

async function expectPaid(checkout, method) {
  const found = await server.api('GET', `/v1/checkouts/${checkout.id}`)
  assert.equal(found.status, 'completed')
  assert.equal(found.transaction.status, 'completed')
  assert.equal(found.transaction.net_amount, '1218.75')
  const status = await server.api('GET', `/v1/pay/status/${found.payment_session_id}`)
  assert.equal(status.payment_method, method)
}

const visit = (scripts, steps) => payer(browser, { scripts, allowed: [shop.url] }, steps)

for (const scripts of SCRIPTS) {
  describe(withScripts(scripts), { concurrency: 2 }, () => {
    test('wave: over to the app and back, then to the shop', () =>
      visit(scripts, async page => {
        const checkout = await create()
        await open(page, checkout)
        await look(page, 'choose')
        await toSimulator(page, 'wave')
        await look(page, 'simulator-wave')
        await decide(page, 'Approve')
        await paid(page)
        // It would go back to the shop by itself.
        if (scripts) await button(page, 'Stay on this page').click()
        await look(page, 'paid')
        await expectPaid(checkout, 'wave')

        await link(page, `Back to ${MERCHANT}`).click()
        await reach(page, 'Welcome back')
        const landed = new URL(page.url())
        assert.equal(landed.pathname, '/thanks')
        assert.equal(landed.searchParams.get('order'), '1042')
        assert.equal(landed.searchParams.get('session_id'), checkout.id)
        assert.match(landed.searchParams.get('payment_session_id'), /^ps_/)
        assert.equal(landed.hash, '#top')
      }))

    test('afrimoney: approved on the phone', () =>
      visit(scripts, async page => {
        const checkout = await create()
        await open(page, checkout)
        await withPhone(page, 'afrimoney', QUIET_PHONE)
        await reach(page, 'Approve it on your phone')
        await look(page, 'approve')
        assert.doesNotMatch(await page.locator('main').innerText(), /7654321|765 4321/, 'the number is masked')
        await goTo(page)
        await reach(page, 'Approve it on your phone')
        await link(page, 'Open the simulated phone').click()
        await reach(page, 'Afrimoney on the phone, simulated')
        await look(page, 'simulator-phone')
        await decide(page, 'Approve')
        await paid(page)
        await expectPaid(checkout, 'afrimoney')
      }))

    test('qmoney: the code from the SMS, after a wrong one', () =>
      visit(scripts, async page => {
        const checkout = await create()
        await open(page, checkout)
        await withPhone(page, 'qmoney', '+2207000000')
        await reach(page, 'Enter the code')
        await look(page, 'code')
        await giveCode(page, '12')
        await reach(page, 'Enter the code')
        await page.getByText('The code has 6 digits.').first().waitFor()
        await giveCode(page, '654321')
        await reach(page, 'Enter the code')
        await page.getByText('You have 2 tries left.').waitFor()
        await look(page, 'code-wrong')
        await giveCode(page, '123456')
        await paid(page)
        await expectPaid(checkout, 'qmoney')
      }))

    test('qmoney: a payer who waits for the simulated phone', () =>
      visit(scripts, async page => {
        const checkout = await create()
        await open(page, checkout)
        await withPhone(page, 'qmoney', QUIET_PHONE)
        await reach(page, 'Enter the code')
        await giveCode(page, '123456')
        await reach(page, 'We are asking QMoney whether you paid')
        await look(page, 'checking')
        await link(page, 'Open the simulated phone').click()
        await reach(page, 'QMoney on the phone, simulated')
        await decide(page, 'Approve')
        await paid(page)
        await expectPaid(checkout, 'qmoney')
      }))

    test('qmoney: three wrong codes end it, and another method pays', () =>
      visit(scripts, async page => {
        const checkout = await create()
        await open(page, checkout)
        await withPhone(page, 'qmoney', '+2207000000')
        for (const left of [2, 1]) {
          await giveCode(page, '000000')
          await page.getByText(left === 1 ? 'You have 1 try left.' : `You have ${left} tries left.`).waitFor()
        }
        await giveCode(page, '000000')
        await reach(page, 'Not paid')
        await page.getByText('The code was wrong too often.').waitFor()
        await toSimulator(page, 'wave')
        await decide(page, 'Approve')
        await paid(page)
        await expectPaid(checkout, 'wave')
      }))

    test('card: 4242 is approved', () =>
      visit(scripts, async page => {
        const checkout = await create()
        await open(page, checkout)
        await toSimulator(page, 'card')
        await look(page, 'simulator-card')
        await useCard(page, '4242424242424242')
        await backToPayment(page)
        await paid(page)
        await expectPaid(checkout, 'card')
      }))

    for (const [answer, outcome] of [
      ['Yes, it is me', 'Paid'],
      ['No, refuse it', 'Not paid'],
    ]) {
      test(`card: the bank asks first, "${answer}"`, () =>
        visit(scripts, async page => {
          await open(page, await create())
          await toSimulator(page, 'card')
          await useCard(page, '4000002500003155')
          await reach(page, 'The bank asks, simulated')
          await look(page, 'simulator-bank')
          await button(page, answer).click()
          await backToPayment(page)
          await reach(page, outcome)
        }))
    }

    for (const [number, reason] of [
      ['4000000000000002', 'The bank refused this card. Nothing was taken.'],
      ['4000000000009995', 'There is not enough money on this card. Nothing was taken.'],
    ]) {
      test(`card: ${number} is refused, and another one pays`, () =>
        visit(scripts, async page => {
          const checkout = await create()
          await open(page, checkout)
          await toSimulator(page, 'card')
          await useCard(page, number)
          await backToPayment(page)
          await reach(page, 'Not paid')
          await page.getByText(reason).waitFor()
          await look(page, 'not-paid')
          await toSimulator(page, 'card')
          await useCard(page, '4242424242424242')
          await backToPayment(page)
          await paid(page)
          await expectPaid(checkout, 'card')
        }))
    }

    test('leaving without paying goes to the failure address', () =>
      visit(scripts, async page => {
        // The page goes on by itself, once; behind a closed door it can be looked at.
        const door = shop.door()
        const checkout = await create({ failure_url: shop.url + door.path })
        await open(page, checkout)
        await button(page, 'Cancel and return to the shop').click()
        await reach(page, 'Back to the shop')
        await look(page, 'leaving')
        await eventually(() => shop.visits.some(visit => visit.startsWith(door.path)))
        door.open()
        await link(page, `Back to ${MERCHANT}`).click()
        await reach(page, 'Welcome back')
        const landed = new URL(page.url())
        assert.equal(landed.pathname, door.path)
        assert.equal(landed.searchParams.get('session_id'), checkout.id)
      }))
  })
}

test('after paying, a page with JavaScript goes back to the shop by itself, unless the payer stays', () =>
  visit(true, async page => {
    const checkout = await create()
    await open(page, checkout)
    await withPhone(page, 'afrimoney', '+2207000000')
    await paid(page)
    await eventually(() => page.url().startsWith(shop.url), 20)

    await open(page, await create())
    await withPhone(page, 'afrimoney', '+2207000000')
    await paid(page)
    // Another comes back from the shop to the page as it was.
    const other = await page.context().newPage()
    await goTo(other, page.url())
    await button(other, 'Stay on this page').waitFor()
    await other.evaluate(() => dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })))
    await button(other, 'Stay on this page').waitFor({ state: 'hidden' })
    await button(page, 'Stay on this page').click()
    await page.waitForTimeout(9000)
    await paid(page)
    await paid(other)
  }))
