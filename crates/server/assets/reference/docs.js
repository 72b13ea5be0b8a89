// The reference: hands the document to the tool with this server's address in it. The quick start: copies, fills in a key.
'use strict'

const SHOWN = 'http://127.0.0.1:8080'
const tool = document.querySelector('rapi-doc')

if (tool) {
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const paint = () => {
    const colours = dark.matches
      ? { theme: 'dark', 'bg-color': '#101211', 'text-color': '#eff1ee', 'nav-bg-color': '#191c1a', 'nav-text-color': '#c9cfca', 'primary-color': '#4cc2a4', 'nav-accent-color': '#4cc2a4', 'nav-hover-bg-color': '#2a2d2b', 'nav-hover-text-color': '#eff1ee' }
      : { theme: 'light', 'bg-color': '#ffffff', 'text-color': '#171a18', 'nav-bg-color': '#f1f0ec', 'nav-text-color': '#3d423f', 'primary-color': '#0b5d50', 'nav-accent-color': '#0b5d50', 'nav-hover-bg-color': '#e4e2db', 'nav-hover-text-color': '#171a18' }
    for (const [name, value] of Object.entries(colours)) tool.setAttribute(name, value)
  }
  paint()
  dark.addEventListener('change', paint)

  const trouble = document.querySelector('#trouble')
  const say = text => { trouble.textContent = text; trouble.hidden = false }
  // An access token says its mode in its claims.
  const modeOf = token => {
    try {
      return JSON.parse(atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/'))).mode
    } catch {
      return undefined
    }
  }
  const isLive = credential => /\b[ps]k_live_/.test(credential) || credential.split(/\s+/).some(word => modeOf(word) === 'live')
  // Trying things out is for test keys: real money should not hang on a stray click.
  tool.addEventListener('before-try', event => {
    const { request, controller } = event.detail
    if (isLive(request.headers.get('Authorization') ?? '')) {
      controller.abort()
      say('That is a key or a token of live mode. Use a test key to try things out.')
    } else {
      trouble.hidden = true
    }
  })

  const load = async () => {
    const response = await fetch('/openapi.json')
    if (!response.ok) throw new Error(`openapi.json: ${response.status}`)
    const specification = JSON.parse((await response.text()).replaceAll(SHOWN, location.origin))
    // The page's own head says both.
    delete specification.info.license
    specification.info.title = 'API reference'
    specification.servers = [{ url: location.origin, description: 'This server' }]
    await customElements.whenDefined('rapi-doc')
    tool.loadSpec(specification)
  }
  load().catch(error => say(`The reference can't be shown: ${error.message}`))
}

for (const figure of document.querySelectorAll('figure')) {
  const code = figure.querySelector('code')
  const button = document.createElement('button')
  button.type = 'button'
  button.textContent = 'Copy'
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(code.textContent)
      button.textContent = 'Copied'
    } catch {
      getSelection().selectAllChildren(code)
      button.textContent = 'Selected'
    }
    setTimeout(() => { button.textContent = 'Copy' }, 1500)
  })
  figure.querySelector('figcaption').append(button)
}

const key = document.querySelector('#key')
if (key) {
  const samples = [...document.querySelectorAll('figure code')].map(code => [code, code.textContent])
  key.closest('.fill').hidden = false
  key.addEventListener('input', () => {
    const value = /^sk_test_[0-9a-z]+$/.test(key.value.trim()) ? key.value.trim() : 'sk_test_YOUR_KEY'
    for (const [code, text] of samples) code.textContent = text.replaceAll('sk_test_YOUR_KEY', value)
  })
}
