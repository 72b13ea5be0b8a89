"""Chromium, shown pages exactly as the server answered them: what it makes of each, with JavaScript on or off."""

import os
import shutil
from contextlib import contextmanager
from urllib.parse import urlsplit

from playwright.sync_api import Error, sync_playwright

# Where the merchant's own addresses lead: a browser may go there.
ALLOWED = {"shop.example"}
# What a stored answer no longer has when it is told again.
OF_THE_WIRE = {"content-length", "content-encoding", "transfer-encoding", "connection"}
STARTED_WITH = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip

# The document as the browser has it, in the shape of `outputs.tree`.
NODES = """
() => {
  const nodes = []
  const named = it => (it.namespaceURI === document.documentElement.namespaceURI ? '' : it.namespaceURI) + it.localName
  const walk = (inner, depth, name) => {
    let before = name
    inner.normalize()
    for (const it of inner.childNodes) {
      if (it.nodeType === Node.TEXT_NODE) nodes.push([depth, 'text', before, it.data])
      if (it.nodeType === Node.COMMENT_NODE) {
        nodes.push([depth, 'comment', '', it.data])
        before = 'after a comment'
      }
      if (it.nodeType === Node.ELEMENT_NODE) {
        const attributes = [...it.attributes].map(({ name, value }) => [name, value])
        nodes.push([depth, 'element', named(it), attributes])
        walk(it, depth + 1, named(it))
        if (it instanceof HTMLTemplateElement) walk(it.content, depth + 1, named(it))
        before = 'after ' + named(it)
      }
    }
  }
  walk(document, 0, 'document')
  return nodes
}
"""


def why_not():
    """Why there is no browser here; None where there is one."""
    return None if program() else "Chromium is not installed (Debian: chromium-headless-shell)"


def program():
    names = (os.environ.get("CHROMIUM"), "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if name and (path := shutil.which(name))), None)


class Seen:
    """`nodes`: (depth, kind, name, value) in the document's order. `faults`: what no page may do to a browser."""

    def __init__(self):
        self.nodes = []
        self.faults = []


class Window:
    def __init__(self, browser, scripts):
        self.context = browser.new_context(java_script_enabled=scripts, locale="en-GB")
        self.context.set_default_timeout(20_000)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self._heard(message.text))
        self.page.on("dialog", self._asked)
        self.page.on("pageerror", lambda error: self.seen.faults.append(f"a script fails: {error.message}"))
        self.page.on("request", lambda request: self._requested(request.url))
        self.page.route("**/*", self._answer)
        self.shown = None
        self.seen = Seen()

    def see(self, answer):
        """What becomes of an answer, once it and all that it asks for are there."""
        self.shown, self.seen = answer, Seen()
        for _ in range(3):
            self.seen.faults.clear()
            try:
                self.page.goto(answer.url, wait_until="load")
                self.seen.nodes = [
                    (depth, kind, name, dict(value) if kind == "element" else value)
                    for depth, kind, name, value in self.page.evaluate(NODES)
                ]
                return self.seen
            except Error as error:
                # A page that draws itself anew, or leads on, at the very moment.
                if not any(sign in error.message for sign in ("context was destroyed", "interrupted", "ERR_ABORTED")):
                    raise
        self.seen.faults.append("it never stands still")
        return self.seen

    def _answer(self, route):
        asked, shown = route.request.url, urlsplit(self.shown.url)
        parts = urlsplit(asked)
        if route.request.is_navigation_request() and parts.netloc == shown.netloc and parts.path == shown.path:
            headers = {name: value for name, value in self.shown.headers.items() if name.lower() not in OF_THE_WIRE}
            route.fulfill(status=self.shown.status_code, headers=headers, body=self.shown.content)
        elif parts.netloc == shown.netloc and parts.path.startswith("/assets/"):
            route.continue_()
        else:
            # Nothing else is needed to draw it; a browser that is told so stays where it is.
            route.fulfill(status=204)

    def _requested(self, url):
        parts = urlsplit(url)
        if parts.scheme.startswith("http") and parts.netloc not in {urlsplit(self.shown.url).netloc, *ALLOWED}:
            self.seen.faults.append(f"it asks {parts.netloc}")

    def _asked(self, dialog):
        self.seen.faults.append(f"it shows a dialog: {dialog.message!r}")
        dialog.dismiss()

    def _heard(self, text):
        if "Content Security Policy" in text or "Trusted" in text:
            self.seen.faults.append(f"its policy had to stop something: {text[:200]}")


@contextmanager
def windows():
    """One window with JavaScript, and one without."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=STARTED_WITH)
        try:
            yield {"with script": Window(browser, True), "without script": Window(browser, False)}
        finally:
            browser.close()
