/**
 * Signatures of headers. The maker of a predictor signs its header, so that no other peer can claim
 * an update in its name, and two different headers with one name prove that the maker has signed
 * both. A peer also signs each of its runs, so that no other peer can claim gradients in its name.
 * The bytes are specified in docs/reference/protocol.md.
 */
import { type Contributor, type ContributorTable, entriesOf } from '../state/coverage.js'
import type { Header } from '../state/predictor.js'
import type { PredictorId } from '../state/predictor-id.js'
import { type Reader, Writer } from '../wire/bytes.js'
import { FRAME_LIMITS } from '../wire/frame.js'
import { type PredictorName, readContributor, writeContributor, writeFullId, writeName } from '../wire/messages.js'

/** Size of a signature, in bytes. */
export const SIGNATURE_BYTES = 64
/** Size of a hash of a coverage, in bytes. */
const HASH_BYTES = 16

/** Signs with this node's key and verifies signatures of others, in the same way at all nodes. */
export interface Signer {
  /** Signature of this node, 64 bytes. The same bytes have the same signature. */
  sign(bytes: Uint8Array): Uint8Array
  /** Whether `signature` is one of the node `origin`, whose id contains its public key. */
  verify(origin: string, bytes: Uint8Array, signature: Uint8Array): boolean
  /** A collision-resistant hash, at least 16 bytes. */
  hash(bytes: Uint8Array): Uint8Array
}

/** Certificates of contributors that are not verified yet, by index. */
export type Claims = ReadonlyMap<number, Uint8Array>

/** The content that a signature of a header covers: the name of the predictor, and the rest. */
export interface Statement {
  readonly name: Uint8Array
  readonly rest: Uint8Array
}

/** First byte of what is signed. */
const HEADER = 1
const ATTESTATION = 2
const CERTIFICATE = 3

/** What a header states of the contributors of its table. */
export function statementOf(header: Header, table: ContributorTable, signer: Pick<Signer, 'hash'>): Statement {
  return laterStatementOf(header, table, signer)()
}

/** The same, computed when it is called: the table may have changed until then. */
export function laterStatementOf(
  { id, parent, count, coverage }: Header,
  table: ContributorTable,
  signer: Pick<Signer, 'hash'>
): () => Statement {
  const covered = entriesOf(coverage).map(([index, segments]) => [table.contributor(index), segments] as const)
  let statement: Statement | undefined
  return () => {
    statement ??= { name: nameOf(id), rest: restOf({ id, parent, count }, signer.hash(coverageBytes(covered))) }
    return statement
  }
}

function restOf({ id, parent, count }: Omit<Header, 'coverage'>, coverage: Uint8Array): Uint8Array {
  const out = new Writer()
  out.hex(id.digest)
  writeContributor(out, parent)
  out.hex(parent.digest)
  out.uint(count)
  return joined(out.unchecked(), coverage.subarray(0, HASH_BYTES))
}

/** The bytes that the maker signs. */
export function signedBytes({ name, rest }: Statement): Uint8Array {
  return joined(Uint8Array.of(HEADER), name, rest)
}

/** The bytes that the signer of an attestation signs. */
export function attestedBytes(id: PredictorId): Uint8Array {
  const out = new Writer()
  out.byte(ATTESTATION)
  writeFullId(out, id)
  return out.unchecked()
}

/** The bytes that a peer signs to confirm that it has started a run. */
export function certifiedBytes(contributor: Contributor): Uint8Array {
  const out = new Writer()
  out.byte(CERTIFICATE)
  writeContributor(out, contributor)
  return out.unchecked()
}

/** Reads the rest of a statement. @throws FrameError */
export function readRest(input: Reader): Uint8Array {
  const out = new Writer()
  out.hex(input.hex(HASH_BYTES))
  writeContributor(out, readContributor(input))
  out.hex(input.hex(HASH_BYTES))
  out.uint(input.uint(FRAME_LIMITS.count, 'number of gradients'))
  out.hex(input.hex(HASH_BYTES))
  return out.unchecked()
}

/** Number of updates and maker of a predictor. */
export function nameOf(name: PredictorName): Uint8Array {
  const out = new Writer()
  writeName(out, name)
  return out.unchecked()
}

/** The covered contributors in the order of their names, which is the same at all nodes. */
function coverageBytes(covered: (readonly [Contributor, segments: number])[]): Uint8Array {
  covered.sort(([a], [b]) =>
    a.origin === b.origin ? a.incarnation - b.incarnation || a.nonce - b.nonce : a.origin < b.origin ? -1 : 1
  )
  const out = new Writer(64 * covered.length + 16)
  out.uint(covered.length)
  for (const [contributor, count] of covered) {
    writeContributor(out, contributor)
    out.uint(count)
  }
  return out.unchecked()
}

export function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

export function areEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i])
}
