/**
 * The hello of a peer, and the comparison that prevents peers with different models, rules or batch sizes from exchanging
 * sums.
 */
import { createSha256 } from '#platform'
import { IncompatiblePeerError, ProtocolViolationError } from './errors.js'
import { maxHelloBytes } from './limits.js'

export interface Hello {
  /** Version of the control messages and frames. */
  readonly protocol: number
  /**
   * Fields that must be equal at both ends, in the order in which differences are reported. A field is named like the option
   * that sets it (`batch`, `model`, …), which the error message mentions.
   */
  readonly fields: readonly (readonly [field: string, value: string])[]
}

/** The hello of a peer of the network with this id, if it has one. */
export function inNetworkWithId({ protocol, fields }: Hello, networkId: string | undefined): Hello {
  return networkId === undefined ? { protocol, fields } : { protocol, fields: [['network-id', networkId], ...fields] }
}

/**
 * Part of the names of gossip topics and catch-ups, so that announcements reach only peers with an equal hello.
 * @returns 16 hexadecimal digits, which do not depend on the order of the fields
 */
export function helloTag({ protocol, fields }: Hello): string {
  const sorted = [...fields].sort(([a], [b]) => (a < b ? -1 : 1))
  const hash = createSha256()
  hash.update(new TextEncoder().encode(JSON.stringify({ protocol, fields: sorted })))
  return hash.digest('hex').slice(0, 16)
}

/** JSON in UTF-8, `{"protocol":1,"fields":[["batch","512"],…]}`. @throws RangeError if it exceeds 16 KiB */
export function encodeHello(hello: Hello): Uint8Array {
  const bytes = new TextEncoder().encode(JSON.stringify({ protocol: hello.protocol, fields: hello.fields }))
  if (bytes.length > maxHelloBytes) throw new RangeError(`a hello is limited to ${maxHelloBytes} bytes`)
  return bytes
}

/** @throws ProtocolViolationError if the bytes are malformed */
export function decodeHello(bytes: Uint8Array): Hello {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new ProtocolViolationError('the hello is not JSON')
  }
  if (!isHello(value)) throw new ProtocolViolationError('the hello has no protocol number or no fields')
  return value
}

function isHello(value: unknown): value is Hello {
  if (typeof value !== 'object' || value === null) return false
  const { protocol, fields } = value as { protocol?: unknown; fields?: unknown }
  const isField = (field: unknown) =>
    Array.isArray(field) && field.length === 2 && field.every(part => typeof part === 'string')
  return Number.isInteger(protocol) && Array.isArray(fields) && fields.every(isField)
}

/** @throws IncompatiblePeerError naming the first field in which `theirs` differs from `ours` */
export function assertCompatible(peer: string, ours: Hello, theirs: Hello): void {
  if (ours.protocol !== theirs.protocol) {
    throw new IncompatiblePeerError(peer, 'protocol', String(theirs.protocol), String(ours.protocol))
  }
  const their = new Map(theirs.fields)
  const our = new Map(ours.fields)
  for (const field of [...our.keys(), ...their.keys()]) {
    const [theirValue, ourValue] = [their.get(field), our.get(field)]
    if (theirValue === ourValue) continue
    // Only the items that differ matter in long lists.
    const [different, own] =
      field === 'columns' ? [without(theirValue, ourValue), without(ourValue, theirValue)] : [theirValue, ourValue]
    throw new IncompatiblePeerError(peer, printable(field), printable(different), own)
  }
}

/** The items of a list that another list lacks. */
function without(list = '', other = ''): string {
  const others = new Set(other.split(', '))
  const items = list.split(', ').filter(item => item !== '' && !others.has(item))
  return items.length === 0 ? 'none of these' : items.join(', ')
}

/** Makes remote text safe for a log line: short and without control characters. */
export function printable<T extends string | undefined>(text: T): T {
  return text?.slice(0, 80).replace(/[^\x20-\x7e]/g, '?') as T
}
