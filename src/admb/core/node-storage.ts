/** The predictor and lineage that a node stores, or gives to others outside the tree. */
import type { ContributorTable } from '../state/coverage.js'
import type { Recipe } from '../state/predictor.js'
import type { PredictorId } from '../state/predictor-id.js'
import { maximumChainBytes, type Shapes } from '../state/vectors.js'
import type { Authenticity } from '../trust/authenticity.js'
import {
  bytesOf,
  decodeSaved,
  encodeSaved,
  encodeSavedBlocks,
  encodeSavedSteps,
  PredictorAssembler,
  replaySteps,
  type Saved,
  type SavedBlocks,
  type SavedSteps
} from '../wire/saved.js'
import type { CurrentPredictor } from './current-predictor.js'

/** A stored predictor: `saveBlocks`, and what `saveSteps` returned since, oldest first. */
export interface StoredBlocks {
  readonly head: Uint8Array
  readonly blocks: readonly Uint8Array[]
  readonly steps?: readonly SavedSteps[]
}

/** Stores the predictor of a node with its lineage, and reads what a node has stored. */
export class NodeStorage {
  readonly #current: CurrentPredictor
  readonly #shapes: Shapes
  readonly #table: ContributorTable
  readonly #recipe: Recipe
  readonly #authenticity: Authenticity | undefined

  constructor(
    current: CurrentPredictor,
    shapes: Shapes,
    table: ContributorTable,
    recipe: Recipe,
    authenticity: Authenticity | undefined
  ) {
    this.#current = current
    this.#shapes = shapes
    this.#table = table
    this.#recipe = recipe
    this.#authenticity = authenticity
  }

  /** The predictor and its lineage as self-contained bytes, for `offer` and `restore` of a node. */
  save(saved: Saved = this.snapshot()): Uint8Array {
    return encodeSaved(saved, this.#shapes, this.#table)
  }

  /** Content of `save` at this moment, to be encoded later. */
  snapshot(): Saved {
    const { predictor, attestation: received } = this.#current
    const { lineage: known } = this.#current
    // The lineage changes with the next event.
    const lineage = (this.#authenticity?.sendable(known) ?? known).slice()
    const attestation = lineage.length === 0 ? this.#authenticity?.attestation(predictor.id, received) : undefined
    return { predictor, lineage, ...(attestation && { attestation }) }
  }

  /** Upper bound of the size of the vectors of a predictor, encoded, in bytes. */
  get maxBytes(): number {
    return maximumChainBytes(this.#shapes)
  }

  /** The predictor block by block, for `restoreBlocks`. */
  saveBlocks(): SavedBlocks {
    const { predictor, lineage, attestation } = this.#current
    return encodeSavedBlocks({ predictor, lineage, attestation }, this.#table)
  }

  /** The predictor of `sendBlocks` is not served any more. */
  servingEnded(): void {
    this.#current.isServing = false
  }

  /** The predictor block by block, for `downloadEnded` of another node. More steps are kept until `servingEnded`. */
  sendBlocks(): SavedBlocks {
    this.#current.isServing = true
    return encodeSavedBlocks(this.snapshot(), this.#table)
  }

  /** Upper bound of the bytes of the sums in `saveSteps`; undefined unless steps are kept. */
  stepBytes(since: PredictorId): number | undefined {
    const steps = this.#current.stepsFrom(since)
    return steps && bytesOf(steps)
  }

  /** The steps from an ancestor, for `restoreBlocks`. Call it only if `stepBytes` is defined. */
  saveSteps(since: PredictorId): SavedSteps {
    const steps = this.#current.stepsFrom(since) ?? []
    const { predictor, lineage } = this.#current
    return encodeSavedSteps({ id: predictor.id, headers: lineage.slice(0, steps.length) }, steps, this.#table)
  }

  /** Reads what `save` of any node has returned. @throws FrameError */
  read(bytes: Uint8Array): Saved {
    const saved = decodeSaved(bytes, this.#shapes, this.#table, this.#recipe.digest)
    this.#current.checkHeaders(saved.lineage)
    return saved
  }

  /** Reads what `saveBlocks` and `saveSteps` returned in an earlier run, or `sendBlocks` of another node. @throws FrameError */
  readBlocks(stored: StoredBlocks): Saved {
    const saved = readStored(stored, this.#shapes, this.#recipe, this.#table)
    this.#current.checkHeaders(saved.lineage)
    return saved
  }
}

/**
 * Reads a stored predictor with its lineage.
 * @param table interns the contributors of the lineage
 * @throws FrameError
 */
export function readStored(
  { head, blocks, steps = [] }: StoredBlocks,
  shapes: Shapes,
  recipe: Recipe,
  table: ContributorTable
): Saved {
  const assembler = new PredictorAssembler(head, blocks.length, shapes, table)
  for (const block of blocks) assembler.add(block)
  let saved = assembler.finish(recipe.digest)
  for (const record of steps) saved = replaySteps(saved, record, shapes, recipe, table)
  return saved
}
