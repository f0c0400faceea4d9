/**
 * The update of a predictor's content. If rule and average are local and a batch has few non-zero elements, only these are stepped
 * (`touched.ts`), by the same rule and average that step whole blocks. So both ways give the same bits.
 */
import { roundChanged } from '../../base/numbers.js'
import { gatherEach, stepTouched } from '../../base/support.js'
import type { Averaging, Blocks, Content, Digest, RoundedBlocks, UpdateRule } from '../../learner/types.js'
import { SharedContent } from './shared-content.js'

/** A gradient sum and the number of gradients in it. With a grid, the sum consists of integers. */
export interface Batch {
  readonly sum: Blocks
  readonly count: number
  /** Number of nodes whose gradients it contains; only rules with a grid need it. @default 1 */
  readonly contributorCount?: number
}

/** Computes the next predictor from a predictor and a batch; identical on every peer. */
export interface Recipe {
  readonly rule: UpdateRule
  readonly averaging: Averaging
  readonly digest: Digest
  /** @default none */
  readonly rounded?: RoundedBlocks
}

/** w ← rule(sum / count) and its average. @param updates number of updates before */
export function advance(before: Content, batch: Batch, updates: number, recipe: Recipe): Content {
  return advanceTouched(before, batch, updates, recipe) ?? step(before, batch, updates, recipe)
}

function step(before: Content, { sum, count, contributorCount }: Batch, updates: number, recipe: Recipe): Content {
  const { rule, averaging, rounded } = recipe
  const { parameters, state } = rule.step(before, sum, count, updates, contributorCount)
  if (rounded) roundEach(parameters, before.parameters, rounded.parameters, updates)
  const average = averaging.average(before.average, parameters, updates, before.parameters, rule.leastWeight?.(state))
  if (rounded) {
    roundEach(average, before.average, rounded.average, updates)
    roundEach(state, before.state, rounded.state, updates)
  }
  return { parameters, average, state }
}

function roundEach(blocks: Blocks, before: Blocks, isRounded: readonly boolean[], updates: number): void {
  for (const [k, block] of blocks.entries()) if (isRounded[k]) roundChanged(block, before[k], updates)
}

type Groups = readonly [parameters: Blocks, average: Blocks, state: Blocks]

/** @returns undefined if the whole blocks must be stepped */
function advanceTouched(before: Content, batch: Batch, updates: number, recipe: Recipe): Content | undefined {
  if (!(recipe.rule.isLocal && recipe.averaging.isLocal)) return undefined
  const stepGroups = ([parameters, average, state]: Groups, sum: Blocks): Groups => {
    const next = step({ parameters, average, state }, { ...batch, sum }, updates, recipe)
    return [next.parameters, next.average, next.state]
  }
  const groups: Groups = [before.parameters, before.average, before.state]
  const touched = stepTouched(groups, batch.sum, stepGroups)
  if (touched === undefined) return undefined
  const shared = before instanceof SharedContent ? before : SharedContent.copyOf(before, touched.length)
  return shared.with(touched, touched.short)
}

/** The elements of a content's blocks of this length at the indices, followed by ones. Shorter blocks are copied. */
export function gathered({ parameters, average, state }: Content, length: number, indices: Int32Array): Content {
  return {
    parameters: gatherEach(parameters, length, indices, 1),
    average: gatherEach(average, length, indices, 1),
    state: gatherEach(state, length, indices, 1)
  }
}
