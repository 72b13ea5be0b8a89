"""Shops that keep a server busy, each on a connection of its own, until they are told to stop or the server is gone."""

import threading
import time
from contextlib import nullcontext
from random import Random

from books import reconcile
from scenario import Client, Shop


# A client of ours gives up before.
LONGEST_ANSWER_S = 40


class Load:
    """`stock`: what was there before (`stocked`). `mailbox`: where one of the shops is told of everything that happens."""

    def __init__(self, server, random, shops=4, pause=0.0, asks_again=False, stock=None, mailbox=None):
        self.server = server
        self.mailbox = mailbox
        self.known = stock.known if stock else frozenset()
        self.pause = pause  # after each answer
        self.asks_again = asks_again  # with the same key, when no answer came
        self.silent = []  # keys whose connection was not even closed in time
        paid = stock.paid if stock else ()
        self.shops = [Shop(Random(random.getrandbits(64)), paid, mailbox if n == 0 else None) for n in range(shops)]
        self.unanswered = []  # keys whose answer did not come
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(shop,)) for shop in self.shops]

    def _run(self, shop):
        client = Client(self.server, timeout=LONGEST_ANSWER_S)
        while not self._stop.is_set():
            sent = time.monotonic()
            if not shop.step(client):
                key = list(shop.asked)[-1]
                if time.monotonic() - sent >= LONGEST_ANSWER_S:
                    self.silent.append(key)
                if not self.asks_again or shop.ask(client, key, *shop.asked[key]) is None:
                    self.unanswered.append(key)
                    return
            if self.pause:
                self._stop.wait(self.pause)

    def start(self):
        if self.mailbox:
            assert self.shops[0].step(Client(self.server)), "nobody could be told of what happens"
        for thread in self._threads:
            thread.start()
        return self

    def until(self, answers, timeout=60):
        """Waits until so many answers came."""
        end = time.monotonic() + timeout
        while self.answers() < answers and time.monotonic() < end:
            time.sleep(0.01)
        assert self.answers() >= answers, f"only {self.answers()} answers in {timeout} s"

    def answers(self):
        return sum(len(shop.answered) for shop in self.shops)

    def stop(self):
        self._stop.set()
        self.join()

    def join(self):
        for thread in self._threads:
            thread.join(timeout=60)

    def reconcile(self, server, waiting=nullcontext):
        return reconcile(self.shops, server, waiting, self.known)
