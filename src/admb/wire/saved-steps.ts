/** The steps from a saved predictor to a later one: fewer bytes than the later predictor, and replayed to the same bits. */
import type { AuditedLineage } from '../core/audit.js'
import { ContributorTable } from '../state/contributors.js'
import { type Recipe, replayed } from '../state/predictor.js'
import { sameId } from '../state/predictor-id.js'
import type { Step } from '../state/step.js'
import type { Shapes } from '../state/vectors.js'
import { FrameError, Reader, Writer } from './bytes.js'
import { decodeLineage, encodeLineage, type Saved } from './saved.js'

/** A record of steps. */
export interface SavedSteps {
  /** Id of the later predictor, and a header for each step. */
  readonly head: Uint8Array
  /** The gradient sums, oldest first. */
  readonly sums: Uint8Array
}

/** @param steps newest first, as many as the lineage has headers */
export function encodeSavedSteps(lineage: AuditedLineage, steps: readonly Step[], table: ContributorTable): SavedSteps {
  const head = encodeLineage(lineage, table)
  // Writers share a buffer, so only one is used at a time.
  const out = new Writer(64 + bytesOf(steps))
  for (const { blocks } of steps.toReversed()) out.blocks(blocks)
  return { head, sums: out.finish() }
}

/** Upper bound of the size of their sums. */
export function bytesOf(steps: readonly Step[]): number {
  return steps.reduce((sum, { bytes, blocks }) => sum + bytes + 12 * blocks.length, 0)
}

/**
 * Computes the later predictor.
 * @param saved the one before the steps
 * @throws FrameError if the record is damaged, or continues another predictor
 */
export function replaySteps(
  saved: Saved,
  { head, sums }: SavedSteps,
  shapes: Shapes,
  recipe: Recipe,
  table: ContributorTable = new ContributorTable()
): Saved {
  const { headers, claims } = decodeLineage(head, table)
  const input = new Reader(sums)
  let { predictor } = saved
  for (const header of headers.toReversed()) {
    if (!sameId(header.parent, predictor.id)) throw new FrameError('saved steps continue another predictor')
    // The digest of the last predictor depends on all earlier ones.
    const digest = header === headers[0] ? recipe.digest : () => header.id.digest
    predictor = replayed(predictor, input.blocks(shapes.parameters), header, { ...recipe, digest })
  }
  if (headers.length > 0 && predictor.id.digest !== headers[0].id.digest) {
    throw new FrameError('replaying the saved steps yields another digest')
  }
  input.finish()
  return { predictor, lineage: [...headers, ...saved.lineage], claims: new Map([...(saved.claims ?? []), ...claims]) }
}
