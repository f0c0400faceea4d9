/**
 * Proofs that a maker has signed two different headers with one name, which no correct node does: a
 * run makes one predictor with each number of updates at most. Anyone can check a proof, and only
 * the maker can cause one.
 */
import { FrameError, type Reader } from '../wire/bytes.js'
import { FLAGS } from '../wire/frame.js'
import { beginMessage, openMessage, readName } from '../wire/messages.js'
import { areEqual, nameOf, readRest, SIGNATURE_BYTES, type Signer, signedBytes } from './signatures.js'

/** The rest of a signed statement, with its signature. */
export interface Signed {
  readonly rest: Uint8Array
  readonly signature: Uint8Array
}

export interface Equivocation {
  /** Peer id of the maker. */
  readonly maker: string
  readonly name: Uint8Array
  readonly statements: readonly [Signed, Signed]
}

/** Whether the bytes are a proof. The result is arbitrary for malformed bytes. */
export function isProof(bytes: Uint8Array): boolean {
  return bytes[1] === FLAGS.proof
}

export function encodeProof(session: number, { name, statements }: Equivocation): Uint8Array {
  const out = beginMessage(FLAGS.proof, session)
  out.raw(name)
  for (const { rest, signature } of statements) {
    out.raw(rest)
    out.raw(signature)
  }
  return out.finish()
}

/**
 * @param isExcluded whether a maker needs no further proof
 * @returns undefined if nothing follows from it, because it belongs to another session or the maker
 * is excluded
 * @throws FrameError if it is malformed or proves nothing
 */
export function decodeProof(
  bytes: Uint8Array,
  session: number,
  signer: Signer,
  isExcluded: (maker: string) => boolean
): Equivocation | undefined {
  const input = openMessage(bytes)
  const ofSession = input.uint()
  const id = readName(input)
  const [first, second] = [readSigned(input), readSigned(input)]
  input.finish()
  if (ofSession !== session || isExcluded(id.origin)) return undefined
  const name = nameOf(id)
  const isValid = ({ rest, signature }: Signed) => signer.verify(id.origin, signedBytes({ name, rest }), signature)
  if (areEqual(first.rest, second.rest) || !isValid(first) || !isValid(second))
    throw new FrameError(`proof against ${id.origin} without two signatures of different headers`)
  return { maker: id.origin, name, statements: [first, second] }
}

function readSigned(input: Reader): Signed {
  return { rest: readRest(input), signature: input.raw(SIGNATURE_BYTES) }
}
