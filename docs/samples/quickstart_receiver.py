from http.server import BaseHTTPRequestHandler, HTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

webhook = Webhook("{{webhook_secret}}")


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        # The signature covers the bytes as they came: verify before you parse.
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            event = webhook.verify(body, headers)
        except WebhookVerificationError:
            self.send_response(400)
            self.end_headers()
            return
        # The same event may come twice: remember event["id"], and fulfil the order once.
        print(event["type"], event["data"]["id"], event["data"]["status"], flush=True)
        self.send_response(204)
        self.end_headers()


HTTPServer(("127.0.0.1", {{webhook_port}}), Receiver).serve_forever()
