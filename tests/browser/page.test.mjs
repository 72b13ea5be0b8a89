// The page tells the truth, pays once, works by keyboard, in two languages, and is small.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { button, goBack, goForward, goTo, heading, launch, link, look, payer, reach, SCRIPTS, withScripts } from './browser.mjs'
import { MERCHANT, QUIET_PHONE, SILENT_PHONE, decide, givePhone, open, paid, toSimulator, withPhone } from './flows.mjs'
import { eventually, startServer } from './server.mjs'

let server, browser, expiring
before(async () => {
  server = await startServer()
  browser = await launch()
  expiring = await create({ expires_in: 60 })
})
after(async () => {
  await browser?.close()
  await server?.stop()
})

const create = fields => server.api('POST', '/v1/checkouts', { amount: '480.50', ...fields })
const get = checkout => server.api('GET', `/v1/checkouts/${checkout.id}`)
const count = async () => (await server.api('GET', '/v1/pay/dashboard')).transaction_count

// They count the transactions of the whole store, so nothing else may pay meanwhile.
describe('one payment', () => {
  for (const scripts of SCRIPTS) {
    const visit = steps => payer(browser, { scripts }, steps)
    const named = name => `${name}, ${withScripts(scripts)}`

    test(named('a double click pays once'), () =>
      visit(async page => {
        const before = await count()
        const checkout = await create()
        await open(page, checkout)
        await button(page, /^Pay with Afrimoney/).click()
        await page.getByLabel('Phone number').fill('+2207000000')
        await button(page, 'Continue').dblclick()
        await paid(page)
        assert.equal((await count()) - before, 1)
      }))

    test(named('the same form sent from two tabs pays once'), () =>
      visit(async page => {
        const before = await count()
        const checkout = await create()
        await open(page, checkout)
        await button(page, /^Pay with Afrimoney/).click()
        await reach(page, 'Your Afrimoney number')
        const second = await page.context().newPage()
        await second.goto(page.url())
        for (const tab of [page, second]) await tab.getByLabel('Phone number').fill('+2207000000')
        // Only one tab is in front, and a click of the pointer would wait for the other one to be drawn. Both buttons are found
        // before either is pressed: the slower tab's page may be gone by what the faster one has done, and its button with it.
        const buttons = await Promise.all([page, second].map(tab => button(tab, 'Continue').elementHandle()))
        const press = found => found.evaluate(it => it.click())
        const isOnItsWay = error => assert.match(error.message, /context was destroyed|because of a navigation/)
        await Promise.all(buttons.map(found => press(found).catch(isOnItsWay)))
        await paid(page)
        await reach(second, /^Paid$|This is already paid/)
        assert.equal((await count()) - before, 1)
      }))
  }
})

describe('page', { concurrency: 2 }, () => {
  for (const scripts of SCRIPTS) {
    const visit = steps => payer(browser, { scripts }, steps)
    const named = name => `${name}, ${withScripts(scripts)}`

    test(named('a phone that is none is refused, and what was typed stays'), () =>
      visit(async page => {
        await open(page, await create())
        await button(page, /^Pay with Afrimoney/).click()
        await reach(page, 'Your Afrimoney number')
        await look(page, 'phone')
        await givePhone(page, '12')
        await reach(page, 'Your Afrimoney number')
        await page.getByText('Enter a number with +220 and 7 digits').first().waitFor()
        assert.equal(await page.getByLabel('Phone number').inputValue(), '12')
        assert.equal(await page.getByLabel('Phone number').getAttribute('aria-invalid'), 'true')
        await look(page, 'phone-error')
        if (scripts) {
          const focused = await page.evaluate(() => document.activeElement.id)
          assert.equal(focused, 'errors', 'the summary takes the focus')
        }
        await button(page, 'Pay another way').click()
        await reach(page, 'How do you want to pay?')
      }))

    test(named('the back button and a reload tell the truth'), () =>
      visit(async page => {
        const checkout = await create()
        await open(page, checkout)
        await toSimulator(page, 'wave')
        await goBack(page)
        await reach(page, /Continue in Wave|We are asking Wave|How do you want to pay/)
        await look(page, 'redirect')
        await goForward(page)
        await reach(page, 'Wave, simulated')
        await decide(page, 'Approve')
        await paid(page)
        await goTo(page)
        await paid(page)
        await goBack(page)
        await eventually(() => heading(page, /^Paid$|This is already paid|Done|Wave, simulated/).isVisible())
        await goTo(page, checkout.payment_url)
        await reach(page, /^Paid$|This is already paid/)
        assert.equal(await button(page, /^Pay (with|by)/).count(), 0, 'a paid page offers no method')
      }))

    test(named('a page that stays where its way out opened elsewhere tells what happens meanwhile'), () =>
      visit(async page => {
        const checkout = await create()
        await open(page, checkout)
        // As where an app takes it: the browser goes nowhere.
        await page.route(/\/simulator\//, route => route.fulfill({ status: 204 }))
        const out = page.waitForRequest(/\/simulator\//)
        await button(page, /^Pay with Wave/).click()
        await reach(page, 'Continue in Wave')
        await out
        await server.api('POST', `/v1/checkouts/${checkout.id}/cancel`)
        if (!scripts) await link(page, 'Look again now').click()
        await reach(page, 'Cancelled', 25)
      }))

    test(named('a cancelled checkout takes nothing'), () =>
      visit(async page => {
        const checkout = await create()
        await open(page, checkout)
        await toSimulator(page, 'wave')
        const simulator = page.url()
        await server.api('POST', `/v1/checkouts/${checkout.id}/cancel`)
        await goTo(page, checkout.payment_url)
        await reach(page, 'Cancelled')
        await page.getByText('Nothing was taken.').waitFor()
        await look(page, 'cancelled')
        await goTo(page, simulator)
        await reach(page, 'Cancelled')
        assert.equal((await get(checkout)).transaction.status, 'cancelled')
      }))

    test(named('money that comes after a cancellation is told'), () =>
      visit(async page => {
        const silent = await create()
        await open(page, silent)
        await withPhone(page, 'afrimoney', SILENT_PHONE)
        await reach(page, 'Approve it on your phone')
        await server.api('POST', `/v1/checkouts/${silent.id}/cancel`)
        await goTo(page, silent.payment_url)
        await reach(page, 'Cancelled')
        await page.getByText('We do not know yet whether money was taken').waitFor()
        await look(page, 'cancelled-unknown')
        // It was taken at once, and the rail has lost its word; it is asked when the merchant gives up.
        const lost = await create()
        await server.api('POST', '/v1/pay/initialize', {
          client_secret: lost.client_secret,
          payment_method: 'afrimoney',
          customer_phone: '+2207000004',
        })
        await server.api('POST', `/v1/checkouts/${lost.id}/cancel`)
        await goTo(page, lost.payment_url)
        await reach(page, 'Your money arrived late')
        await look(page, 'paid-late')
        assert.equal((await get(lost)).status, 'cancelled')
        assert.equal((await get(lost)).transaction.status, 'completed')
      }))

    test(named('a prompt that is out when its merchant cancels is withdrawn'), () =>
      visit(async page => {
        const checkout = await create()
        await open(page, checkout)
        await withPhone(page, 'afrimoney', QUIET_PHONE)
        await reach(page, 'Approve it on your phone')
        const simulator = await link(page, 'Open the simulated phone').getAttribute('href')
        await server.api('POST', `/v1/checkouts/${checkout.id}/cancel`)
        await goTo(page, checkout.payment_url)
        await reach(page, 'Cancelled')
        await page.getByText('Nothing was taken.').waitFor()
        await goTo(page, simulator)
        await reach(page, 'Cancelled')
        assert.equal((await get(checkout)).transaction.status, 'failed')
      }))

    test(named('an address that leads nowhere'), () =>
      payer(browser, { scripts, expected: /status of 404/ }, async page => {
        const response = await goTo(page, `${server.url}/checkout/cs_01h455vb4pex5vsknk084sn02q`)
        assert.equal(response.status(), 404)
        await reach(page, 'There is no payment here')
        await look(page, 'not-found')
      }))

    test(named('French, by the header, by the switch and back'), () =>
      payer(browser, { scripts, locale: 'fr-FR' }, async page => {
        const checkout = await create()
        await goTo(page, checkout.payment_url)
        assert.equal(await page.locator('html').getAttribute('lang'), 'fr')
        await look(page, 'choose-french')
        await link(page, 'English').click()
        assert.equal(await page.locator('html').getAttribute('lang'), 'en')
        await withPhone(page, 'afrimoney', '+2207000000')
        await paid(page)
        assert.equal(await page.locator('html').getAttribute('lang'), 'en', 'the choice is kept along the way')
      }))
  }

  test('the first page weighs at most 30 KB, all in, and nothing is stored or framed', () =>
    payer(browser, {}, async page => {
      const responses = []
      page.on('response', response => responses.push(response))
      const checkout = await create({ description: 'A map', items: [{ description: 'Map', quantity: 2, unit_price: '240.25' }] })
      await open(page, checkout)
      await page.waitForTimeout(500)
      const sizes = await Promise.all(
        responses
          .filter(response => !/events|status/.test(new URL(response.url()).pathname))
          .map(async response => (await response.body().catch(() => Buffer.alloc(0))).length),
      )
      const total = sizes.reduce((sum, size) => sum + size, 0)
      assert.ok(total <= 30 * 1024, `${total} bytes`)
      assert.ok(total > 1000, 'the page was measured')

      const headers = responses[0].headers()
      const policy = headers['content-security-policy']
      assert.match(policy, /default-src 'none'/)
      assert.match(policy, /frame-ancestors 'none'/)
      assert.match(policy, /base-uri 'none'/)
      assert.doesNotMatch(policy, /unsafe-inline|unsafe-eval|\*/)
      assert.match(headers['cache-control'], /no-store/)
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.match(headers['referrer-policy'], /no-referrer|same-origin|strict-origin/)
    }))

  test('the first view at 320 × 568 holds the merchant, the amount and the methods', () =>
    payer(browser, {}, async page => {
      await open(page, await create())
      const first = button(page, /^Pay (with|by)/).first()
      for (const part of [page.getByText(MERCHANT).first(), page.getByText('480.50').first(), first]) {
        const box = await part.boundingBox()
        assert.ok(box.y + box.height <= 568, `${await part.innerText()} ends at ${box.y + box.height} px`)
      }
      assert.ok((await first.boundingBox()).height >= 44)
    }))

  test('the keyboard is enough', () =>
    payer(browser, {}, async page => {
      await open(page, await create())
      const tabTo = async wanted => {
        for (let presses = 0; presses < 30; presses++) {
          await page.keyboard.press('Tab')
          const text = await page.evaluate(() => document.activeElement.innerText || document.activeElement.id)
          if (wanted.test(text)) return
        }
        assert.fail(`no focus on ${wanted}`)
      }
      await tabTo(/^Pay with Afrimoney/)
      await page.keyboard.press('Enter')
      await reach(page, 'Your Afrimoney number')
      await tabTo(/^phone$/)
      await page.keyboard.press('ControlOrMeta+A')
      await page.keyboard.type('+2207000000')
      await page.keyboard.press('Enter')
      await paid(page)
    }))

  test('a page that waits follows what happens elsewhere', () =>
    payer(browser, {}, async page => {
      const checkout = await create()
      await open(page, checkout)
      await withPhone(page, 'afrimoney', QUIET_PHONE)
      await reach(page, 'Approve it on your phone')
      const elsewhere = await page.context().newPage()
      await elsewhere.goto(checkout.payment_url)
      await link(elsewhere, 'Open the simulated phone').click()
      await button(elsewhere, 'Not enough money').click()
      await reach(page, 'Not paid', 10)
    }))

  test('what happens elsewhere does not cut off a page that is on its way', () =>
    payer(browser, {}, async page => {
      const checkout = await create()
      await open(page, checkout)
      await withPhone(page, 'afrimoney', QUIET_PHONE)
      await reach(page, 'Approve it on your phone')
      // A slow network: the answer comes well after the event.
      await page.route(/lang=fr/, async route => {
        await server.api('POST', `/v1/checkouts/${checkout.id}/cancel`)
        await page.waitForTimeout(1500)
        await route.continue()
      }, { times: 1 })
      await link(page, 'Français').click()
      await eventually(async () => (await page.locator('html').getAttribute('lang')) === 'fr')
    }))

  test('on paper it says what is paid for, and offers nothing', () =>
    payer(browser, {}, async page => {
      const items = [{ description: 'Map of the Gambia', quantity: 2, unit_price: '240.25' }]
      await open(page, await create({ amount: undefined, items }))
      const billed = page.getByText('Map of the Gambia')
      const isShown = () => billed.evaluate(it => it.checkVisibility())
      assert.equal(await isShown(), false)
      await page.emulateMedia({ media: 'print' })
      assert.equal(await isShown(), true)
      assert.match(await billed.textContent(), /×\u00a02/)
      assert.equal(await page.getByRole('button').count(), 0)
    }))

  test('what a page may have to say has its place before it speaks', () =>
    payer(browser, {}, async page => {
      await open(page, await create())
      assert.equal(await page.getByRole('status').count(), 1)
      assert.equal((await page.locator('#live').boundingBox()).height, 0)
    }))

  test('the page can be read at 400 % and without motion', () =>
    payer(browser, {}, async page => {
      await page.emulateMedia({ reducedMotion: 'reduce' })
      await page.setViewportSize({ width: 320, height: 256 })
      await open(page, await create())
      const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth])
      assert.ok(inner <= outer)
      await button(page, /^Pay by card/).scrollIntoViewIfNeeded()
      assert.ok(await button(page, /^Pay by card/).isVisible())
    }))

  for (const scripts of SCRIPTS) {
    test(`an expired checkout says that its time is over, ${withScripts(scripts)}`, { timeout: 90_000 }, () =>
      payer(browser, { scripts }, async page => {
        const left = Date.parse(expiring.expires_at) - Date.now()
        if (scripts && left > 5_000) {
          // The time runs while nobody touches the page.
          await goTo(page, expiring.payment_url)
          await page.getByText('You have less than a minute to pay.').waitFor({ timeout: left })
          await look(page, 'little-time')
        }
        const rest = Date.parse(expiring.expires_at) - Date.now()
        if (rest > 0) await new Promise(resolve => setTimeout(resolve, rest))
        await goTo(page, expiring.payment_url)
        await reach(page, 'The time to pay is over')
        assert.equal(await button(page, /^Pay (with|by)/).count(), 0)
        await look(page, 'expired')
      }))
  }
})

// It renames the merchant, so no page of another test may be open meanwhile.
describe('a word of 40 letters', () => {
  const WORD = 'Serekundawomensricegroundnutscooperative'
  before(() => server.api('PUT', '/v1/pay/settings', { name: WORD }))
  after(() => server.api('PUT', '/v1/pay/settings', { name: MERCHANT }))

  for (const scripts of SCRIPTS) {
    test(`stays on the page wherever it stands, ${withScripts(scripts)}`, () =>
      payer(browser, { scripts }, async page => {
        const custom_fields = [{ name: 'rules', label: WORD, type: 'checkbox', required: true }]
        const made = await server.api('POST', '/v1/pay/payment-links', { title: WORD, amount: '5.00', custom_fields })
        await open(page, made)
        await look(page, 'long-word-choice')
        await button(page, /^Pay with Wave/).click()
        await page.locator('#errors').waitFor()
        await look(page, 'long-word-error')
        // The way back is a button with the name in it.
        const checkout = await create({ description: WORD, failure_url: 'https://shop.example/sorry' })
        await server.api('POST', `/v1/checkouts/${checkout.id}/cancel`)
        await goTo(page, checkout.payment_url)
        await reach(page, 'Cancelled')
        await link(page, `Back to ${WORD}`).waitFor()
        await look(page, 'long-word-back')
      }))
  }
})
