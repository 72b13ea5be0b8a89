// Checks the statement behind the # of the page's address, here in the browser, and shows what it says only if one of the
// service's keys signed it. The layout is described in receipt_statement.rs; what isn't exactly that is invalid.
(() => {
const d = document
const by = id => d.getElementById(id)
const { keys, moment, first } = d.body.dataset
const lang = d.documentElement.lang
const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const PURPOSE = 'dalasi receipt statement v1\0'
const SECTIONS = 'answer intro checking valid invalid outdated unsupported'.split(' ').filter(by)
const encode = text => new TextEncoder().encode(text)
const title = d.title, untested = by('test').hidden, open = by('paste').open
let statement, run = 0

// Upper-case base32 without padding: bytes have one text.
const bytesOf = text => {
const bytes = []
let held = 0, bits = 0
for (const letter of text) {
const value = LETTERS.indexOf(letter)
if (value < 0) return
held = held << 5 | value
bits += 5
if (bits > 7) {
bits -= 8
bytes.push(held >> bits)
held &= (1 << bits) - 1
}
}
if (bits < 5 && !held) return Uint8Array.from(bytes)
}

const read = bytes => {
let at = 0
const fail = () => { throw new Error('malformed') }
const take = count => at + count > bytes.length ? fail() : bytes.subarray(at, at += count)
const number = () => {
for (let value = 0n, shift = 0n; ; shift += 7n) {
const [byte] = take(1)
value |= BigInt(byte & 127) << shift
if (byte < 128) return value
}
}
const text = bytes => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
const [, flags] = take(10)
const said = {
live: flags > 127,
digits: flags & 127,
currency: text(take(3)),
minor: String(number()),
seconds: Number(number()),
number: text(take(take(1)[0])),
merchant: text(take(take(1)[0])),
proof: take(16),
}
return at == bytes.length ? said : fail()
}

// What one of the keys signed; nothing where none did, null where none is the one it names; an error where the browser can't tell.
const verified = async text => {
const bytes = text.length < 331 && bytesOf(text)
// The sample is there to fail where a browser has no Ed25519, whatever the statement is.
const sample = keys.split(' ')[0].split('.')[1]
const imported = x => crypto.subtle.importKey('jwk', { kty: 'OKP', crv: 'Ed25519', x }, 'Ed25519', false, ['verify'])
await imported(sample)
if (!bytes || bytes[0] != 1 || bytes.length < 75) return
const body = bytes.subarray(0, -64), signature = bytes.subarray(-64)
const id = Array.from(body.subarray(2, 10), byte => byte.toString(16).padStart(2, '0')).join('')
const label = encode(PURPOSE), message = new Uint8Array(label.length + body.length)
message.set(label)
message.set(body, label.length)
const named = keys.split(' ').map(key => key.split('.')).filter(([name]) => name == id)
if (!named[0]) return null
for (const [, x] of named) {
if (await crypto.subtle.verify('Ed25519', await imported(x), signature, message)) try { return read(body) } catch { return }
}
}

const amount = ({ minor, digits }) => {
const [group, point] = lang == 'fr' ? ['\u202f', ','] : [',', '.']
const all = minor.padStart(digits + 1, '0'), end = all.length - digits
const whole = all.slice(0, end).replace(/\B(?=(\d{3})+$)/g, group)
return digits ? whole + point + all.slice(end) : whole
}
const when = seconds => {
const date = new Date(seconds * 1000)
const month = date.toLocaleDateString(lang, { month: 'long', timeZone: 'UTC' }), first = lang == 'fr' && date.getUTCDate() == 1 ? 'er' : ''
const two = value => String(value).padStart(2, '0')
return moment
.replace('@day', `${date.getUTCDate()}${first}\u00a0${month}\u00a0${date.getUTCFullYear()}`)
.replace('@time', `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`)
}
// Without what could disguise a name. What joins letters, or keeps them apart, is how some are written.
const plain = text => text.replace(/\s/g, ' ').replace(/(?!\u200c|\u200d)[\p{Cc}\p{Cf}\p{Co}]/gu, '')

const show = (name, said) => {
statement = said
const [digits, currency] = by('amount').children
digits.textContent = said ? amount(said) : ''
currency.textContent = said ? said.currency : ''
by('amount').className = digits.textContent.length > 12 ? 'amount longer' : digits.textContent.length > 8 ? 'amount long' : 'amount'
by('merchant').textContent = said ? plain(said.merchant) : ''
by('number').textContent = said ? said.number : ''
by('paid-at').textContent = said ? when(said.seconds) : ''
by('test').hidden = said ? said.live : name !== first || untested
tell()
for (const id of SECTIONS) by(id).hidden = id !== name
by('paste').hidden = name === 'checking'
by('paste').open = name === first ? open : name === 'unsupported'
const heading = by(name).querySelector('h1')
d.title = name === first ? title : heading.textContent
// What was wrong with a code says nothing of a statement.
if (name !== first && by('errors')) by('errors').remove()
// The first page is read from its top in any case.
if (run > 1) heading.focus()
}

const withCode = code => {
const there = new URL(location)
there.hash = ''
there.searchParams.set('code', code)
return there
}
const check = async () => {
const mine = ++run
const text = location.hash.slice(1)
// A validation code says nothing by itself: the server is asked.
if (/^[\da-f]{32}$/i.test(text)) return location.replace(withCode(text))
// The other language checks the same.
for (const link of d.querySelectorAll('.lang a')) link.hash = text
if (!text) return show(first)
show('checking')
let said, can = true
try { said = await verified(text) } catch { can = false }
// Another one may have come meanwhile.
if (mine != run) return
// A key that came after this page is known to a new one.
const old = said === null && performance.now() > 6e4
if (old && (await fetch('').catch(() => 0)).ok) return location.reload()
show(old ? 'outdated' : can ? said ? 'valid' : 'invalid' : 'unsupported', said)
}

const tell = said => {
for (const words of by('payer-said').children) words.hidden = words.dataset.said !== said
}
by('payer-form').onsubmit = async e => {
e.preventDefault()
const asked = statement
// As receipt_statement.rs folds it.
const payer = by('payer').value.replace(/[\p{DI}\p{Co}]/gu, '').normalize().replace(/[\p{White_Space}\p{Cc}]+/gu, ' ').trim().toLowerCase()
const code = by('code').value.replace(/[\s-]/g, '').toLowerCase()
tell()
if (!code) return tell('no')
const key = await crypto.subtle.importKey('raw', encode(code), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign'])
const tag = new Uint8Array(await crypto.subtle.sign('HMAC', key, encode(payer)))
if (asked === statement) tell(asked.proof.every((byte, at) => byte === tag[at]) ? 'yes' : 'no')
}
by('paste-form').onsubmit = e => {
e.preventDefault()
const typed = by('statement').value.trim().replace(/#$/, '').split(/#|[?&]code=/).pop().split('&')[0].replace(/\+|%20/g, ' ').trim()
const text = typed.replace(/[\s-]/g, '')
if (!text) return by('statement').focus()
// No statement is as short: the server tells what is wrong with a code.
if (text.length < 65) return location.assign(withCode(typed))
by('statement').value = ''
if (location.hash === '#' + text) check()
else location.hash = text
}
addEventListener('hashchange', check)
check()
})()
