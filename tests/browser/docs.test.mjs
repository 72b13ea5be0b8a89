// The reference at /docs tries operations out in test mode only, whatever is pasted into it.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { launch } from './browser.mjs'
import { startServer } from './server.mjs'

let server, browser

before(async () => {
  server = await startServer()
  browser = await launch()
})
after(async () => {
  await browser?.close()
  await server?.stop()
})

/** As a program gets it. */
async function token(key) {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const answer = await fetch(`${server.url}/v1/auth/token`, { method: 'POST', headers, body: '{}' })
  const { data } = await answer.json()
  assert.ok(data.access_token, JSON.stringify(data))
  return data.access_token
}

test('what is of live mode is not sent', async () => {
  const page = await browser.newPage()
  await page.goto(`${server.url}/docs`)
  const tried = credential =>
    page.evaluate(authorization => {
      const request = { headers: new Headers(authorization ? { Authorization: authorization } : {}) }
      const controller = new AbortController()
      document.querySelector('rapi-doc').dispatchEvent(new CustomEvent('before-try', { detail: { request, controller } }))
      return { sent: !controller.signal.aborted, warned: !document.querySelector('#trouble').hidden }
    }, credential)
  const { test: ofTest, live } = server.keys
  for (const credential of [live.secret, live.publishable, await token(live.secret)]) {
    assert.deepEqual(await tried(`Bearer ${credential}`), { sent: false, warned: true }, credential)
  }
  for (const credential of [ofTest.secret, await token(ofTest.secret), 'a.b.c', '']) {
    assert.deepEqual(await tried(credential && `Bearer ${credential}`), { sent: true, warned: false }, credential)
  }
  await page.close()
})
