/**
 * Referral: a peer that needs free connections sends the addresses of some other peers and then closes the connection. It uses a
 * separate stream with one control chunk. The receiver closes the stream.
 */
import type { Connection, Stream } from '@libp2p/interface'
import { parseAddress } from './addresses.js'
import { ChunkChannel } from './chunk-channel.js'
import { ChunkKind } from './chunks.js'
import { ProtocolViolationError } from './errors.js'
import type { Limits } from './limits.js'
import type { KnownPeer } from './peer-table.js'
import { referralProtocol } from './protocols.js'

/** Maximum number of peers in a referral, and of addresses of each. */
const maxContacts = 8
const maxAddresses = 4

/** JSON in UTF-8: `[{"id":"12D3KooW…","addresses":["/ip4/…/p2p/12D3KooW…"]}]`. */
export function encodeReferral(contacts: readonly KnownPeer[]): Uint8Array {
  const named = contacts.slice(0, maxContacts)
  const short = named.map(({ id, addresses }) => ({ id, addresses: addresses.slice(0, maxAddresses) }))
  return new TextEncoder().encode(JSON.stringify(short))
}

/** @throws ProtocolViolationError if the bytes are malformed */
export function decodeReferral(bytes: Uint8Array): KnownPeer[] {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    if (Array.isArray(value) && value.length <= maxContacts && value.every(isContact)) return value
  } catch {
    // Malformed, as below.
  }
  throw new ProtocolViolationError('malformed referral')
}

function isContact(value: unknown): value is KnownPeer {
  if (typeof value !== 'object' || value === null) return false
  const { id, addresses } = value as { readonly id?: unknown; readonly addresses?: unknown }
  if (typeof id !== 'string' || !Array.isArray(addresses) || addresses.length > maxAddresses) return false
  return addresses.every(address => {
    if (typeof address !== 'string' || !address.endsWith(`/p2p/${id}`)) return false
    parseAddress(address)
    return true
  })
}

/** Sends a referral and closes the connection, whether the referral has arrived or not. */
export async function refer(connection: Connection, contacts: readonly KnownPeer[], limits: Limits): Promise<void> {
  try {
    const signal = AbortSignal.timeout(limits.helloTimeoutMs)
    const stream = await connection.newStream(referralProtocol, { signal })
    await new Promise<void>(resolve => {
      const channel = new ChunkChannel(stream, limits.closeTimeoutMs)
      const giveUp = setTimeout(resolve, limits.closeTimeoutMs)
      channel.receive({
        chunk: kind => channel.fail(new ProtocolViolationError(`unexpected chunk of kind ${kind} after a referral`)),
        data: () => channel.fail(new ProtocolViolationError('unexpected frame data after a referral')),
        closed: () => {
          clearTimeout(giveUp)
          resolve()
        }
      })
      channel.send(ChunkKind.control, encodeReferral(contacts))
    })
  } finally {
    await connection
      .close({ signal: AbortSignal.timeout(limits.closeTimeoutMs) })
      .catch(error => connection.abort(error))
  }
}

/** Receives the referral of an inbound stream. */
export function receiveReferral(
  stream: Stream,
  limits: Limits,
  onContacts: (contacts: readonly KnownPeer[]) => void,
  onViolation: (reason: string) => void
): void {
  const channel = new ChunkChannel(stream, limits.closeTimeoutMs)
  channel.receive({
    chunk: (kind, payload) => {
      if (kind !== ChunkKind.control) throw new ProtocolViolationError(`unexpected chunk of kind ${kind} in a referral`)
      onContacts(decodeReferral(payload))
      channel.close('received')
    },
    data: () => channel.fail(new ProtocolViolationError('unexpected frame data in a referral')),
    closed: (reason, violation) => {
      if (violation) onViolation(reason)
    }
  })
}
