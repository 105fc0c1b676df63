"""Writes rules of the table ``nat``, as iptables-restore reads them, into the kernel's nftables.

``python mesh_redirect.py < rules`` acts on the network that it runs in; it stands in for the program ``iptables``,
which Istio's CNI plugin calls on a node. It knows the words of Istio's own rules, and fails at any other.
"""

import socket
import struct
import sys
from collections.abc import Iterator, Sequence
from ipaddress import ip_network
from typing import Final

_NETLINK_NETFILTER, _NFTABLES, _IPV4 = 12, 10, 2
_BATCH_BEGIN, _BATCH_END, _ERROR = 0x10, 0x11, 2
_NEW_TABLE, _NEW_CHAIN, _NEW_RULE = 0, 3, 6
_REQUEST, _ACK, _CREATE, _APPEND = 0x1, 0x4, 0x400, 0x800
_TABLE: Final = b"istio\0"
_BASE_CHAINS: Final = {"PREROUTING": 0, "OUTPUT": 3}
_BEFORE_ROUTING: Final = -100
_VERDICT, _REGISTER = 0, 1
_JUMP, _RETURN = -3, -5
_META: Final = {"-i": 6, "-o": 7, "--uid-owner": 10, "--gid-owner": 11}
_L4_PROTOCOL: Final = 16
_PROTOCOLS: Final = {"tcp": 6, "udp": 17}
_NETWORK_HEADER, _TRANSPORT_HEADER = 1, 2
_ADDRESSES: Final = {"-s": 12, "-d": 16}
_NAME_BYTES: Final = 16


def attribute(kind: int, *parts: bytes, nested: bool = False) -> bytes:
    """One netlink attribute, padded."""
    body = b"".join(parts)
    head = struct.pack("=HH", len(body) + 4, kind | (0x8000 if nested else 0))
    return head + body + bytes(-len(body) % 4)


def big(number: int) -> bytes:
    return struct.pack(">i", number)


def expression(name: str, *attributes: bytes) -> bytes:
    data = attribute(2, *attributes, nested=True)
    return attribute(1, attribute(1, name.encode() + b"\0"), data, nested=True)


def meta(key: int) -> bytes:
    return expression("meta", attribute(2, big(key)), attribute(1, big(_REGISTER)))


def payload(base: int, offset: int, length: int) -> bytes:
    numbers = enumerate((_REGISTER, base, offset, length), 1)
    return expression("payload", *(attribute(kind, big(number)) for kind, number in numbers))


def equals(value: bytes, *, inverted: bool) -> bytes:
    data = attribute(3, attribute(1, value), nested=True)
    return expression("cmp", attribute(1, big(_REGISTER)), attribute(2, big(int(inverted))), data)


def masked(mask: bytes) -> bytes:
    registers = [attribute(kind, big(number)) for kind, number in ((1, _REGISTER), (2, _REGISTER), (3, len(mask)))]
    values = [attribute(kind, attribute(1, value), nested=True) for kind, value in ((4, mask), (5, bytes(len(mask))))]
    return expression("bitwise", *registers, *values)


def verdict(code: int, chain: str = "") -> bytes:
    told = attribute(1, big(code)) + (attribute(2, chain.encode() + b"\0") if chain else b"")
    data = attribute(2, attribute(2, told, nested=True), nested=True)
    return expression("immediate", attribute(1, big(_VERDICT)), data)


def redirect(port: int) -> bytes:
    value = attribute(2, attribute(1, struct.pack(">H", port)), nested=True)
    load = expression("immediate", attribute(1, big(_REGISTER)), value)
    return load + expression("redir", attribute(1, big(_REGISTER)))


def matched(option: str, value: str, *, inverted: bool) -> bytes:
    """Expressions for one condition of a rule."""
    if option == "-p":
        return meta(_L4_PROTOCOL) + equals(bytes([_PROTOCOLS[value]]), inverted=inverted)
    if option in {"-i", "-o"}:
        return meta(_META[option]) + equals(value.encode().ljust(_NAME_BYTES, b"\0"), inverted=inverted)
    if option in {"--uid-owner", "--gid-owner"}:
        return meta(_META[option]) + equals(struct.pack("=I", int(value)), inverted=inverted)
    if option == "--dport":
        return payload(_TRANSPORT_HEADER, 2, 2) + equals(struct.pack(">H", int(value)), inverted=inverted)
    if option in _ADDRESSES:
        network = ip_network(value)
        address = payload(_NETWORK_HEADER, _ADDRESSES[option], 4) + masked(network.netmask.packed)
        return address + equals(network.network_address.packed, inverted=inverted)
    raise ValueError(f"unknown condition {option} {value}")


def rule(words: Sequence[str]) -> tuple[str, bytes]:
    """The chain of ``-A CHAIN …`` and its expressions."""
    _, chain, *rest = words
    found, target, port, inverted = b"", "", 0, False
    rest = list(rest)
    while rest:
        option = rest.pop(0)
        if option == "!":
            inverted = True
            continue
        value = rest.pop(0)
        if option == "-j":
            target = value
        elif option == "--to-ports":
            port = int(value)
        elif option != "-m":
            found += matched(option, value, inverted=inverted)
        inverted = False
    if target == "REDIRECT":
        return chain, found + redirect(port)
    return chain, found + (verdict(_RETURN) if target == "RETURN" else verdict(_JUMP, target))


def message(kind: int, sequence: int, flags: int, body: bytes, *, resource: int = 0, family: int = _IPV4) -> bytes:
    body = struct.pack(">BBH", family, 0, resource) + body
    return struct.pack("=IHHII", len(body) + 16, kind, flags, sequence, 0) + body


def messages(text: str) -> Iterator[tuple[int, int, bytes]]:
    """Kind, flags and body of what makes the table, its chains and its rules."""
    lines = [line.split() for line in text.splitlines()]
    rules = [rule(words) for words in lines if words[:1] == ["-A"]]
    own = [words[1] for words in lines if words[:1] == ["-N"]]
    yield _NEW_TABLE, _CREATE, attribute(1, _TABLE)
    for name, hook in _BASE_CHAINS.items():
        place = attribute(4, attribute(1, big(hook)), attribute(2, big(_BEFORE_ROUTING)), nested=True)
        named = attribute(3, name.encode() + b"\0")
        yield _NEW_CHAIN, _CREATE, attribute(1, _TABLE) + named + place + attribute(7, b"nat\0")
    for name in own:
        yield _NEW_CHAIN, _CREATE, attribute(1, _TABLE) + attribute(3, name.encode() + b"\0")
    for chain, expressions in rules:
        where = attribute(1, _TABLE) + attribute(2, chain.encode() + b"\0")
        yield _NEW_RULE, _CREATE | _APPEND, where + attribute(4, expressions, nested=True)


def apply(text: str) -> int:
    """Write the rules, all or none.

    Returns:
        How many there are.

    Raises:
        OSError: the kernel does not take one.
    """
    found = list(messages(text))
    frame = {"resource": _NFTABLES, "family": 0}
    packets = [message(_BATCH_BEGIN, 0, _REQUEST, b"", **frame)]
    for sequence, (kind, flags, body) in enumerate(found, 1):
        packets.append(message(_NFTABLES << 8 | kind, sequence, _REQUEST | _ACK | flags, body))
    packets.append(message(_BATCH_END, len(found) + 1, _REQUEST, b"", **frame))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER) as kernel:
        kernel.settimeout(10)
        kernel.sendall(b"".join(packets))
        waiting = set(range(1, len(found) + 1))
        while waiting:
            answer = kernel.recv(2**16)
            while answer:
                length, kind, _, sequence, _ = struct.unpack_from("=IHHII", answer)
                (code,) = struct.unpack_from("=i", answer, 16)
                if kind == _ERROR and code:
                    raise OSError(-code, f"refused: message {sequence}, {found[sequence - 1] if sequence else ''}")
                waiting.discard(sequence)
                answer = answer[(length + 3) // 4 * 4 :]
    return sum(kind == _NEW_RULE for kind, _, _ in found)


if __name__ == "__main__":
    print(apply(sys.stdin.read()))
