// An invoice is paid like a checkout, in parts where its merchant allows it, and its page says at every moment what is
// billed, what is paid and what is left.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { button, goBack, goForward, goTo, heading, launch, link, look, payer, reach, SCRIPTS, withScripts } from './browser.mjs'
import { QUIET_PHONE, amount, backToPayment, decide, givePhone, open, paid, payWith, toSimulator, useCard, withPhone } from './flows.mjs'
import { eventually, startServer } from './server.mjs'

const WAYS = ['wave', 'card', 'afrimoney', 'qmoney']

let server, browser
before(async () => {
  server = await startServer()
  browser = await launch()
  await server.api('PUT', '/v1/pay/settings', { allow_partial_payments: true })
})
after(async () => {
  await browser?.close()
  await server?.stop()
})

const create = fields =>
  server.api('POST', '/v1/pay/invoices', {
    customer_email: 'fatou@example.gm',
    customer_name: 'Fatou Ceesay',
    due_date: '2099-11-30',
    tax_rate: 10,
    notes: 'Thank you for your order.',
    items: [
      { description: 'Reading the River', quantity: 2, unit_price: '400.00' },
      { description: 'Map of the Gambia', quantity: 1, unit_price: '200.00' },
    ],
    ...fields,
  })
// Under the payments: when it came, how, and its receipt.
const said = async (page, receipt, way) => {
  const row = page.locator('.receipt > div', { hasText: receipt.receipt_number })
  const time = receipt.payment_date.slice(11, 16)
  assert.match(await row.innerText(), new RegExp(`, ${time} \\(Banjul time\\)\\s+${way}\\s+${receipt.receipt_number}\\s+1,100\\.00`))
}
const WORDS = { wave: 'Wave', card: 'Card', afrimoney: 'Afrimoney', qmoney: 'QMoney' }
const get = invoice => server.api('GET', `/v1/pay/invoices/${invoice.id}`)
const page_of = invoice => `${server.url}/invoice/${invoice.id}`
describe('invoice', { concurrency: 2 }, () => {
  for (const scripts of SCRIPTS) {
    const visit = steps => payer(browser, { scripts }, steps)
    const named = name => `${name}, ${withScripts(scripts)}`

    for (const way of WAYS) {
      test(named(`is paid in full by ${way}`), () =>
        visit(async page => {
          const invoice = await create()
          assert.equal(invoice.payment_url, page_of(invoice))
          await open(page, invoice)
          assert.match(await amount(page), /^1,100\.00\s+GMD$/)
          for (const said of [invoice.invoice_number, 'Fatou Ceesay', 'Reading the River', 'Tax (10 %)', 'Thank you for your order.']) {
            await page.getByText(said).first().waitFor()
          }
          if (way === 'wave') await look(page, 'invoice')
          await payWith(page, way)
          await paid(page)
          await page.getByText('This invoice is paid in full.').waitFor()
          const stored = await get(invoice)
          assert.deepEqual([stored.status, stored.remaining_amount, stored.receipts.length], ['paid', '0.00', 1])
          await page.getByText(stored.receipts[0].receipt_number).waitFor()
          await said(page, stored.receipts[0], WORDS[way])
          assert.equal(await button(page, /^Pay (with|by)/).count(), 0)
          if (way === 'wave') await look(page, 'invoice-paid')
          await goTo(page)
          await paid(page)
        }))
    }

    test(named('that was paid elsewhere says how'), () =>
      visit(async page => {
        const invoice = await create()
        const cash = { amount: '1100.00', payment_method: 'cash' }
        const stored = await server.api('POST', `/v1/pay/invoices/${invoice.id}/payments`, cash)
        await goTo(page, page_of(invoice))
        await paid(page)
        await said(page, stored.receipts[0], 'Cash')
        await goTo(page, `${page_of(invoice)}?lang=fr`)
        await page.getByText('Espèces').waitFor()
      }))

    test(named('is paid in parts, by wallet and by card'), () =>
      visit(async page => {
        const invoice = await create()
        await open(page, invoice)
        await page.getByText('Pay only a part now').click()
        await page.getByLabel('Amount to pay now').fill('300.50')
        await look(page, 'invoice-part')
        await button(page, /^Pay with Afrimoney/).click()
        await reach(page, 'Your Afrimoney number')
        assert.match(await amount(page), /^300\.50/)
        await page.getByText('A part of').waitFor()
        await look(page, 'invoice-part-phone')
        await givePhone(page, '12')
        await page.getByText('Enter a number with +220 and 7 digits').first().waitFor()
        assert.match(await amount(page), /^300\.50/, 'an error does not make it more')
        await givePhone(page, '+2207000000')
        await reach(page, /^We received 300\.50/)
        assert.match(await amount(page), /^799\.50/)
        await page.getByText('300.50 GMD of 1,100.00 GMD is paid.').waitFor()
        await look(page, 'invoice-received')
        let stored = await get(invoice)
        assert.deepEqual([stored.status, stored.remaining_amount], ['partially_paid', '799.50'])

        await page.getByText('Pay only a part now').click()
        await page.getByLabel('Amount to pay now').fill('99.50')
        await toSimulator(page, 'card')
        await page.getByText('99.50').first().waitFor()
        await useCard(page, '4242424242424242')
        await backToPayment(page)
        await reach(page, /^We received 99\.50/)
        await payWith(page, 'wave')
        await paid(page)
        stored = await get(invoice)
        assert.deepEqual([stored.status, stored.receipts.map(it => it.amount)], ['paid', ['300.50', '99.50', '700.00']])
      }))

    test(named('asks for the part that its merchant asks for, and leads back to the shop'), () =>
      visit(async page => {
        const invoice = await create()
        const asked = await server.api('POST', '/v1/pay/initialize', {
          object_type: 'invoice',
          object_id: invoice.id,
          amount: '300.00',
          success_url: 'https://shop.example/thanks',
        })
        await goTo(page, asked.payment_url)
        assert.match(await amount(page), /^300\.00/)
        await page.getByText('Pay another amount').click()
        await page.getByText('Leave it empty to pay 300.00').waitFor()
        await look(page, 'invoice-asked')
        await withPhone(page, 'afrimoney', '+2207000000')
        await reach(page, /^We received 300\.00/)
        const back = await link(page, /^Back to /).getAttribute('href')
        assert.equal(back, `https://shop.example/thanks?payment_session_id=${asked.id}`)
        await look(page, 'invoice-asked-received')
        const session = await server.api('GET', `/v1/pay/session/${asked.id}`)
        assert.deepEqual([session.status, session.amount], ['succeeded', '300.00'])
      }))

    test(named('refuses a part that is none, and keeps what was typed'), () =>
      visit(async page => {
        await open(page, await create())
        for (const [typed, said] of [['9999', 'Only 1,100.00 GMD is left to pay.'], ['ten', 'Write the amount in digits'], ['0', 'Write an amount above 0.'], ['1.005', 'Write the amount in digits']]) {
          if (!(await page.getByLabel('Amount to pay now').isVisible())) await page.getByText('Pay only a part now').click()
          await page.getByLabel('Amount to pay now').fill(typed)
          await button(page, /^Pay with Wave/).click()
          await page.getByText(said).first().waitFor()
          assert.equal(await page.getByLabel('Amount to pay now').inputValue(), typed)
          assert.equal(await page.getByLabel('Amount to pay now').getAttribute('aria-invalid'), 'true')
        }
        await look(page, 'invoice-part-error')
        await page.getByLabel('Amount to pay now').fill('1,100.00')
        await payWith(page, 'wave')
        await paid(page)
      }))

    test(named('whose amount changes meanwhile shows it before anything is paid'), () =>
      visit(async page => {
        const invoice = await create()
        await open(page, invoice)
        await server.api('PUT', `/v1/pay/invoices/${invoice.id}`, { tax_rate: 20 })
        if (!scripts) {
          await button(page, /^Pay with Wave/).click()
          await page.getByText('The amount to pay has changed.').waitFor()
          await look(page, 'invoice-changed')
        }
        await page.locator('.amount', { hasText: '1,200.00' }).waitFor()
        await payWith(page, 'wave')
        await paid(page)
        assert.deepEqual((await get(invoice)).receipts.map(it => it.amount), ['1200.00'])
      }))

    test(named('that was not paid says why and can be paid again'), () =>
      visit(async page => {
        const invoice = await create()
        await open(page, invoice)
        await withPhone(page, 'afrimoney', '+2207000001')
        await reach(page, 'Not paid')
        await page.getByText('There is not enough money in the Afrimoney wallet. Nothing was taken.').waitFor()
        await payWith(page, 'wave')
        await paid(page)
        assert.equal((await get(invoice)).receipts.length, 1)
      }))

    test(named('a double click pays it once, and so do two tabs'), () =>
      visit(async page => {
        const invoice = await create()
        await open(page, invoice)
        await button(page, /^Pay with Afrimoney/).click()
        await reach(page, 'Your Afrimoney number')
        const second = await page.context().newPage()
        await second.goto(page.url())
        for (const tab of [page, second]) await tab.getByLabel('Phone number').fill('+2207000000')
        // Whichever comes first; the other tab may have heard of it before its own click.
        const late = button(second, 'Continue').dispatchEvent('click', {}, { timeout: 3000 }).catch(() => {})
        const early = button(page, 'Continue').dblclick({ timeout: 5000 }).catch(() => {})
        await Promise.all([early, late])
        await paid(page)
        await reach(second, /^Paid$|This is already paid/)
        assert.equal((await get(invoice)).receipts.length, 1)
      }))

    test(named('the back button and a reload tell the truth'), () =>
      visit(async page => {
        const invoice = await create()
        await open(page, invoice)
        await toSimulator(page, 'wave')
        await goBack(page)
        await reach(page, /Continue in Wave|We are asking Wave|How do you want to pay/)
        await goForward(page)
        await reach(page, 'Wave, simulated')
        await decide(page, 'Approve')
        await paid(page)
        await goBack(page)
        await eventually(() => heading(page, /^Paid$|Done|Wave, simulated/).isVisible())
        await goTo(page, page_of(invoice))
        await paid(page)
      }))

    test(named('a draft tells nothing, and becomes an invoice'), () =>
      visit(async page => {
        const invoice = await create({ is_draft: true })
        assert.equal(invoice.payment_url, null)
        await goTo(page, page_of(invoice))
        await reach(page, 'This invoice is not ready yet')
        const tellsNothing = async ({ invoice_number }) => {
          const said = await page.locator('body').innerText()
          for (const secret of ['1,100', 'Fatou', 'River', 'Thank you', invoice_number]) assert.ok(!said.includes(secret), secret)
        }
        await tellsNothing(invoice)
        await look(page, 'invoice-draft')
        const cancelled = await create({ is_draft: true })
        await server.api('POST', `/v1/pay/invoices/${cancelled.id}/cancel`)
        await goTo(page, page_of(cancelled))
        await reach(page, 'Cancelled')
        await page.getByText('This invoice was cancelled. There is nothing to pay.').waitFor()
        await tellsNothing(cancelled)
        await look(page, 'invoice-draft-cancelled')
        await goTo(page, page_of(invoice))
        await reach(page, 'This invoice is not ready yet')
        await server.api('POST', `/v1/pay/invoices/${invoice.id}/finalize`)
        if (!scripts) await goTo(page)
        await reach(page, 'How do you want to pay?', 25)
      }))

    test(named('a cancelled one takes nothing'), () =>
      visit(async page => {
        const invoice = await create()
        await open(page, invoice)
        await toSimulator(page, 'wave')
        const simulator = page.url()
        await server.api('POST', `/v1/pay/invoices/${invoice.id}/cancel`)
        await goTo(page, page_of(invoice))
        await reach(page, 'Cancelled')
        await page.getByText('This invoice was cancelled. There is nothing to pay.').waitFor()
        assert.equal(await button(page, /^Pay (with|by)/).count(), 0)
        await look(page, 'invoice-cancelled')
        await goTo(page, simulator)
        await reach(page, 'Cancelled')
      }))

    test(named('one whose day is over says so and is still paid'), () =>
      visit(async page => {
        const invoice = await create({ due_date: '2020-01-31' })
        await open(page, invoice)
        await page.getByText(`Invoice ${invoice.invoice_number}, was due 31 January 2020`).waitFor()
        await look(page, 'invoice-overdue')
        await payWith(page, 'wave')
        await paid(page)
      }))

    test(named('an address that leads nowhere'), () =>
      payer(browser, { scripts, expected: /status of 404/ }, async page => {
        const response = await goTo(page, `${server.url}/invoice/inv_01h455vb4pex5vsknk084sn02q`)
        assert.equal(response.status(), 404)
        await reach(page, 'There is no payment here')
      }))

    test(named('in French, with a comma'), () =>
      payer(browser, { scripts, locale: 'fr-FR' }, async page => {
        const invoice = await create()
        await goTo(page, page_of(invoice))
        await reach(page, 'Comment voulez-vous payer ?')
        await page.getByText('Ne payer qu’une partie maintenant').click()
        await page.getByLabel('Montant à payer maintenant').fill('1 000,50')
        await look(page, 'invoice-french')
        await button(page, /^Payer avec Afrimoney/).click()
        await page.getByLabel('Numéro de téléphone').fill('+2207000000')
        await button(page, 'Continuer').click()
        await reach(page, /^Nous avons reçu 1\s000,50/)
        assert.equal((await get(invoice)).remaining_amount, '99.50')
      }))
  }

  test('a receipt’s code is checked by the page, and its papers are there to keep', () =>
    payer(browser, {}, async page => {
      const invoice = await create()
      await open(page, invoice)
      await payWith(page, 'wave')
      await paid(page)
      const [{ id, receipt_number }] = (await get(invoice)).receipts
      for (const name of [receipt_number, 'Download the invoice (PDF)']) {
        const file = await fetch(new URL(await link(page, name).getAttribute('href'), server.url))
        assert.deepEqual([file.status, file.headers.get('content-type')], [200, 'application/pdf'], name)
        assert.match(await file.text(), /^%PDF-/)
      }
      const { address } = server.run('receipt', 'address', receipt_number)
      await goTo(page, `${server.url}/verify${new URL(address).hash}`)
      await reach(page, 'This payment is genuine')
      assert.match(await page.locator('#amount').innerText(), /^1,100\.00/)
      await page.getByText(receipt_number).waitFor()
      await page.getByText('No real money moves.').waitFor()
      await page.getByText('Who paid?').click()
      await page.getByLabel('Payer', { exact: true }).fill('fatou ceesay')
      const { validation_code } = await server.api('GET', `/v1/pay/receipts/${id}`)
      await page.getByLabel('Validation code').fill(validation_code)
      await button(page, 'Check the payer').click()
      await page.getByText('This name and this code belong to the payment.').waitFor()
    }))

  test('on paper it says what is billed', () =>
    payer(browser, {}, async page => {
      await open(page, await create())
      await page.emulateMedia({ media: 'print' })
      for (const said of ['What is billed', 'Reading the River', 'Tax (10 %)']) {
        assert.ok(await page.getByText(said).first().evaluate(it => it.checkVisibility()), said)
      }
      assert.equal(await page.getByRole('button').count(), 0)
    }))

  test('a page that waits follows what happens elsewhere', () =>
    payer(browser, {}, async page => {
      const invoice = await create()
      await open(page, invoice)
      await withPhone(page, 'afrimoney', QUIET_PHONE)
      await reach(page, 'Approve it on your phone')
      const elsewhere = await page.context().newPage()
      await elsewhere.goto(invoice.payment_url)
      await link(elsewhere, 'Open the simulated phone').click()
      await button(elsewhere, 'Approve').click()
      await paid(page, 10)
    }))

  test('the first view at 320 × 568 holds the merchant, the amount and the methods, and little weight', () =>
    payer(browser, {}, async page => {
      const responses = []
      page.on('response', response => responses.push(response))
      await open(page, await create())
      const first = button(page, /^Pay (with|by)/).first()
      for (const part of [page.getByText('Kairaba Books').first(), page.locator('.amount'), first]) {
        const box = await part.boundingBox()
        assert.ok(box.y + box.height <= 568, `${await part.innerText()} ends at ${box.y + box.height} px`)
      }
      await page.waitForTimeout(500)
      const bodies = await Promise.all(
        responses.filter(it => !/events|status/.test(new URL(it.url()).pathname)).map(it => it.body().catch(() => Buffer.alloc(0))),
      )
      const total = bodies.reduce((sum, body) => sum + body.length, 0)
      assert.ok(total > 1000 && total <= 30 * 1024, `${total} bytes`)
    }))
})
