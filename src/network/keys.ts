/** Identity keys (of a peer) and network keys (shared by all peers of a private network): generation and encoding. */
import './polyfill.js'
import { generateKeyPair, privateKeyFromProtobuf, privateKeyToProtobuf } from '@libp2p/crypto/keys'
import type { Ed25519PrivateKey } from '@libp2p/interface'
import { peerIdFromPrivateKey, peerIdFromString } from '@libp2p/peer-id'
import { bytesToHex, hexToBytes, randomBytes } from '@noble/hashes/utils.js'
import { DamagedKeyError, MalformedNetworkIdError, MalformedPeerIdError } from './errors.js'
import type { IdentityKey } from './types.js'

/** The key for libp2p. */
export function libp2pKey(key: IdentityKey): Ed25519PrivateKey {
  return key as Ed25519PrivateKey
}

export function generateIdentityKey(): Promise<IdentityKey> {
  return generateKeyPair('Ed25519')
}

/** libp2p's protobuf encoding: 68 bytes. */
export function encodeIdentityKey(key: IdentityKey): Uint8Array {
  return privateKeyToProtobuf(libp2pKey(key))
}

/** @throws DamagedKeyError if the bytes are not an Ed25519 key in libp2p's protobuf encoding */
export function decodeIdentityKey(bytes: Uint8Array): IdentityKey {
  let key: ReturnType<typeof privateKeyFromProtobuf>
  try {
    key = privateKeyFromProtobuf(bytes)
  } catch {
    throw new DamagedKeyError('identity', `${bytes.length} bytes without a key`)
  }
  if (key.type !== 'Ed25519') throw new DamagedKeyError('identity', `type ${key.type}; expected Ed25519`)
  return key
}

/** Peer id of a key: `12D3Koo…`. */
export function peerIdOf(key: IdentityKey): string {
  return peerIdFromPrivateKey(libp2pKey(key)).toString()
}

/** Normalizes a peer id. @throws MalformedPeerIdError if it is malformed */
export function parsePeerId(text: string): string {
  try {
    return peerIdFromString(text.trim()).toString()
  } catch {
    throw new MalformedPeerIdError(text)
  }
}

const ID_LINE = '/admb/network/'

/** A new network key in the form of a libp2p `swarm.key` file: three lines, 256 random bits in hexadecimal. The id is a fourth line. */
export function generateNetworkKey(id = drawNetworkId()): Uint8Array {
  const key = bytesToHex(randomBytes(32))
  return new TextEncoder().encode(`/key/swarm/psk/1.0.0/\n/base16/\n${key}\n${ID_LINE}${parseNetworkId(id)}\n`)
}

/**
 * Normalizes the content of a network key file.
 * @throws DamagedKeyError if it is malformed
 */
export function parseNetworkKey(content: Uint8Array): Uint8Array {
  const [tag, encoding, key, last = ''] = new TextDecoder().decode(content).split(/\r?\n/)
  if (tag !== '/key/swarm/psk/1.0.0/' || encoding !== '/base16/') {
    throw new DamagedKeyError('network', 'its first lines are not "/key/swarm/psk/1.0.0/" and "/base16/"')
  }
  if (!/^[0-9a-f]{64}$/i.test(key?.trim() ?? '')) {
    throw new DamagedKeyError('network', 'its third line is not 64 hexadecimal digits')
  }
  const id = last.trim()
  if (id !== '' && !id.startsWith(ID_LINE))
    throw new DamagedKeyError('network', `its fourth line is not "${ID_LINE}ID"`)
  const idLine = id === '' ? '' : `${ID_LINE}${parseNetworkId(id.slice(ID_LINE.length))}\n`
  return new TextEncoder().encode(`${tag}\n${encoding}\n${key.trim().toLowerCase()}\n${idLine}`)
}

/** The network id in a network key file; undefined if it has none. @throws DamagedKeyError if it is malformed */
export function networkIdIn(content: Uint8Array): string | undefined {
  return new TextDecoder().decode(parseNetworkKey(content)).split('\n')[3]?.slice(ID_LINE.length) || undefined
}

/** The 32 bytes of a network key file. @throws DamagedKeyError if it is malformed */
export function rawNetworkKey(content: Uint8Array): Uint8Array {
  return hexToBytes(new TextDecoder().decode(parseNetworkKey(content)).split('\n')[2])
}

/**
 * The id of a network. Peers with different ids, or of which only one has an id, neither open sessions nor exchange predictors, so
 * that two networks of the same model never merge by accident. It is no secret.
 */
const PATTERN = /^[A-Za-z0-9._-]{1,64}$/

export function drawNetworkId(): string {
  return bytesToHex(randomBytes(16))
}

export function isNetworkId(text: string): boolean {
  return PATTERN.test(text)
}

/** @throws MalformedNetworkIdError */
export function parseNetworkId(text: string): string {
  if (!isNetworkId(text)) throw new MalformedNetworkIdError(text)
  return text
}
