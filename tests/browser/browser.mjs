// Debian's Chromium, driven as a payer would use it: by what the page says, with JavaScript on or off.
//
// Every page opened here fails its test when it asks another host for anything, reports an error, or breaks its own
// content security policy.

import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const SCREENSHOTS = process.env.SCREENSHOTS ?? fileURLToPath(new URL('../../target/screenshots', import.meta.url))
const VIEWPORTS = { phone: { width: 320, height: 568 }, desktop: { width: 1280, height: 800 } }

export const SCRIPTS = [true, false]
export const withScripts = on => (on ? 'with JavaScript' : 'without JavaScript')

mkdirSync(SCREENSHOTS, { recursive: true })

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
}

/** Runs `visit` with a fresh page; what the page did wrong on the way fails the test. */
export async function payer(browser, options, visit) {
  try {
    await visited(browser, options, visit)
  } catch (error) {
    // A browser that crashes has not judged the page; once is its own affair.
    if (!/(Page|Target) crashed/.test(error.message)) throw error
    console.error(`the browser crashed, and the visit is made again: ${error.message}`)
    await visited(browser, options, visit)
  }
}

async function visited(browser, { scripts = true, locale = 'en-GB', allowed = [], expected }, visit) {
  const context = await browser.newContext({ javaScriptEnabled: scripts, viewport: VIEWPORTS.phone, locale })
  context.setDefaultTimeout(30_000)
  const page = await context.newPage()
  const faults = []
  const hosts = new Set()
  page.on('request', request => {
    const { origin, protocol } = new URL(request.url())
    if (protocol.startsWith('http')) hosts.add(origin)
  })
  page.on('pageerror', error => faults.push(`script error: ${error.message}`))
  page.on('console', message => {
    if (message.type() === 'error' && !expected?.test(message.text())) faults.push(`console: ${message.text()}`)
  })
  page.on('response', response => {
    if (response.status() >= 500) faults.push(`${response.status()} ${response.url()}`)
  })
  page.scripts = scripts
  try {
    await visit(page)
    assert.deepEqual(faults, [])
    const own = [...hosts].filter(host => !allowed.includes(host))
    assert.ok(own.length <= 1, `requests went to ${own.join(' and ')}`)
  } catch (error) {
    const name = `failed-${Date.now()}`
    await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true }).catch(() => {})
    const said = await page.locator('body').innerText({ timeout: 1000 }).catch(() => '')
    error.message += `\nat ${page.url()} (${withScripts(scripts)}, ${name}.png)\nthe page said:\n${said}`
    if (faults.length) error.message += `\nfaults: ${faults.join('; ')}`
    throw error
  } finally {
    await context.close()
  }
}

// A name given as text is the whole name: "Paid" is not "We are asking Wave whether you paid".
export const heading = (page, text) => page.getByRole('heading', { level: 1, name: text, exact: true })
export const button = (page, text) => page.getByRole('button', { name: text, exact: true })
export const link = (page, text) => page.getByRole('link', { name: text, exact: true })

/** Until the page's title heading says this. */
export const reach = (page, text, seconds = 30) => heading(page, text).waitFor({ timeout: seconds * 1000 })

/** Looks at the present state at both widths: nothing sticks out, axe finds nothing, a screenshot is kept. */
export async function look(page, name) {
  const file = `${name}${page.scripts ? '' : '-noscript'}`
  await steadily(page, () => page.evaluate(() => scrollTo(0, 0)))
  for (const [width, viewport] of Object.entries(VIEWPORTS)) {
    await page.setViewportSize(viewport)
    const [inner, outer] = await steadily(page, () =>
      page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]),
    )
    assert.ok(inner <= outer, `${name}: ${inner} px of content at ${outer} px`)
    for (const colorScheme of ['light', 'dark']) {
      // Halfway to dark nobody could read anything. Without motion no change of colours begins, and the screenshot
      // ends one that is under way.
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      const path = join(SCREENSHOTS, `${file}-${width}-${colorScheme}.png`)
      await steadily(page, () => page.screenshot({ path, fullPage: true, animations: 'disabled', timeout: 10_000 }))
      assert.deepEqual(await steadily(page, () => violations(page)), [], `${name}, ${width}, ${colorScheme}`)
    }
    await page.emulateMedia({ colorScheme: 'light', reducedMotion: null })
  }
  await page.setViewportSize(VIEWPORTS.phone)
}

/**
 * A page is drawn anew when its state changes, and without scripts now and then; a look that falls on that moment is taken
 * again. Chromium may also never give the picture of a page that was left while it was taken.
 */
async function steadily(page, take, tries = 3) {
  try {
    return await take()
  } catch (error) {
    if (tries === 1 || !/context was destroyed|navigat|screenshot: Timeout/i.test(error.message)) throw error
    await page.waitForLoadState()
    return steadily(page, take, tries - 1)
  }
}

/** What axe-core has against the page by WCAG 2.2 AA and its best practices. It needs scripts to run. */
async function violations(page) {
  if (!page.scripts) return []
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(AXE)
  return page.evaluate(async () => {
    // It was drawn anew in between, as a page does whose state changed.
    if (!window.axe) throw new Error('the page navigated before axe looked at it')
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
    const result = await window.axe.run(document, { runOnly: { type: 'tag', values: tags } })
    return result.violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(node => node.html).join(' ')}`)
  })
}

/** Leaves for an address, or loads the page again. */
export const goTo = (page, address) => travel(() => (address ? page.goto(address) : page.reload()))
export const goBack = page => travel(() => page.goBack())
export const goForward = page => travel(() => page.goForward())

/** A page that draws itself anew at the same moment may abort the navigation; once that is over, it is asked for again. */
async function travel(go, tries = 3) {
  try {
    return await go()
  } catch (error) {
    const isAborted = /ERR_ABORTED|interrupted by another navigation|Not attached to an active page/.test(error.message)
    if (tries === 1 || !isAborted) throw error
    await new Promise(resolve => setTimeout(resolve, 300))
    return travel(go, tries - 1)
  }
}
