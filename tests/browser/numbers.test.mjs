// One payment on the page for each test number of the README.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { goTo, heading, launch, look, payer, reach, SCRIPTS, withScripts } from './browser.mjs'
import { open, paid, toSimulator, decide, withPhone } from './flows.mjs'
import { eventually, startServer } from './server.mjs'

let server, browser
before(async () => {
  server = await startServer()
  browser = await launch()
})
after(async () => {
  await browser?.close()
  await server?.stop()
})

const create = () => server.api('POST', '/v1/checkouts', { amount: '75.00' })
const status = async checkout => (await server.api('GET', `/v1/checkouts/${checkout.id}`)).status

for (const scripts of SCRIPTS) {
  describe(withScripts(scripts), { concurrency: 2 }, () => {
    const number = (name, phone, steps) =>
      test(`${phone}: ${name}`, () =>
        payer(browser, { scripts }, async page => {
          const checkout = await create()
          await open(page, checkout)
          await withPhone(page, 'afrimoney', phone)
          await steps(page, checkout)
        }))

    number('approved', '+2207000000', async (page, checkout) => {
      await paid(page)
      assert.equal(await status(checkout), 'completed')
      await goTo(page)
      await paid(page)
    })

    for (const [name, phone, reason] of [
      ['not enough money', '+2207000001', 'There is not enough money in the Afrimoney wallet.'],
      ['refused', '+2207000002', 'The payment was refused in Afrimoney.'],
    ]) {
      number(name, phone, async (page, checkout) => {
        await reach(page, 'Not paid')
        await page.getByText(reason).waitFor()
        assert.equal(await status(checkout), 'pending')
        await toSimulator(page, 'wave')
        await decide(page, 'Approve')
        await paid(page)
      })
    }

    number('never answers', '+2207000003', async (page, checkout) => {
      await reach(page, /Approve it on your phone|We are asking Afrimoney/)
      await page.waitForTimeout(4000)
      assert.ok(await heading(page, /Approve it on your phone|We are asking Afrimoney/).isVisible())
      assert.equal(await status(checkout), 'pending')
    })

    number('the answer is lost', '+2207000004', async (page, checkout) => {
      await reach(page, /We are asking Afrimoney whether you paid|^Paid$/)
      if (await heading(page, /We are asking/).isVisible()) {
        await page.getByText('Don’t pay again.').waitFor()
        assert.equal(await page.getByRole('button', { name: /^Pay/ }).count(), 0, 'nothing there could pay twice')
        await look(page, 'asking').catch(async error => { if (!(await heading(page, 'Paid').isVisible())) throw error })
      }
      await paid(page, 40)
      assert.equal(await status(checkout), 'completed')
    })

    number('after half a minute', '+2207000005', async page => {
      await reach(page, /Approve it on your phone|We are asking Afrimoney/)
      await paid(page, 75)
    })

    number('reported twice', '+2207000006', async (page, checkout) => {
      await paid(page)
      await page.waitForTimeout(2000)
      await goTo(page)
      await paid(page)
      const events = await server.api('GET', '/v1/events?limit=100')
      const mine = events.items.filter(event => event.object_id === checkout.id).map(event => event.type)
      assert.deepEqual(mine.sort(), ['checkout.completed', 'payment.succeeded'])
    })
  })
}

test('the phone that came with the checkout decides for Wave as well', () =>
  payer(browser, {}, async page => {
    const checkout = await server.api('POST', '/v1/checkouts', { amount: '5.00', customer_phone: '+2207000000' })
    await server.api('POST', '/v1/pay/initialize', { client_secret: checkout.client_secret, payment_method: 'wave' })
    await goTo(page, checkout.payment_url)
    await paid(page)
    await eventually(async () => (await status(checkout)) === 'completed')
  }))
