// What a payer does, step by step, in the words of the pages.

import { button, goTo, heading, link, reach } from './browser.mjs'

export const MERCHANT = 'Kairaba Books'
/** Waits for a click on the simulator's page. */
export const QUIET_PHONE = '+220 765 4321'
export const SILENT_PHONE = '+2207000003'
/** The button that names the amount; "Pay another way" is another one. */
const PAY_NOW = /^Pay [\d.,]+/

/** Whatever has an address to be paid at. */
export async function open(page, { payment_url }) {
  await goTo(page, payment_url)
  await reach(page, /How do you want to pay|Check and pay|Fill this in/)
}

/** Presses this very element, wherever its page may be going; one that is gone by then is not pressed. */
export const press = element => element.dispatchEvent('click', {}, { timeout: 3000 }).catch(() => {})

/** From the choice of methods to the simulator's page; the pages between go on by themselves or by a link. */
export async function toSimulator(page, method, choose = element => element.click()) {
  const [choice, opens, far] = {
    wave: [/^Pay with Wave/, 'Open Wave', 'Wave, simulated'],
    card: [/^Pay by card/, 'Open the card page', 'Card page, simulated'],
  }[method]
  await choose(button(page, choice))
  await heading(page, far).or(link(page, opens)).first().waitFor()
  // It may be gone before we click: then we are where it leads to, and a click by place would press what stands there.
  if (!(await heading(page, far).isVisible())) await press(link(page, opens))
  await reach(page, far)
}

/** Chooses a wallet and gives its phone. */
export async function withPhone(page, method, phone) {
  const [choice, title] = {
    afrimoney: [/^Pay with Afrimoney/, 'Your Afrimoney number'],
    qmoney: [/^Pay with QMoney/, 'Your QMoney number'],
  }[method]
  await button(page, choice).click()
  await reach(page, title)
  await givePhone(page, phone)
}

export async function givePhone(page, phone) {
  await page.getByLabel('Phone number').fill(phone)
  await button(page, 'Continue').click()
}

export async function giveCode(page, code) {
  await page.getByLabel('Code from the SMS').fill(code)
  await button(page, PAY_NOW).click()
}

/** Plays the payer on the simulator's page of a wallet, and returns to the payment. */
export async function decide(page, outcome) {
  const rare = page.getByText('Rarer outcomes')
  if (!(await button(page, outcome).isVisible())) await rare.click()
  await button(page, outcome).click()
  await backToPayment(page)
}

/** Pays on the simulated card page. */
export async function useCard(page, number) {
  await page.locator(`input[name=number][value="${number}"]`).check()
  await button(page, PAY_NOW).click()
}

/** The simulator sends the payer back, or shows the way. */
export async function backToPayment(page) {
  const way = link(page, 'Back to the payment')
  await way.or(page.locator('body[data-revision]')).first().waitFor()
  if (await way.isVisible()) await way.click()
}

export const paid = (page, seconds) => reach(page, 'Paid', seconds)

/** What the page asks for, as it is written there. */
export const amount = page => page.locator('.amount').innerText()

/** From the choice of methods to the outcome, by a payer who pays. */
export async function payWith(page, way) {
  if (way === 'wave') {
    await toSimulator(page, 'wave')
    await decide(page, 'Approve')
  } else if (way === 'card') {
    await toSimulator(page, 'card')
    await useCard(page, '4242424242424242')
    await backToPayment(page)
  } else {
    await withPhone(page, way, '+2207000000')
    if (way === 'qmoney') {
      await reach(page, 'Enter the code')
      await giveCode(page, '123456')
    }
  }
}
