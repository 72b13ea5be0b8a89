// One address, many payers: each has a page of their own, and none sees another's payment.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { button, goTo, launch, link, look, payer, reach, SCRIPTS, withScripts } from './browser.mjs'
import { QUIET_PHONE, amount, backToPayment, decide, givePhone, open, paid, payWith, press, toSimulator, withPhone } from './flows.mjs'
import { eventually, startServer, startShop } from './server.mjs'

const WAYS = ['wave', 'card', 'afrimoney', 'qmoney']
const QUESTIONS = [
  { name: 'pupil', label: 'Name of the pupil', type: 'text', required: true },
  { name: 'seats', label: 'How many seats?', type: 'number', required: false },
  { name: 'colour', label: 'Colour', type: 'select', required: true, options: ['red', 'green'] },
  { name: 'rules', label: 'I have read the rules', type: 'checkbox', required: true },
]

let server, browser, shop
before(async () => {
  browser = await launch()
  shop = await startShop()
})
after(async () => {
  await browser?.close()
  await shop?.stop()
})

/** A server of their own for the tests of one `describe`: one phone is asked to pay by links ten times in ten minutes, not more. */
function withServer() {
  before(async () => (server = await startServer()))
  after(() => server?.stop())
}

const create = fields => server.api('POST', '/v1/pay/payment-links', { title: 'Concert at the river', amount: '250.00', ...fields })
const get = made => server.api('GET', `/v1/pay/payment-links/${made.id}`)
const session = page => new URL(page.url()).pathname.split('/')[3]
const status = async page => server.api('GET', `/v1/pay/status/${session(page)}`)

for (const scripts of SCRIPTS) {
  describe(`payment link, ${withScripts(scripts)}`, { concurrency: 2 }, () => {
    withServer()
    const visit = steps => payer(browser, { scripts }, steps)

    for (const way of WAYS) {
      test(`is paid by ${way}, by one after the other`, () =>
        visit(async page => {
          const made = await create()
          for (const count of [1, 2]) {
            await open(page, made)
            assert.match(await amount(page), /^250\.00/)
            if (way === 'wave') await look(page, 'link')
            await payWith(page, way)
            await paid(page)
            assert.equal((await status(page)).status, 'succeeded')
            assert.equal((await get(made)).usage_count, count)
            await goTo(page)
            await paid(page)
          }
          if (way === 'wave') await look(page, 'link-paid')
        }))
    }

    test('asks for what it needs, says all that is wrong at once, and keeps what was typed', () =>
      visit(async page => {
        const made = await create({
          amount: '0.00', min_amount: '50.00', max_amount: '500.00', collect_customer_info: true, custom_fields: QUESTIONS,
        })
        await open(page, made)
        await look(page, 'link-fields')
        await page.getByLabel('Amount').fill('20')
        await page.getByLabel('Your name').fill('Fatou <b>Ceesay</b>')
        await page.getByLabel('How many seats?').fill('many')
        await button(page, /^Pay with Wave/).click()
        const summary = page.locator('#errors')
        for (const said of ['Amount: At least 50.00', 'Phone number: Enter your phone number', 'Name of the pupil: Fill in', 'How many seats?: Enter a number in digits.', 'Colour: Choose one', 'I have read the rules: Tick this box']) {
          await summary.getByText(said).waitFor()
        }
        assert.equal(await page.getByLabel('Your name').inputValue(), 'Fatou <b>Ceesay</b>')
        await look(page, 'link-fields-wrong')

        await page.getByLabel('Amount').fill('120.50')
        await page.getByLabel('Phone number').fill(QUIET_PHONE)
        await page.getByLabel('Name of the pupil').fill('Awa')
        await page.getByLabel('Colour').selectOption('green')
        await page.getByLabel('I have read the rules').check()
        await page.getByLabel('How many seats?').fill('3')
        await payWith(page, 'wave')
        await paid(page)
        assert.match(await amount(page), /^120\.50/)
        const { transaction_id } = await status(page)
        const stored = await server.api('GET', `/v1/pay/session/${session(page)}`)
        assert.deepEqual([stored.amount, stored.customer_phone, stored.customer_name], ['120.50', '+2207654321', 'Fatou <b>Ceesay</b>'])
        assert.ok(transaction_id)
      }))

    test('what was filled in stays on the way to another phone and another method', () =>
      visit(async page => {
        const made = await create({ amount: '0.00', custom_fields: QUESTIONS.slice(0, 1) })
        await open(page, made)
        await page.getByLabel('Amount').fill('75')
        await page.getByLabel('Name of the pupil').fill('Awa')
        await button(page, /^Pay with Afrimoney/).click()
        await reach(page, 'Your Afrimoney number')
        assert.match(await amount(page), /^75\.00/)
        await givePhone(page, QUIET_PHONE)
        await reach(page, 'Approve it on your phone')
        await link(page, 'Open the simulated phone').click()
        await decide(page, 'Refuse')
        await reach(page, 'Not paid')
        assert.match(await amount(page), /^75\.00/)
        await button(page, /^Pay with QMoney/).click()
        await reach(page, 'Your QMoney number')
        await button(page, /^Continue with/).click()
        await reach(page, 'Enter the code')
        await button(page, 'Pay another way').click()
        await reach(page, 'How do you want to pay?')
        await payWith(page, 'wave')
        await paid(page)
        assert.match(await amount(page), /^75\.00/)
        assert.equal((await get(made)).usage_count, 1)
      }))

    test('a double click and two tabs of one page pay once', () =>
      visit(async page => {
        const made = await create()
        await open(page, made)
        await button(page, /^Pay with Afrimoney/).click()
        await reach(page, 'Your Afrimoney number')
        const second = await page.context().newPage()
        await second.goto(page.url())
        for (const tab of [page, second]) await tab.getByLabel('Phone number').fill('+2207000000')
        // Whichever comes first; the other tab may have heard of it before its own click.
        const late = button(second, 'Continue').dispatchEvent('click', {}, { timeout: 3000 }).catch(() => {})
        const early = button(page, 'Continue').dblclick({ timeout: 5000 }).catch(() => {})
        await Promise.all([early, late])
        // A page that answers the slower click with a note is not drawn again without script: its reader reloads it.
        await eventually(async () => (await get(made)).usage_count === 1)
        for (const tab of scripts ? [] : [page, second]) await goTo(tab)
        await paid(page)
        await reach(second, /^Paid$|This is already paid/)
        assert.equal((await get(made)).usage_count, 1)
      }))

    test('two tabs of a payment that failed try again once', () =>
      visit(async page => {
        const made = await create()
        await open(page, made)
        await withPhone(page, 'afrimoney', QUIET_PHONE)
        await reach(page, 'Approve it on your phone')
        await link(page, 'Open the simulated phone').click()
        await decide(page, 'Refuse')
        await reach(page, 'Not paid')
        const second = await page.context().newPage()
        await second.goto(page.url())
        // Whichever is slower may be led on by what the other has begun, before its own click.
        await Promise.all([page, second].map(tab => toSimulator(tab, 'wave', press)))
        assert.equal(second.url(), page.url(), 'both lead to one payment')
        await decide(page, 'Approve')
        await paid(page)
        await goTo(second)
        await backToPayment(second)
        await paid(second)
        assert.equal(session(second), session(page))
        assert.equal((await get(made)).usage_count, 1)
      }))

    test('a double click on a method opens one payment', () =>
      visit(async page => {
        const made = await create()
        await open(page, made)
        await button(page, /^Pay with Wave/).dblclick()
        await reach(page, /Wave, simulated|Continue in Wave/)
        // It may lead on by itself before the click.
        if (await link(page, 'Open Wave').isVisible()) await press(link(page, 'Open Wave'))
        await reach(page, 'Wave, simulated')
        await decide(page, 'Approve')
        await paid(page)
        const { transaction_count } = await server.api('GET', '/v1/pay/dashboard')
        assert.ok(transaction_count > 0)
        assert.equal((await get(made)).usage_count, 1)
      }))

    test('leads back to the shop, paid or not', () =>
      payer(browser, { scripts, allowed: [shop.url] }, async page => {
        const made = await create({ success_url: `${shop.url}/thanks?a=1`, failure_url: `${shop.url}/sorry` })
        await open(page, made)
        await button(page, 'Cancel and return to the shop').click()
        await reach(page, 'Welcome back')
        assert.match(page.url(), /\/sorry$/)
        await open(page, made)
        await payWith(page, 'wave')
        await paid(page)
        const id = session(page)
        await link(page, 'Back to Kairaba Books').click()
        await reach(page, 'Welcome back')
        assert.equal(new URL(page.url()).search, `?a=1&payment_session_id=${id}`)
      }))

    test('takes nothing when it is off, over or used up', () =>
      visit(async page => {
        const off = await create()
        await open(page, off)
        await server.api('PUT', `/v1/pay/payment-links/${off.id}`, { status: 'inactive' })
        // With scripts the page has heard of it already.
        await button(page, /^Pay with Wave/).click({ timeout: 2000 }).catch(() => {})
        await reach(page, 'No more payments here')
        await page.getByText('This link takes no payments any more.').waitFor()
        await look(page, 'link-inactive')

        const once = await create({ max_usage_count: 1 })
        await open(page, once)
        await payWith(page, 'wave')
        await paid(page)
        await goTo(page, once.payment_url)
        await reach(page, 'No more payments here')
        await page.getByText('This link has been paid as often as it can be.').waitFor()
      }))

    test('what was begun goes on when the link ends', () =>
      visit(async page => {
        const made = await create()
        await open(page, made)
        await withPhone(page, 'afrimoney', QUIET_PHONE)
        await reach(page, 'Approve it on your phone')
        await server.api('PUT', `/v1/pay/payment-links/${made.id}`, { status: 'inactive' })
        await goTo(page)
        await reach(page, 'Approve it on your phone')
        await link(page, 'Open the simulated phone').click()
        await decide(page, 'Approve')
        await paid(page)
      }))

    test('in French, with a comma', () =>
      payer(browser, { scripts, locale: 'fr-FR' }, async page => {
        const made = await create({ amount: '0.00', min_amount: '1.00' })
        await goTo(page, made.payment_url)
        await page.getByLabel('Montant').fill('0,50')
        await button(page, /^Payer avec Afrimoney/).click()
        await page.getByText('Au moins 1,00 GMD').first().waitFor()
        await look(page, 'link-french')
        await page.getByLabel('Montant').fill('1 250,50')
        await button(page, /^Payer avec Afrimoney/).click()
        await page.getByLabel('Numéro de téléphone').fill('+2207000000')
        await button(page, 'Continuer').click()
        await reach(page, 'Payé')
        assert.match(await amount(page), /^1\s250,50/)
      }))

    test('takes a number as its language writes it', () =>
      payer(browser, { scripts, locale: 'fr-FR' }, async page => {
        const made = await create({ custom_fields: QUESTIONS.slice(1, 2) })
        await goTo(page, made.payment_url)
        const seats = page.getByLabel('How many seats?')
        await seats.fill('3.5,1')
        await button(page, /^Payer avec Afrimoney/).click()
        await page.locator('#errors').getByText('How many seats?').waitFor()
        assert.equal(await seats.inputValue(), '3.5,1')
        await seats.fill('1 003,5')
        await button(page, /^Payer avec Afrimoney/).click()
        await page.getByLabel('Numéro de téléphone').fill('+2207000000')
        await button(page, 'Continuer').click()
        await reach(page, 'Payé')
        const { transaction_id } = await status(page)
        const { metadata } = await server.api('GET', `/v1/pay/transactions/${transaction_id}`)
        assert.equal(metadata.seats, '1003.5')
      }))

    test('Enter in a field chooses no method', () =>
      visit(async page => {
        const made = await create({ amount: '0.00' })
        await open(page, made)
        const sent = []
        page.on('request', request => { if (request.method() === 'POST') sent.push(request.postData()) })
        await page.getByLabel('Amount').fill('75')
        await page.getByLabel('Amount').press('Enter')
        await button(page, /^Pay with Afrimoney/).click()
        await reach(page, 'Your Afrimoney number')
        assert.deepEqual(sent.map(body => new URLSearchParams(body).get('method')), ['afrimoney'])
        // Where there is nothing to choose between it goes on.
        await page.getByLabel('Phone number').fill(QUIET_PHONE)
        await page.getByLabel('Phone number').press('Enter')
        await reach(page, 'Approve it on your phone')
      }))

    test('an address that leads nowhere, and a deleted link', () =>
      payer(browser, { scripts, expected: /status of 404/ }, async page => {
        const made = await create()
        const response = await fetch(`${server.url}/v1/pay/payment-links/${made.id}`, {
          method: 'DELETE', headers: { Authorization: `Bearer ${server.keys.test.secret}` },
        })
        assert.equal(response.status, 204)
        for (const path of [`/pay/${made.id}`, '/pay/pl_01h455vb4pex5vsknk084sn02q', `/pay/${made.id}/ps_01h455vc1nf1ysr3q8s9p3k4mh`]) {
          const answer = await goTo(page, server.url + path)
          assert.equal(answer.status(), 404, path)
          await reach(page, 'There is no payment here')
        }
      }))
  })
}

describe('payment link', { concurrency: 2 }, () => {
  withServer()

  test('one payer sees nothing of another', () =>
    payer(browser, {}, async page => {
      const made = await create()
      await open(page, made)
      await withPhone(page, 'afrimoney', QUIET_PHONE)
      await reach(page, 'Approve it on your phone')
      const mine = page.url()
      await open(page, made)
      const said = await page.locator('body').innerText()
      assert.ok(!said.includes('765'), said)
      const another = await create()
      const strange = mine.replace(made.id, another.id)
      assert.equal((await fetch(strange)).status, 404, 'a payment belongs to its link')
    }))

  test('rests a phone that was asked too often', () =>
    payer(browser, {}, async page => {
      const made = await create()
      for (let count = 1; count <= 11; count++) {
        await open(page, made)
        await withPhone(page, 'afrimoney', '+2207000001')
        if (count <= 10) await reach(page, 'Not paid')
      }
      await reach(page, 'Your Afrimoney number')
      await page.getByText('That was too often').first().waitFor()
      assert.equal(await page.getByLabel('Phone number').inputValue(), '+2207000001')
      await look(page, 'link-phone-rests')
    }))

  test('a wide screen shows the address for a phone', () =>
    payer(browser, {}, async page => {
      const made = await create()
      await open(page, made)
      assert.ok(await page.getByRole('img', { name: 'QR code with the address of this page' }).isHidden())
      await page.setViewportSize({ width: 1280, height: 800 })
      await page.getByRole('img', { name: 'QR code with the address of this page' }).waitFor()
    }))
})
