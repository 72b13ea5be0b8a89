// A receiver on the public Standard Webhooks library for JavaScript accepts every delivery.

import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import { after, before, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { eventually, startServer } from './server.mjs'

let server, receiver
const deliveries = []

before(async () => {
  server = await startServer()
  receiver = createServer((request, response) => {
    const chunks = []
    request.on('data', chunk => chunks.push(chunk))
    request.on('end', () => {
      deliveries.push({ headers: request.headers, body: Buffer.concat(chunks) })
      response.end()
    })
  })
  await new Promise(resolve => receiver.listen(0, '127.0.0.1', resolve))
})
after(async () => {
  receiver?.closeAllConnections()
  receiver?.close()
  await server?.stop()
})

test('a payment is delivered and verified', async () => {
  const url = `http://127.0.0.1:${receiver.address().port}/hook`
  const { secret } = await server.api('POST', '/v1/webhook_endpoints', { url, enabled_events: ['*'] })
  const checkout = await server.api('POST', '/v1/checkouts', { amount: '20.00', description: 'Ataya — “green”' })
  await server.api('POST', '/v1/pay/initialize', {
    client_secret: checkout.client_secret,
    payment_method: 'afrimoney',
    customer_phone: '+2207000000',
  })
  const mine = () => deliveries.filter(({ body }) => JSON.parse(body).object_id === checkout.id)
  await eventually(() => mine().length >= 2)
  assert.deepEqual(mine().map(({ body }) => JSON.parse(body).type), ['payment.succeeded', 'checkout.completed'])

  const webhook = new Webhook(secret)
  for (const { headers, body } of mine()) {
    assert.equal(webhook.verify(body.toString(), headers).object_id, checkout.id)
    const digest = createHmac('sha256', secret).update(body).digest('hex')
    assert.equal(headers['x-jokoor-signature'], `sha256=${digest}`)
    assert.throws(() => webhook.verify(body.toString().replace('20.00', '2.00'), headers))
  }
})
