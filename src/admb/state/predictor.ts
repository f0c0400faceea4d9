/**
 * Predictors and their derivation. A predictor is an immutable value. Its header states its parent
 * and whose gradients the update used. The headers of the last updates, its lineage, let a node
 * determine which of its own gradients were used.
 *
 * If rule and average are local and a batch has few non-zero elements, an update steps only these
 * (`stepTouched`), by the same rule and average that step whole blocks. So both ways give the same
 * bits.
 */

import type { Averaging, BatchRule, Blocks, Content, Digest, RoundedBlocks, UpdateRule } from '../../learning/types.js'
import { roundChanged } from '../../numeric/block-kernels.js'
import { isFiniteBlock } from '../../numeric/numbers.js'
import { giveArray, takeArray } from '../../numeric/spare-arrays.js'
import { blocksOf, type Sum } from '../../numeric/sums.js'
import { gatherEach, stepTouched } from '../../numeric/touched.js'
import type { Contributor, Coverage } from './coverage.js'
import type { PredictorId } from './predictor-id.js'
import { SharedContent } from './shared-content.js'

/** A gradient sum and the number of gradients in it. With a grid, the sum consists of integers. */
export interface Batch {
  readonly sum: Sum
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

/**
 * A content with its id. Immutable: share it, never write to it. Predictors of large sparse models
 * share arrays: read blocks from a predictor when they are needed, and copy those that must outlive
 * the next event.
 */
export interface Predictor extends Content {
  readonly id: PredictorId
  /**
   * Content whose arrays are shared; undefined if none are.
   * @internal
   */
  readonly shared?: SharedContent
  /**
   * Whether all numbers are finite, if it is known.
   * @internal
   */
  readonly areFinite?: boolean
}

class SharedPredictor implements Predictor {
  constructor(
    readonly id: PredictorId,
    readonly shared: SharedContent
  ) {}

  get parameters(): Blocks {
    return this.shared.parameters
  }

  get average(): Blocks {
    return this.shared.average
  }

  get state(): Blocks {
    return this.shared.state
  }
}

/** Derivation of a predictor. The coverage refers to the table of the header's holder. */
export interface Header {
  readonly id: PredictorId
  readonly parent: PredictorId
  /** Number of gradients in the batch. */
  readonly count: number
  readonly coverage: Coverage
  /** Signature of the maker over all of the above; undefined without a key. */
  readonly signature?: Uint8Array
}

/** b of a predictor. */
export function batchOf(batch: number | BatchRule, { parameters }: Predictor): number {
  return typeof batch === 'number' ? batch : batch.of(parameters)
}

/** The common starting predictor: no updates, no origin. */
export function startingPredictor(initial: Blocks, recipe: Recipe): Predictor {
  const { rounded } = recipe
  const parameters = rounded ? initial.map((block, k) => (rounded.parameters[k] ? roundedCopy(block) : block)) : initial
  const layout = { blocks: parameters.map((block, i) => ({ name: String(i), length: block.length })) }
  const state = recipe.rule.stateLayout(layout).blocks.map(block => new Float32Array(block.length))
  const average = recipe.averaging.contain?.(parameters, parameters) ?? parameters
  const digest = recipe.digest([parameters, average, state])
  return { id: { updates: 0, origin: '', incarnation: 0, nonce: 0, digest }, parameters, average, state }
}

/** A copy that is rounded as if an update before the first one had made it of zeros. */
function roundedCopy(block: Float32Array): Float32Array {
  const copy = block.slice()
  roundChanged(copy, new Float32Array(copy.length), -1)
  return copy
}

/** w ← rule(sum / count) and its average. @param updates number of updates before */
export function advance(before: Content, batch: Batch, updates: number, recipe: Recipe): Content {
  return advanceTouched(before, batch, updates, recipe) ?? step(before, blocksOf(batch.sum), batch, updates, recipe)
}

function step(
  before: Content,
  sum: Blocks,
  { count, contributorCount }: Omit<Batch, 'sum'>,
  updates: number,
  recipe: Recipe
): Content {
  const bySections = stepBySections(before, sum, { count, contributorCount }, updates, recipe)
  if (bySections !== undefined) return bySections
  const { rule, averaging, rounded } = recipe
  const { parameters, state } = rule.step(before, sum, count, updates, contributorCount)
  if (rounded) roundEach(parameters, before.parameters, rounded.parameters, updates)
  const average = averaging.average(before.average, parameters, updates, before.parameters, rule.minWeight?.(state))
  if (rounded) {
    roundEach(average, before.average, rounded.average, updates)
    roundEach(state, before.state, rounded.state, updates)
  }
  return { parameters, average, state }
}

/** Count of numbers of a section: those of all its vectors fit into the processor's cache. */
const SECTION = 6144

/**
 * The same for long blocks, section by section, so that each number is read and written in memory once.
 * @returns undefined if the rule does not look at each number alone, or blocks are short
 */
function stepBySections(
  before: Content,
  sum: Blocks,
  { count, contributorCount }: Omit<Batch, 'sum'>,
  updates: number,
  { rule, averaging, rounded }: Recipe
): (Content & Pick<Predictor, 'areFinite'>) | undefined {
  if (!rule.begin || rule.minWeight || sum.every(({ length }) => length < SECTION)) return undefined
  const { states: ofBlock, section, end } = rule.begin(before, count, updates, contributorCount)
  const created = (blocks: Blocks) => blocks.map(({ length }) => takeArray(length))
  const parameters = created(before.parameters)
  const state = created(before.state.slice(0, ofBlock * sum.length))
  const average = averaging.mixInto && created(before.average)
  let areFinite = true
  for (const [k, { length }] of parameters.entries()) {
    const states = state.slice(k * ofBlock, (k + 1) * ofBlock)
    for (let from = 0; from < length; from += SECTION) {
      const part = (block: Float32Array) => block.subarray(from, from + SECTION)
      const copied = (block: Float32Array, previous: Float32Array) => {
        const now = part(block)
        now.set(part(previous))
        return now
      }
      const round = (block: Float32Array, previous: Float32Array, isRounded = false) => {
        if (!(isRounded ? roundChanged(block, part(previous), updates) : isFiniteBlock(block))) areFinite = false
      }
      const weights = copied(parameters[k], before.parameters[k])
      const stateParts = states.map((block, i) => copied(block, before.state[k * ofBlock + i]))
      section(k, from, weights, stateParts, part(sum[k]))
      round(weights, before.parameters[k], rounded?.parameters[k])
      if (average) {
        const mixed = copied(average[k], before.average[k])
        averaging.mixInto?.(mixed, weights, updates)
        round(mixed, before.average[k], rounded?.average[k])
      }
      for (const [i, block] of stateParts.entries())
        round(block, before.state[k * ofBlock + i], rounded?.state[k * ofBlock + i])
    }
  }
  const counters = end()
  const next = { parameters, state: [...state, ...counters] }
  if (average) return { ...next, average, areFinite: areFinite && counters.every(isFiniteBlock) }
  const mixed = averaging.average(before.average, parameters, updates, before.parameters)
  if (rounded) roundEach(mixed, before.average, rounded.average, updates)
  return { ...next, average: mixed }
}

function roundEach(blocks: Blocks, before: Blocks, isRounded: readonly boolean[], updates: number): void {
  for (const [k, block] of blocks.entries()) if (isRounded[k]) roundChanged(block, before[k], updates)
}

type Groups = readonly [parameters: Blocks, average: Blocks, state: Blocks]

/** @returns undefined if the whole blocks must be stepped */
function advanceTouched(before: Content, batch: Batch, updates: number, recipe: Recipe): Content | undefined {
  if (!(recipe.rule.isLocal && recipe.averaging.isLocal)) return undefined
  const stepGroups = ([parameters, average, state]: Groups, sum: Blocks): Groups => {
    const next = step({ parameters, average, state }, sum, batch, updates, recipe)
    return [next.parameters, next.average, next.state]
  }
  const groups: Groups = [before.parameters, before.average, before.state]
  const touched = stepTouched(groups, batch.sum, stepGroups)
  if (touched === undefined) return undefined
  const shared = before instanceof SharedContent ? before : SharedContent.copyOf(before, touched.length)
  return shared.with(touched, touched.short)
}

/** The elements of blocks of this length at the indices, then ones. Shorter blocks are copied. */
export function gathered({ parameters, average, state }: Content, length: number, indices: Int32Array): Content {
  return {
    parameters: gatherEach(parameters, length, indices, 1),
    average: gatherEach(average, length, indices, 1),
    state: gatherEach(state, length, indices, 1)
  }
}

/**
 * Dekel et al., Algorithm 6: w ← rule(sum / count), w̄ ← average, v ← v + 1. Deterministic:
 * replaying the batch on the parent yields the same bits as at the origin.
 */
export function nextPredictor(
  parent: Predictor,
  batch: Batch,
  { origin, incarnation, nonce }: Contributor,
  recipe: Recipe
): Predictor {
  const { updates } = parent.id
  const content = advance(parent.shared ?? parent, batch, updates, recipe)
  const isShared = content instanceof SharedContent
  const digest = isShared
    ? content.digest(recipe.digest)
    : recipe.digest([content.parameters, content.average, content.state])
  const id = { updates: updates + 1, origin, incarnation, nonce, digest }
  return isShared ? new SharedPredictor(id, content) : { id, ...content }
}

/** Predictors whose arrays somebody has for longer than the node, and those whose arrays other predictors have now. */
const lasting = new WeakSet<Predictor>()
const reused = new WeakSet<Predictor>()

/** The arrays of a predictor must not be reused, because the caller reads them later. */
export function keepArrays(predictor: Predictor): void {
  lasting.add(predictor)
}

/** Whether the arrays of a predictor were reused. */
export function isReused(predictor: Predictor): boolean {
  return reused.has(predictor)
}

/** Makes the arrays of a predictor available to others, except those that `held` have as well. */
export function reuseArrays(predictor: Predictor, held: readonly (Predictor | undefined)[]): void {
  if (predictor.shared || lasting.has(predictor) || reused.has(predictor)) return
  const blocksOf = ({ parameters, average, state }: Content) => [...parameters, ...average, ...state]
  const others = new Set(held.flatMap(other => (other ? blocksOf(other) : [])))
  reused.add(predictor)
  for (const block of new Set(blocksOf(predictor))) if (!others.has(block)) giveArray(block)
}

/** The content of a predictor in arrays that no update changes. */
export function copyOfShared(predictor: Predictor): Content {
  const { shared, parameters, average, state } = predictor
  keepArrays(predictor)
  if (shared === undefined) return { parameters, average, state }
  return {
    parameters: parameters.map(block => block.slice()),
    average: average.map(block => block.slice()),
    state: state.map(block => block.slice())
  }
}

/** Whether all numbers are finite. The numbers of shared arrays always are. */
export function isFinitePredictor({ shared, areFinite, parameters, average, state }: Predictor): boolean {
  return (
    shared !== undefined || (areFinite ?? [parameters, average, state].every(blocks => blocks.every(isFiniteBlock)))
  )
}

/** The predictor of a header, from its parent and batch sum. The caller compares the digests. */
export function replayed(parent: Predictor, sum: Sum, { id, count, coverage }: Header, recipe: Recipe): Predictor {
  return nextPredictor(parent, { sum, count, contributorCount: coverage.size }, id, recipe)
}
