/**
 * A predictor with its lineage as bytes that mean the same to everyone: for the database, for peers that fetch it from
 * whoever has it, and for files. The same frame format, with every contributor defined.
 */
import type { Digest } from '../learner/types.js'
import { decodeFrame } from './decode.js'
import { encodeFrame } from './encode.js'
import { FrameError } from './errors.js'
import type { Shapes } from './frame.js'
import { Incoming } from './incoming.js'
import { ContributorTable } from './keys.js'
import { Outgoing } from './outgoing.js'
import type { Header, Predictor } from './predictor.js'

export interface Saved {
  readonly predictor: Predictor
  /** Newest first; may be shorter than the number of updates. Empty for the starting predictor. */
  readonly lineage: readonly Header[]
}

export function encodeSaved(saved: Saved, shapes: Shapes, table: ContributorTable): Uint8Array {
  const { name, parameters, average, state } = saved.predictor
  const frame = {
    session: 0,
    sequence: 1,
    received: 0,
    heldSum: 0,
    name,
    ask: false,
    headers: saved.lineage,
    content: { kind: 'whole', parameters, average, state },
    sum: undefined
  } as const
  return encodeFrame(frame, shapes, table, new Outgoing())
}

/**
 * @param table numbers the contributors of the lineage's coverages; a new one if they do not matter
 * @throws FrameError if the bytes are damaged, of another shape, or do not match their digest
 */
export function decodeSaved(
  bytes: Uint8Array,
  shapes: Shapes,
  table: ContributorTable = new ContributorTable(),
  digest?: Digest
): Saved {
  const frame = decodeFrame(bytes, shapes, table, { incoming: new Incoming(), isCurrent: () => true }, () => [])
  if (frame?.content?.kind !== 'whole') throw new FrameError('a saved predictor without its vectors')
  const { parameters, average, state } = frame.content
  if (digest && digest([parameters, average, state]) !== frame.name.digest) {
    throw new FrameError('content does not match its digest')
  }
  return { predictor: { name: frame.name, parameters, average, state }, lineage: frame.headers }
}
