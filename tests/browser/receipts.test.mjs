// A receipt's statement is checked in the browser, and only what was signed is ever shown as true.

import assert from 'node:assert/strict'
import { createHmac, createPrivateKey, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { button, goBack, goTo, heading, launch, link, look, payer, reach, SCRIPTS, withScripts } from './browser.mjs'
import { eventually, startServer } from './server.mjs'

// Written by the server's own tests; the signing here is ours, so that the layout is held by two programs.
const EXAMPLE = JSON.parse(readFileSync(new URL('receipt-statement.json', import.meta.url), 'utf8'))
const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const GENUINE = 'This payment is genuine'
const INVALID = 'Not a valid receipt'

let server, browser
before(async () => {
  server = await startServer()
  browser = await launch()
})
after(async () => {
  await browser?.close()
  await server?.stop()
})

const [{ x, kid }] = EXAMPLE.keys.keys
const KEY_ID = Buffer.from(kid, 'base64url').subarray(0, 8)
const privateKey = createPrivateKey({
  key: { kty: 'OKP', crv: 'Ed25519', x, d: Buffer.alloc(32, 1).toString('base64url') },
  format: 'jwk',
})

const toBytes = text => {
  const bits = [...text].map(letter => LETTERS.indexOf(letter).toString(2).padStart(5, '0')).join('')
  return Buffer.from(bits.match(/.{8}/g).map(byte => parseInt(byte, 2)))
}
const toText = bytes => {
  const bits = [...bytes].map(byte => byte.toString(2).padStart(8, '0')).join('')
  return bits.match(/.{1,5}/g).map(group => LETTERS[parseInt(group.padEnd(5, '0'), 2)]).join('')
}
const number = value => {
  const bytes = []
  for (let rest = BigInt(value); ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)])
    bytes.push(Number(rest & 127n) | 128)
  }
}
const short = text => Buffer.concat([Buffer.from([Buffer.byteLength(text)]), Buffer.from(text)])

/** A statement of the example's key, about another payment. */
function statement(changes = {}) {
  const said = {
    live: true, digits: 2, currency: 'GMD', minor: 150_000, seconds: 1_795_273_500, number: 'RCT-2026-001',
    merchant: 'Kairaba Books', payer: 'fatou ceesay', code: EXAMPLE.validation_code, version: 1, ...changes,
  }
  const body = Buffer.concat([
    Buffer.from([said.version, (said.live ? 128 : 0) | said.digits]),
    KEY_ID,
    Buffer.from(said.currency),
    number(said.minor),
    number(said.seconds),
    short(said.number),
    short(said.merchant),
    createHmac('sha256', said.code).update(said.payer).digest().subarray(0, 16),
  ])
  const message = Buffer.concat([Buffer.from('dalasi receipt statement v1\0'), body])
  return toText(Buffer.concat([body, sign(null, message, privateKey)]))
}

/** The page as the server gives it, except that the example's key is among its keys. */
async function withKey(page) {
  await page.route(/\/verify(\?|$)/, async route => {
    const response = await route.fetch()
    const html = await response.text()
    await route.fulfill({ response, body: html.replace('data-keys="', `data-keys="${KEY_ID.toString('hex')}.${x} `) })
  })
}

const visit = (options, steps) =>
  payer(browser, options, async page => {
    await withKey(page)
    await steps(page)
  })
/** A receipt of this installation, as the API shows it. */
async function issued() {
  const items = [{ description: 'Reading the River', quantity: 1, unit_price: '250.00' }]
  const customer = { customer_email: 'fatou@example.gm', customer_name: 'Fatou Ceesay' }
  const { id } = await server.api('POST', '/v1/pay/invoices', { ...customer, due_date: '2099-11-30', items })
  await server.api('POST', `/v1/pay/invoices/${id}/payments`, { amount: '250.00', payment_method: 'cash' })
  const [receipt] = (await server.api('GET', `/v1/pay/invoices/${id}`)).receipts
  return server.api('GET', `/v1/pay/receipts/${receipt.id}`)
}
const open = (page, text, query = '') => goTo(page, `${server.url}/verify${query}${text ? `#${text}` : ''}`)

describe('receipt', { concurrency: 2 }, () => {
  test('the two programs write the same', () => {
    assert.equal(statement(), EXAMPLE.statement)
    assert.equal(toText(toBytes(EXAMPLE.statement)), EXAMPLE.statement)
  })

  test('a genuine statement shows what was signed, large', () =>
    visit({}, async page => {
      await open(page, EXAMPLE.statement)
      await reach(page, GENUINE)
      assert.equal(await page.locator('#amount').innerText(), '1,500.00 GMD')
      const details = await page.locator('dl').innerText()
      for (const said of ['Kairaba Books', 'RCT-2026-001', '21 November 2026, 15:05 (Banjul time)']) {
        assert.ok(details.replaceAll('\u00a0', ' ').includes(said), `${said} in ${details}`)
      }
      await page.getByText('Compare this with the receipt before you.').waitFor()
      await page.getByText('Only a long name may end earlier here, with “…”.').waitFor()
      await page.locator('#valid').getByText(new URL(server.url).host).waitFor()
      assert.ok(await page.getByText('Test mode').isHidden())
      assert.equal(await page.title(), GENUINE)
      await look(page, 'receipt-genuine')
    }))

  test('each character that is another makes it invalid, and nothing of it is shown', () =>
    visit({}, async page => {
      await open(page, EXAMPLE.statement)
      await reach(page, GENUINE)
      const accepted = await page.evaluate(async ([text, letters]) => {
        const accepted = []
        const settled = () => new Promise(resolve => {
          const look = () => (document.getElementById('checking').hidden ? resolve() : setTimeout(look))
          setTimeout(look)
        })
        for (let at = 0; at < text.length; at++) {
          const letter = letters[(letters.indexOf(text[at]) + 1 + (at % 31)) % 32]
          const before = location.hash
          location.hash = text.slice(0, at) + letter + text.slice(at + 1)
          if (location.hash === before) throw new Error('the same statement')
          await new Promise(resolve => addEventListener('hashchange', resolve, { once: true }))
          await settled()
          const shown = ['amount', 'merchant', 'number', 'paid-at'].map(id => document.getElementById(id).textContent.trim())
          if (document.getElementById('invalid').hidden || !document.getElementById('valid').hidden || shown.join('')) {
            accepted.push(at)
          }
        }
        return accepted
      }, [EXAMPLE.statement, LETTERS])
      assert.deepEqual(accepted, [])
      await reach(page, INVALID)
      await look(page, 'receipt-invalid')
    }))

  test('what is incomplete, longer, of another version or another key is invalid', () =>
    visit({}, async page => {
      const text = EXAMPLE.statement
      const forged = toBytes(text)
      forged.fill(0, forged.length - 64)
      const foreign = toBytes(text)
      foreign.set(Buffer.alloc(8, 7), 2)
      for (const [what, altered] of Object.entries({
        cut: text.slice(0, -1),
        'half of it': text.slice(0, text.length / 2),
        longer: `${text}0`,
        twice: text + text,
        'an unused bit': text.replace(/Y$/, 'Z'),
        'lower case': text.toLowerCase(),
        'a blank': `${text.slice(0, 9)}%20${text.slice(9)}`,
        'another version': statement({ version: 2 }),
        'no signature': toText(forged),
        'another key': toText(foreign),
        'a word': 'HELLO',
        script: '<script>alert(1)</script>',
        'very long': 'A'.repeat(100_000),
      })) {
        await open(page, text)
        await reach(page, GENUINE)
        await page.evaluate(hash => { location.hash = hash }, altered)
        await reach(page, INVALID).catch(error => { throw new Error(`${what}: ${error.message}`) })
        assert.equal((await page.locator('#amount').textContent()).trim(), '', what)
      }
    }))

  test('a code that was copied from another receipt shows that one’s amount', () =>
    visit({}, async page => {
      // Printed on a receipt over 99,000.00: the page says what was really paid.
      await open(page, statement({ minor: 2_500, number: 'RCT-2026-007' }))
      await reach(page, GENUINE)
      assert.equal(await page.locator('#amount').innerText(), '25.00 GMD')
      await page.getByText('RCT-2026-007').waitFor()
    }))

  test('amounts and names of every kind', () =>
    visit({}, async page => {
      for (const [changes, amount, merchant] of [
        [{ minor: 1 }, '0.01 GMD', 'Kairaba Books'],
        [{ minor: 99_999_999_999_999 }, '999,999,999,999.99 GMD', 'Kairaba Books'],
        [{ currency: 'XOF', digits: 0, minor: 1_500 }, '1,500 XOF', 'Kairaba Books'],
        [{ currency: 'KWD', digits: 3, minor: 1 }, '0.001 KWD', 'Kairaba Books'],
        [{ merchant: 'Épicerie <b>“Chez Awa”</b> 🎉' }, '1,500.00 GMD', 'Épicerie <b>“Chez Awa”</b> 🎉'],
        [{ merchant: 'a\u202eb\u0000c' }, '1,500.00 GMD', 'abc'],
        // What joins letters stays, as on the server's pages; and a longer name ends so.
        [{ merchant: 'क्\u200dष \u0646\u200c\u0647\u200b' }, '1,500.00 GMD', 'क्\u200dष \u0646\u200c\u0647'],
        [{ merchant: 'Serekunda Market Women’s Co-operative Society for Rice…' }, '1,500.00 GMD', 'Serekunda Market Women’s Co-operative Society for Rice…'],
      ]) {
        await open(page, statement(changes))
        await reach(page, GENUINE)
        assert.equal(await page.locator('#amount').innerText(), amount)
        assert.equal(await page.locator('#merchant').innerText(), merchant)
        if (amount.length > 12) await look(page, 'receipt-long-amount')
      }
    }))

  test('a receipt of test mode says so', () =>
    visit({}, async page => {
      await open(page, statement({ live: false }))
      await reach(page, GENUINE)
      await page.getByText('No real money moves.').waitFor()
      await look(page, 'receipt-test-mode')
    }))

  test('the payer is proved by name and code', () =>
    visit({}, async page => {
      await open(page, EXAMPLE.statement)
      await page.getByText('Who paid?').click()
      const check = async (name, code) => {
        await page.getByLabel('Payer', { exact: true }).fill(name)
        await page.getByLabel('Validation code').fill(code)
        await button(page, 'Check the payer').click()
      }
      const yes = page.getByText('This name and this code belong to the payment.')
      const no = page.getByText('This name and this code do not belong together.')
      await check(EXAMPLE.payer, EXAMPLE.validation_code)
      await yes.waitFor()
      await look(page, 'receipt-payer')
      await check('Somebody Else', EXAMPLE.validation_code)
      await no.waitFor()
      assert.ok(await yes.isHidden())
      await check(' FATOU   ceesay ', `${EXAMPLE.validation_code.toUpperCase().slice(0, 16)} ${EXAMPLE.validation_code.slice(16)}`)
      await yes.waitFor()
      for (const name of EXAMPLE.typed_alike) {
        await check(name, EXAMPLE.validation_code)
        await yes.waitFor()
        await check('Somebody Else', EXAMPLE.validation_code)
        await no.waitFor()
      }
      for (const name of EXAMPLE.typed_otherwise) {
        await check(EXAMPLE.payer, EXAMPLE.validation_code)
        await yes.waitFor()
        await check(name, EXAMPLE.validation_code)
        await no.waitFor()
      }
      const unseen = await page.evaluate(() => {
        const all = Array.from({ length: 0x110000 }, (_, code) => String.fromCodePoint(code))
        return all.filter(character => /[\p{DI}\p{Co}]/u.test(character)).length
      })
      assert.equal(unseen, EXAMPLE.unseen_characters)
      await check(EXAMPLE.payer, '')
      await no.waitFor()
      await check(EXAMPLE.payer, EXAMPLE.validation_code.replace('f', 'e'))
      await no.waitFor()
      assert.equal(new URL(page.url()).search, '', 'nothing was sent')
      // Another receipt begins anew.
      await page.evaluate(hash => { location.hash = hash }, statement({ payer: 'zoé', code: 'a'.repeat(32) }))
      await page.getByText(GENUINE).waitFor()
      await no.waitFor({ state: 'hidden' })
      await check('ZOE\u0301', 'A'.repeat(32))
      await yes.waitFor()
    }))

  test('without a statement the page explains itself and takes one', () =>
    visit({}, async page => {
      await open(page)
      await reach(page, 'Check a receipt')
      await look(page, 'receipt-intro')
      const field = page.getByLabel('Code of the receipt')
      await field.fill(`  https://pay.example/verify#${EXAMPLE.statement}\n`)
      await button(page, 'Check').click()
      await reach(page, GENUINE)
      await goBack(page)
      await reach(page, 'Check a receipt')
      await field.fill(EXAMPLE.statement.slice(0, -20))
      await page.keyboard.press('Enter')
      await reach(page, INVALID)
      await page.getByText('Check by hand').click()
      await field.fill(EXAMPLE.statement)
      await button(page, 'Check').click()
      await reach(page, GENUINE)
      assert.equal(await page.evaluate(() => document.activeElement.tagName), 'H1')
    }))

  test('it needs no network once it is there', () =>
    visit({ expected: /ERR_INTERNET_DISCONNECTED/ }, async page => {
      await open(page)
      await reach(page, 'Check a receipt')
      await page.context().setOffline(true)
      await page.evaluate(hash => { location.hash = hash }, EXAMPLE.statement)
      await reach(page, GENUINE)
      await page.evaluate(hash => { location.hash = hash }, EXAMPLE.statement.slice(1))
      await reach(page, INVALID)
    }))

  test('a page that is older than a key calls nothing forged', () =>
    payer(browser, { expected: /ERR_INTERNET_DISCONNECTED/ }, async page => {
      let [knows, isAway] = [false, false]
      await page.route(/\/verify(\?|$)/, async route => {
        if (isAway) return route.abort('internetdisconnected')
        const response = await route.fetch()
        const html = await response.text()
        const key = knows ? `${KEY_ID.toString('hex')}.${x} ` : ''
        await route.fulfill({ response, body: html.replace('data-keys="', `data-keys="${key}`) })
      })
      const grow = () => page.evaluate(() => { performance.now = () => 120_000 })
      const scan = text => page.evaluate(hash => { location.hash = hash }, text)
      await open(page)
      await reach(page, 'Check a receipt')
      await grow()
      // Nobody can tell who reaches nobody, also on a phone that is online by its own account.
      isAway = true
      await scan(EXAMPLE.statement)
      await reach(page, 'Open this page again')
      assert.equal((await page.locator('#amount').textContent()).trim(), '')
      await look(page, 'receipt-outdated')
      // What is no statement needs none.
      await scan(EXAMPLE.statement.slice(1))
      await reach(page, INVALID)
      isAway = false
      knows = true
      await scan(EXAMPLE.statement)
      await reach(page, GENUINE)
      // What a new page does not know either is forged.
      knows = false
      await open(page, '', '?lang=en')
      await reach(page, 'Check a receipt')
      await grow()
      await scan(EXAMPLE.statement)
      await reach(page, INVALID)
      await page.getByText('Do not accept it as proof of a payment.').first().waitFor()
    }))

  test('a browser that cannot check says so and shows nothing', () =>
    visit({}, async page => {
      await page.addInitScript(() => {
        crypto.subtle.importKey = () => Promise.reject(new DOMException('no', 'NotSupportedError'))
      })
      await open(page, EXAMPLE.statement)
      await reach(page, 'This browser cannot check receipts')
      assert.equal((await page.locator('#amount').textContent()).trim(), '')
      await look(page, 'receipt-unsupported')
      await page.evaluate(hash => { location.hash = hash }, EXAMPLE.statement.slice(1))
      await reach(page, 'This browser cannot check receipts')
    }))

  test('a page that is not secure has no means to check', () =>
    visit({}, async page => {
      await page.addInitScript(() => Object.defineProperty(Crypto.prototype, 'subtle', { value: undefined }))
      await open(page, EXAMPLE.statement)
      await reach(page, 'This browser cannot check receipts')
    }))

  for (const scripts of SCRIPTS) {
    test(`a validation code is looked up, ${withScripts(scripts)}`, () =>
      payer(browser, { scripts }, async page => {
        const receipt = await issued()
        const check = async typed => {
          // After an answer the field is folded away.
          const field = page.getByLabel('Code of the receipt')
          if (!(await field.isVisible())) await page.getByText('Check by hand').click()
          await field.fill(typed)
          await button(page, 'Check').click()
        }
        await open(page)
        await reach(page, 'Check a receipt')
        await check(receipt.validation_code)
        await reach(page, GENUINE)
        const said = (await page.locator('#answer').innerText()).replaceAll('\u00a0', ' ')
        for (const words of ['has issued this receipt', '250.00 GMD', 'Kairaba Books', receipt.receipt_number]) {
          assert.ok(said.includes(words), `${words} in ${said}`)
        }
        assert.ok(!said.includes('Paid back'), said)
        await page.getByText('No real money moves.').waitFor()
        assert.equal(await page.title(), GENUINE)
        await look(page, 'receipt-by-code')

        await server.api('POST', `/v1/pay/transactions/${receipt.transaction_id}/refund`, { amount: '20.00', reason: 'Torn' })
        const told = () => server.api('GET', `/v1/pay/receipts/validate/${receipt.validation_code}`)
        await eventually(async () => (await told()).refunded_amount === '20.00')
        // As a person copies it from paper.
        const groups = receipt.validation_code.toUpperCase().match(/.{8}/g)
        await check(` ${groups[0]}-${groups[1]} ${groups[2]}  ${groups[3]} `)
        await reach(page, GENUINE)
        await page.getByText(/^20\.00\s+GMD$/).waitFor()
        await link(page, 'Français').click()
        await reach(page, 'Ce paiement est authentique')
        await link(page, 'English').click()
        await reach(page, GENUINE)

        // The address of the answer, as a merchant is sent it, of a code that was typed in groups.
        assert.match(page.url(), /code=[^&]*\+/)
        await check(page.url())
        await reach(page, GENUINE)
        await page.getByText(/^20\.00\s+GMD$/).waitFor()

        await check(receipt.validation_code.replace(/.$/, last => (last === '0' ? '1' : '0')))
        await reach(page, 'No receipt has this code')
        await page.getByText('Do not accept it as proof of a payment.').first().waitFor()
        await look(page, 'receipt-unknown-code')
        await check(receipt.validation_code)
        await reach(page, GENUINE)
      }))
  }

  for (const scripts of [true, false]) {
    test(`a mistyped code is not taken for a forged receipt, ${withScripts(scripts)}`, () =>
      payer(browser, { scripts }, async page => {
        const close = ['5f0c 9a7b-e1d2 4386 a0f4 c2e8 b19d 73o', '5f0c9a7be1d24386a0f4c2e8b19d731', '5F0C9A7BE1D24386A0F4C2E8B19D73112']
        for (const typed of close) {
          await open(page)
          await page.getByLabel('Code of the receipt').fill(typed)
          await button(page, 'Check').click()
          await link(page, 'Enter the validation code: 32 digits and letters from a to f.').waitFor()
          assert.equal(await page.getByLabel('Code of the receipt').inputValue(), typed)
          assert.equal(await page.getByText('Do not accept').filter({ visible: true }).count(), 0)
        }
        for (const typed of ['HELLO', 'RCT-2026-001', '5f0c 9a7b']) {
          await open(page)
          await page.getByLabel('Code of the receipt').fill(typed)
          await button(page, 'Check').click()
          await link(page, 'Enter the validation code: 32 digits and letters from a to f.').waitFor()
        }
        await look(page, 'receipt-no-code')
        await goTo(page, `${server.url}/verify?code=${encodeURIComponent('Call +220 7000000')}`)
        assert.equal(await page.getByLabel('Code of the receipt').inputValue(), '', 'it says what its own payer typed, and nothing else')
        assert.equal(await page.getByText('Do not accept').filter({ visible: true }).count(), 0)
      }))
  }

  test('a statement after a code is checked as ever, and nothing of it is sent', () =>
    visit({}, async page => {
      const { validation_code } = await issued()
      await goTo(page, `${server.url}/verify?code=${validation_code}`)
      await reach(page, GENUINE)
      await page.evaluate(hash => { location.hash = hash }, EXAMPLE.statement)
      await page.locator('#valid').waitFor()
      assert.ok(await page.locator('#answer').isHidden())
      assert.equal(await page.locator('#amount').innerText(), '1,500.00 GMD')
      assert.ok(await page.getByText('Test mode').isHidden())
      await goBack(page)
      await page.locator('#answer').waitFor()
      await page.getByText('No real money moves.').waitFor()
    }))

  test('without JavaScript it says what it needs', () =>
    payer(browser, { scripts: false }, async page => {
      await open(page, EXAMPLE.statement)
      await reach(page, 'Check a receipt')
      // What stands in <noscript> has no text for `getByText`.
      assert.match(await page.locator('noscript p').innerText(), /needs JavaScript for it/)
      assert.equal(await heading(page, GENUINE).count(), 0)
      await look(page, 'receipt')
    }))

  test('French, and the other language keeps the statement', () =>
    visit({ locale: 'fr-FR' }, async page => {
      await open(page, statement({ seconds: Date.UTC(2026, 2, 1) / 1000 }))
      await reach(page, 'Ce paiement est authentique')
      assert.match(await page.locator('#valid').innerText(), /1er\s+mars\s+2026/, 'as on the receipt')
      await open(page, EXAMPLE.statement)
      await reach(page, 'Ce paiement est authentique')
      assert.equal(await page.locator('html').getAttribute('lang'), 'fr')
      assert.equal(await page.locator('#amount').innerText(), '1\u202f500,00 GMD')
      assert.equal((await page.locator('#paid-at').innerText()).replaceAll('\u00a0', ' '), '21 novembre 2026 à 15:05 (heure de Banjul)')
      await look(page, 'receipt-french')
      await link(page, 'English').click()
      await reach(page, GENUINE)
    }))

  test('the installation’s own page knows no foreign key', () =>
    payer(browser, {}, async page => {
      await open(page, EXAMPLE.statement)
      await reach(page, INVALID)
    }))

  test('it weighs little and loads only what is its own', () =>
    payer(browser, {}, async page => {
      const responses = []
      page.on('response', response => responses.push(response))
      await open(page, EXAMPLE.statement)
      await reach(page, INVALID)
      const bodies = await Promise.all(responses.map(response => response.body()))
      const total = bodies.reduce((sum, body) => sum + body.length, 0)
      assert.ok(total > 1000 && total <= 30 * 1024, `${total} bytes`)
      const policy = responses[0].headers()['content-security-policy']
      assert.match(policy, /default-src 'none'/)
      assert.doesNotMatch(policy, /unsafe-inline|unsafe-eval|\*/)
    }))
})
