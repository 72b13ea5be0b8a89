"""A mail server that keeps what it takes, and answers otherwise where a test says so."""

import email
import email.policy
import socket
import threading

from aiosmtpd.controller import Controller


class Mail:
    """One message as it arrived."""

    def __init__(self, envelope):
        self.sender = envelope.mail_from
        self.recipients = envelope.rcpt_tos
        self.bytes = envelope.original_content
        self.message = email.message_from_bytes(self.bytes, policy=email.policy.default)

    def __getitem__(self, header):
        return self.message[header]

    @property
    def text(self):
        return self.message.get_body(("plain",)).get_content()

    @property
    def html(self):
        return self.message.get_body(("html",)).get_content()

    @property
    def files(self):
        """The attached files by their names."""
        return {part.get_filename(): part.get_content() for part in self.message.iter_attachments()}


class MailServer:
    """Real SMTP on a port of its own, which it keeps while it is down."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.options = ("--smtp-url", f"smtp://127.0.0.1:{self.port}", "--mail-from", "Bills <bills@shop.example>")
        self.mails = []
        self.refused = set()
        # What is said to a message; None hangs up without a word.
        self.on_data = lambda mail: "250 taken"
        self.heard = threading.Event()
        self.controller = None

    def start(self):
        self.controller = Controller(self, hostname="127.0.0.1", port=self.port)
        self.controller.start()
        return self

    def stop(self):
        if self.controller:
            self.controller.stop()
            self.controller = None

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address in self.refused:
            return "550 5.1.1 no such user"
        envelope.rcpt_tos.append(address)
        return "250 fine"

    async def handle_DATA(self, server, session, envelope):
        mail = Mail(envelope)
        answer = self.on_data(mail)
        self.heard.set()
        if answer is None:
            server.transport.abort()
            return "421 nobody hears this"
        if answer.startswith("250"):
            self.mails.append(mail)
        return answer

    def to(self, address):
        """All that was taken for somebody."""
        return [mail for mail in list(self.mails) if mail.recipients == [address]]
