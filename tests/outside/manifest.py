"""Writes the signed manifest of a sealed transfer, from the description of its format alone (docs/design/outbox.md).

    manifest.py KEY TRANSFER SERIAL MADE FOLDER RECEIVER NAME=FILE...    the manifest of these files, to standard output
    manifest.py --public KEY                                            the public key of a private one, in hexadecimal

KEY is a node's key file, TRANSFER 32 digits of hexadecimal, MADE a number of seconds since 1970, RECEIVER a public key as
`strait pubkey` prints it. The contents are the files one after the other in the order of their names; the folders that these are in are entries, too. Ed25519 is
python-cryptography's; BLAKE3 is written here, from the specification's section 2.
"""

import base64
import os
import struct
import sys

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

# BLAKE3: the initial value, the permutation of message words, flags, and the length of a chunk.
IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
PERMUTATION = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
CHUNK_START, CHUNK_END, PARENT, ROOT = 1, 2, 4, 8
CHUNK = 1024
WORD = 0xFFFFFFFF


def mix(state, a, b, c, d, first, second):
    for word, down, up in ((first, 16, 12), (second, 8, 7)):
        state[a] = (state[a] + state[b] + word) & WORD
        turned = state[d] ^ state[a]
        state[d] = (turned >> down | turned << (32 - down)) & WORD
        state[c] = (state[c] + state[d]) & WORD
        turned = state[b] ^ state[c]
        state[b] = (turned >> up | turned << (32 - up)) & WORD


def compress(chaining, block, counter, flags):
    words = struct.unpack("<16I", block.ljust(64, b"\0"))
    state = [*chaining, *IV[:4], counter & WORD, counter >> 32, len(block), flags]
    for _ in range(7):
        for at in range(4):
            mix(state, at, 4 + at, 8 + at, 12 + at, words[2 * at], words[2 * at + 1])
        for at in range(4):
            b, c, d = 4 + (at + 1) % 4, 8 + (at + 2) % 4, 12 + (at + 3) % 4
            mix(state, at, b, c, d, words[8 + 2 * at], words[9 + 2 * at])
        words = tuple(words[at] for at in PERMUTATION)
    return [state[at] ^ state[at + 8] for at in range(8)]


def chunk(content, counter, flags):
    blocks = [content[at : at + 64] for at in range(0, len(content), 64)] or [b""]
    chaining = IV
    for number, block in enumerate(blocks):
        own = CHUNK_START if number == 0 else 0
        if number == len(blocks) - 1:
            own |= CHUNK_END | flags
        chaining = compress(chaining, block, counter, own)
    return chaining


def subtree(content, counter, flags):
    """The chaining value of a part of the tree; the left half has the largest power of two of chunks that leaves some."""
    if len(content) <= CHUNK:
        return chunk(content, counter, flags)
    left = CHUNK << ((len(content) - 1) // CHUNK).bit_length() - 1
    halves = subtree(content[:left], counter, 0) + subtree(content[left:], counter + left // CHUNK, 0)
    return compress(IV, struct.pack("<16I", *halves), 0, PARENT | flags)


def blake3(content):
    return struct.pack("<8I", *subtree(content, 0, ROOT))


def sized(content):
    return struct.pack(">H", len(content)) + content


def entry(name, path):
    found = os.stat(path)
    with open(path, "rb") as file:
        content = file.read()
    about = struct.pack(">HqBQ", found.st_mode & 0o777, found.st_mtime_ns, 1, len(content))
    return sized(os.fsencode(name)) + about + blake3(content)


def folder(name):
    return sized(name) + struct.pack(">HqB", 0o755, 0, 2)


def private_key(path):
    with open(path, encoding="ascii") as file:
        return Ed25519PrivateKey.from_private_bytes(base64.b64decode(file.read()))


def public_key(key):
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def manifest(key, transfer, serial, made, place, receiver, files):
    never = (1 << 63) - 1
    entries = {os.fsencode(name): entry(name, path) for name, path in files}
    for name in list(entries):
        for at in (at for at, byte in enumerate(name) if byte == ord("/") and at):
            entries.setdefault(name[:at], folder(name[:at]))
    signed = b"strait manifest 1\n" + bytes.fromhex(transfer) + public_key(key)
    signed += struct.pack(">Qqq", serial, made, never) + sized(place.encode()) + sized(b"")
    signed += struct.pack(">HB", 1, 1) + base64.b64decode(receiver)
    signed += struct.pack(">I", len(entries)) + b"".join(entries[name] for name in sorted(entries))
    return signed + key.sign(signed)


def main(arguments):
    if arguments[0] == "--public":
        print(public_key(private_key(arguments[1])).hex())
        return
    key, transfer, serial, made, place, receiver, *files = arguments
    files = [tuple(file.split("=", 1)) for file in files]
    signed = manifest(private_key(key), transfer, int(serial), int(made), place, receiver, files)
    sys.stdout.buffer.write(signed)


if __name__ == "__main__":
    main(sys.argv[1:])
