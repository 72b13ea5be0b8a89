// Makes the page quicker; it is complete without. It listens for a change, asks when the phone wakes up and now and then,
// since phones cut the line of a page in the background. A change draws the page anew.
(() => {
const d = document, { self, revision, events, status, go, back, busy, offline } = d.body.dataset
const by = id => d.getElementById(id)
const say = text => by('live').textContent = text
let sent, gone, pause = 4e3, timer, out

// Not while a form or another page is on its way: that would cut it off. A link may lead to an app and leave the page here.
const anew = () => sent || gone || location.replace(self)
const going = () => gone = setTimeout(() => gone = 0, 5e3)
addEventListener('click', e => e.target.closest('a') && going())
const look = ({ revision: now, time_left: left }) => {
if (now && now != revision) anew()
if (left) by('left').textContent = left
}

// One tap, one request. After a while the form may go again, since its token pays once in any case.
addEventListener('submit', e => {
if (sent) return e.preventDefault()
sent = 1
const b = e.submitter
b && b.classList.add('busy')
say(busy)
setTimeout(() => { sent = 0; say(''); b && b.classList.remove('busy') }, 2e4)
})
// Who comes back by the back button stays. A page that leads nowhere is drawn anew.
const stay = () => { clearTimeout(out); by('auto').hidden = 1 }
addEventListener('pageshow', e => { if (e.persisted) { sent = gone = 0; back ? stay() : anew() } })

const ask = async () => {
clearTimeout(timer)
try {
const got = await fetch(status, { cache: 'no-store' })
if (got.ok) look(await got.json())
} catch {}
timer = setTimeout(ask, pause = Math.min(pause * 1.4, 3e4))
}
if (status) {
if (window.EventSource) new EventSource(events).onmessage = e => { try { look(JSON.parse(e.data)) } catch {} }
d.addEventListener('visibilitychange', () => { if (!d.hidden) { pause = 4e3; ask() } })
addEventListener('online', () => { say(''); ask() })
addEventListener('offline', () => say(offline))
timer = setTimeout(ask, pause)
}

d.querySelectorAll('[data-wait]').forEach(b => {
b.disabled = 1
setTimeout(() => b.disabled = 0, b.dataset.wait * 1e3)
})

// Outward at once, but who comes back by the back button stays. An app may take it and leave the page here, which goes on looking.
const [visit] = performance.getEntriesByType('navigation')
const first = !visit || visit.type == 'navigate'
if (go && first) {
history.replaceState(0, '', self)
going()
setTimeout(() => location.assign(go), 600)
}
if (back && first) {
out = setTimeout(() => location.assign(back), 8e3)
by('auto').hidden = 0
by('stay').onclick = stay
}
const paper = by('print')
if (paper) { paper.hidden = 0; paper.onclick = () => print() }
})()
