"""URLs that lead inside, in every spelling that somebody came up with; and a name server that changes its mind."""

import ipaddress
import socket
import struct
import threading
from urllib.parse import quote

V4 = [
    "127.0.0.1", "127.1.2.3", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.254", "172.16.0.1",
    "172.31.255.254",
    "192.168.0.1", "192.168.255.254", "100.64.0.1", "100.100.100.200", "100.127.255.254", "169.254.169.254",
    "169.254.0.1",
    "192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1",
    "255.255.255.255", "168.63.129.16",
]  # fmt: skip
V6 = [
    "::", "::1", "fe80::1", "fe80::1%25lo", "fec0::1", "fc00::1", "fd00:ec2::254", "fdff::1", "ff02::1", "2001:db8::1",
    "100::1",
    "2001::1", "0:0:0:0:0:0:0:1", "::0.0.0.1", "[::1", "3fff::1", "5f00::1",
]  # fmt: skip
NAMES = [
    "localhost", "LOCALHOST", "localhost.", "localhost..", "a.localhost", "localhost.localdomain", "ip6-localhost",
    "metadata",
    "metadata.google.internal", "instance-data", "printer.local", "router.home.arpa", "1.0.0.127.in-addr.arpa", "db",
    "kubernetes.default.svc", "127.0.0.1.nip.io", "localtest.me", "inside.attacker.example", "x.onion",
    "loc\u00adalhost", "ｌocalhost",
    "localhost\u3002", "ⓛocalhost", "xn--localhost-", "inside.attacker.example.", "LOCALHOST%2e", "%6cocalhost",
    "inside。attacker。example",
]  # fmt: skip
PORTS = ["", ":443", ":8443", ":22", ":25", ":80", ":5432", ":6379", ":9000", ":0", ":65535"]
PUBLIC = "shop.example"
PUBLIC_V4, PUBLIC_V6 = "93.184.216.34", "2606:2800:220:1::1"


def spellings(address):
    """One address as a host, in all its ways."""
    octets = [int(part) for part in address.split(".")]
    number = int(ipaddress.IPv4Address(address))
    a, b, c, d = octets
    high, low = number >> 16, number & 0xFFFF
    full = address.translate({ord(str(digit)): 0xFF10 + digit for digit in range(10)})
    hosts = [
        address, str(number), hex(number), f"0{number:o}", f"0X{number:08X}", f"{a}.{b}.{c << 8 | d}",
        f"{a}.{number & 0xFFFFFF}",
        ".".join(map(hex, octets)), ".".join(f"0{octet:o}" for octet in octets),
        ".".join(f"{octet:03}" for octet in octets),
        f"{hex(a)}.{b}.0{c:o}.{d}", address + ".", address + "..", full, address.replace(".", "。"),
        address.replace(".", "．"),
        address.replace(".", "｡"), address.replace(".", "%2e"), quote(address).replace("1", "%31"),
        f"{number + (1 << 32)}",
        ".".join(str(octet + 256) for octet in octets), f"[::ffff:{address}]", f"[::ffff:{high:x}:{low:x}]",
        f"[::{address}]",
        f"[0:0:0:0:0:ffff:{high:x}:{low:x}]", f"[64:ff9b::{address}]", f"[64:ff9b::{high:x}:{low:x}]",
        f"[64:ff9b:1::{high:x}:{low:x}]",
        f"[2002:{high:x}:{low:x}::1]", f"[2001:0:{high:x}:{low:x}::{high ^ 0xFFFF:x}:{low ^ 0xFFFF:x}]",
        f"[fe80::5efe:{high:x}:{low:x}]",
        f"{address}.nip.io", f"a.{address}",
    ]  # fmt: skip
    return hosts


def hosts():
    found = [host for address in V4 for host in spellings(address)]
    return found + [f"[{address}]" for address in V6] + NAMES


def wrapped(host, port):
    """The ways to hide a host in a URL; the first two are plain."""
    return [
        f"https://{host}{port}/", f"http://{host}{port}/hook", f"HTTPS://{host}{port}", f"https:{host}{port}/",
        f"https:/{host}{port}/",
        f"https:///{host}{port}/", f"//{host}{port}/", f"https://{PUBLIC}@{host}{port}/",
        f"https://user:word@{host}{port}/",
        f"https://@{host}{port}/", f"https://{PUBLIC}%40{host}{port}/", f"https://{host}{port}\\@{PUBLIC}/",
        f"https:\\\\{host}{port}\\",
        f"https://{PUBLIC}\\@{host}{port}/", f"https://{PUBLIC}#@{host}{port}/", f"https://{PUBLIC}?@{host}{port}/",
        f"https://{host}{port}\r\nHost: {PUBLIC}\r\n\r\n", f"https://{host}{port}/%0d%0aX: y", f"https://{host}{port}\t/",
        f" https://{host}{port}/", f"https://{host}{port}/ ", f"https://{host}\u0000{port}/",
        f"file://{host}/etc/passwd", "file:///etc/passwd",
        f"ftp://{host}{port}/", f"gopher://{host}{port}/_x", f"dict://{host}{port}/", f"ldap://{host}{port}/",
        f"ws://{host}{port}/",
        f"jar:https://{host}{port}!/", f"view-source:http://{host}{port}/", f"unix://{host}/run/x.sock",
        f"javascript://{host}/%0aalert(1)",
        f"https://{host}{port}{port}/", f"https://[{host}]{port}/", f"https://{PUBLIC}.{host}{port}/",
        f"https://{host}.{PUBLIC}:22/",
    ]  # fmt: skip


def urls(random, count):
    """Every host plainly, then as many others as are asked for."""
    plain = [wrapped(host, random.choice(PORTS))[random.randrange(2)] for host in hosts()]
    random.shuffle(plain)
    yield from plain[:count]
    for _ in range(count - len(plain)):
        yield random.choice(wrapped(random.choice(hosts()), random.choice(PORTS)))


class Names:
    """A name server for everything: `shop.example` is public, `flip3-….example` is so three times, all else leads inside."""

    def __init__(self, place=("127.0.0.1", 53)):
        self.asked = {}
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(place)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            question, asker = self.socket.recvfrom(4096)
            self.socket.sendto(self.answer(question), asker)

    def addresses(self, name, is_six):
        """The alias, if there is one, and the addresses."""
        kind, _, rest = name.split(".")[0].partition("-")
        times = self.asked[name, is_six] = self.asked.get((name, is_six), 0) + 1
        inner = V4[int(rest) % len(V4)] if rest.isdigit() else "127.0.0.1"
        bits = int(ipaddress.IPv4Address(inner))
        high, low = bits >> 16, bits & 0xFFFF
        sixes = [
            "::1",
            "fd00:ec2::254",
            "fe80::1",
            f"::ffff:{inner}",
            f"64:ff9b::{high:x}:{low:x}",
            f"2002:{high:x}:{low:x}::1",
            "::",
        ]
        if name == PUBLIC:
            return None, [] if is_six else [PUBLIC_V4]
        if kind.startswith("flip"):
            if is_six:
                return None, []
            return None, [PUBLIC_V4 if times <= int(kind[4:]) else inner]
        if kind == "mixed":
            return None, [PUBLIC_V6] if is_six else [PUBLIC_V4, inner]
        if kind == "six":
            return None, [sixes[int(rest) % len(sixes)]] if is_six else [PUBLIC_V4]
        if kind == "alias":
            return "localhost", [] if is_six else [inner]
        return None, ["::1"] if is_six else [inner]

    def answer(self, question):
        labels, at = [], 12
        while question[at]:
            labels.append(question[at + 1 : at + 1 + question[at]].decode("ascii", "replace").lower())
            at += question[at] + 1
        kind = struct.unpack(">H", question[at + 1 : at + 3])[0]
        records = []
        if kind in (1, 28):
            alias, addresses = self.addresses(".".join(labels), kind == 28)
            owner = b"\xc0\x0c"
            if alias:
                name = b"".join(bytes([len(label)]) + label.encode() for label in alias.split(".")) + b"\0"
                records.append(owner + struct.pack(">HHIH", 5, 1, 0, len(name)) + name)
                owner = name
            for address in addresses:
                data = ipaddress.ip_address(address).packed
                records.append(owner + struct.pack(">HHIH", kind, 1, 0, len(data)) + data)
        head = question[:2] + struct.pack(">HHHHH", 0x8580, 1, len(records), 0, 0)
        return head + question[12 : at + 5] + b"".join(records)
