// The real binary on a fresh SQLite store, and the API calls that a merchant's server would make.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const BINARY = process.env.DALASI_BIN ?? fileURLToPath(new URL('../../target/debug/dalasi', import.meta.url))
const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('DALASI_')))

export async function startServer() {
  const folder = mkdtempSync(join(tmpdir(), 'dalasi-browser-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const data = join(folder, 'data')
  const made = spawnSync(BINARY, ['init', '--data-dir', data, '--organization', 'Kairaba Books', '--json'], {
    encoding: 'utf8',
    env: environment,
  })
  assert.equal(made.status, 0, made.stderr)
  const { keys } = JSON.parse(made.stdout)
  const serve = ['serve', '--listen', '127.0.0.1:0', '--data-dir', data, '--allow-loopback-webhooks', '--rate-limit', '0']
  const child = spawn(BINARY, serve, { stdio: ['ignore', 'pipe', 'pipe'], env: environment })
  process.on('exit', () => child.kill('SIGKILL'))
  let log = ''
  child.stderr.setEncoding('utf8').on('data', text => { log = (log + text).slice(-20_000) })
  const url = await new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', line => {
      const ready = /listening on (http:\S+)/.exec(line)
      if (ready) resolve(ready[1])
    })
    child.once('exit', code => reject(new Error(`the server ended with ${code}:\n${log}`)))
    setTimeout(() => reject(new Error(`the server said nothing for 30 s:\n${log}`)), 30_000).unref()
  })
  return {
    url,
    keys,
    /** A command of the operator's, beside the server; what it says in JSON. */
    run(...command) {
      const ran = spawnSync(BINARY, [...command, '--data-dir', data, '--json'], { encoding: 'utf8', env: environment })
      assert.equal(ran.status, 0, ran.stderr)
      return JSON.parse(ran.stdout)
    },
    api: (method, path, body) => call(url, keys.test.secret, method, path, body),
    async stop() {
      if (child.exitCode === null) {
        const ended = once(child, 'exit')
        child.kill('SIGTERM')
        await ended
      }
      const verified = spawnSync(BINARY, ['verify', '--data-dir', data], { encoding: 'utf8', env: environment })
      assert.equal(verified.status, 0, `dalasi verify:\n${verified.stdout}${verified.stderr}`)
    },
  }
}

async function call(url, key, method, path, body) {
  const response = await fetch(url + path, {
    method,
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  const answer = await response.json()
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${JSON.stringify(answer)}`)
  return answer.data
}

/** A merchant's shop on another origin: what it was asked for, in order. */
export async function startShop() {
  const visits = []
  const closed = new Set()
  let doors = 0
  const shop = createServer((request, response) => {
    if (request.url !== '/favicon.ico') visits.push(request.url)
    if (closed.has(new URL(request.url, 'http://shop').pathname)) {
      response.writeHead(204).end()
      return
    }
    response.setHeader('Content-Type', 'text/html; charset=utf-8')
    response.end('<!doctype html><html lang="en"><title>Shop</title><h1>Welcome back</h1>')
  })
  await new Promise(resolve => shop.listen(0, '127.0.0.1', resolve))
  return {
    visits,
    /** A path that sends a browser nowhere (204 leaves it on its page) until it is opened. */
    door() {
      const path = `/door/${doors++}`
      closed.add(path)
      return { path, open: () => closed.delete(path) }
    },
    url: `http://127.0.0.1:${shop.address().port}`,
    stop: () => new Promise(resolve => { shop.closeAllConnections(); shop.close(resolve) }),
  }
}

/** Asks again until the answer is true; that answer. */
export async function eventually(condition, seconds = 15) {
  const deadline = Date.now() + seconds * 1000
  for (;;) {
    const value = await condition()
    if (value) return value
    assert.ok(Date.now() < deadline, `not within ${seconds} s`)
    await new Promise(resolve => setTimeout(resolve, 100))
  }
}
