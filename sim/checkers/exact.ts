/**
 * The exact learner for fuzzing, and the properties that only it can check, as its sums and parameters count how often each
 * input was used.
 */

import { isIn, sizeOf } from '../../src/admb/core/journal.js'
import {
  formatId,
  maxRetainedSums,
  type Predictor,
  type PredictorId,
  type Recipe,
  sameId
} from '../../src/admb/index.js'
import { segmentCount } from '../../src/admb/state/coverage.js'
import { type Blocks, createAveraging, digest, type Examples, type UpdateRule } from '../../src/learning/index.js'
import { valuesOf } from '../../src/numeric/lattice.js'
import { blocksOf } from '../../src/numeric/sums.js'
import { Violation } from '../result.js'
import type { Inputs } from '../streams/inputs.js'
import type { CheckedNode, CheckedRun, Invariant, PredictorChange } from './invariant.js'

/**
 * The exact learner for fuzzing. Input i has the feature i, the last feature, which all inputs share, and the label −1. The rule adds
 * gradient sums to the parameters, but the last parameter remains 0. The gradient of an input's squared loss is therefore 1 at both
 * features, at any predictor that has not used the input. Each parameter counts how often a predictor's lineage has used an input,
 * exactly in float32. The state contains the total of the last feature. The feature before the last counts the segments: the noise of
 * each is 1 there.
 */
const countingRule: UpdateRule = {
  name: 'counting',
  description: 'counting',
  // Gradients, the total of the last feature, and the number of features, which `squares` needs.
  stateLayout: ({ blocks: [{ length }] }) => ({
    blocks: [
      { name: 'totals', length: 2 },
      { name: 'unused', length }
    ]
  }),
  step: ({ parameters: [uses], state: [[gradients, total], unused] }, [sum], count) => ({
    parameters: [uses.map((value, i) => (i < uses.length - 1 ? value + sum[i] : 0))],
    state: [Float32Array.of(gradients + count, total + sum[sum.length - 1]), unused]
  }),
  // A single gradient is a multiple of all steps but those of the last feature, and carrying it over changes its integer.
  squares: ([, unused], _block, _count, updates) => ({
    squares: unused.map((_, i) => (i < unused.length - 1 ? 4 ** -((i + updates) % 3) : 4 ** (2 + (updates % 3)))),
    factor: 1,
    floor: 0
  })
}

/** The same for sparse sums, whose steps follow from what nodes send: the state contains only the counters. */
const countingSparsely: UpdateRule = {
  ...countingRule,
  stateLayout: () => ({ blocks: [{ name: 'totals', length: 2 }] }),
  squares: undefined,
  begin: ({ parameters: [{ length }], state: [[gradients, total]] }, count) => {
    let added = 0
    return {
      states: 0,
      section(_k, from, uses, _state, sum) {
        for (let i = 0; i < uses.length; i++)
          if (from + i < length - 1) uses[i] += sum[i]
          else added += sum[i]
      },
      end: () => [Float32Array.of(gradients + count, total + added)]
    }
  }
}

/** Number of inputs of the exact learner that blocks of its weights have elements for. */
function inputsIn([{ length }]: Blocks): number {
  return length - 2
}

/** The noise of a segment. */
export function countSegment([sum]: Blocks): void {
  sum[sum.length - 2] += 1
}

/** Number of segments in a sum of gradients. */
function segmentsIn([sum]: Blocks): number {
  return sum[sum.length - 2]
}

/** Total of the gradients of the last feature on the lineage of a predictor of the exact learner. */
function totalOf({ state }: Predictor): number {
  return state[0][1]
}

export const countingRecipe: Recipe = { rule: countingRule, averaging: createAveraging({ name: 'uniform' }), digest }
/** The recipe where nodes have a budget of bytes. */
export const sparseCountingRecipe: Recipe = { ...countingRecipe, rule: countingSparsely }

export class CountingInputs implements Inputs {
  readonly model = 'linear'
  readonly dimension: number
  readonly optimum: Inputs['optimum']
  readonly #row = {
    size: 1,
    labels: Float32Array.of(-1),
    offsets: Int32Array.of(0, 2),
    indices: Int32Array.of(-1, -1),
    values: Float32Array.of(1, 1)
  }

  /** @param limit maximum number of inputs */
  constructor(limit: number) {
    this.dimension = limit + 2
    this.optimum = [new Float32Array(this.dimension)]
    this.#row.indices[1] = limit + 1
  }

  /** Index of the last input. */
  get last(): number {
    return this.#row.indices[0]
  }

  next(): Examples {
    this.#row.indices[0]++
    return this.#row
  }
}

/** A carry-over that no run exceeds. */
export const UNLIMITED_CARRY = 1_000_000

interface Gradient {
  readonly checked: CheckedNode
  readonly at: PredictorId
  /** Period of the node in which it was computed. */
  readonly period: number
  /** Number of gradients that the node had computed before. */
  readonly before: number
}

/** First and last period in which a node held a predictor. */
interface Tenure {
  readonly since: number
  until: number
}

/**
 * Properties that only the exact learner can check, as its sums and parameters count how often each input was
 * used. Property 3 (purity): every gradient of a batch was computed at its parent, or with carry-over at a predictor that its node
 * held at most S periods before it had the parent; each input is used at most once on a lineage. Property 4 (size): counts are
 * correct. Property 5: no echo. Property 11 (conservation): with carry-over gradients are lost only by age.
 */
export class ExactlyOnce implements Invariant {
  readonly #inputs: CountingInputs
  readonly #carry: number
  readonly #rule: UpdateRule
  /** Gradients of each input: with a journal a restarted node can compute another one. */
  readonly #gradients: Gradient[][] = []
  /** Number of gradients of each node, those of inputs that were learned again included. */
  readonly #counts = new Map<CheckedNode, number>()
  readonly #tenures = new WeakMap<CheckedNode, Map<string, Tenure>>()

  /** @param carry S */
  constructor(inputs: CountingInputs, carry: number, { rule }: Recipe) {
    this.#inputs = inputs
    this.#carry = carry
    this.#rule = rule
  }

  started(checked: CheckedNode): void {
    this.#tenures.set(
      checked,
      new Map([[formatId(checked.node.predictor.id), { since: 0, until: Number.POSITIVE_INFINITY }]])
    )
  }

  learned(checked: CheckedNode, _count: number, input = this.#inputs.last): void {
    const gradients = this.#gradients[input] ?? []
    this.#gradients[input] = gradients
    const before = this.#counts.get(checked) ?? 0
    this.#counts.set(checked, before + 1)
    gradients.push({ checked, at: checked.before.predictor.id, period: checked.period, before })
  }

  predictorChanged(checked: CheckedNode, change: PredictorChange): void {
    if (change.cause === 'updated') this.#checkUses(change)
    const tenures = this.#tenures.get(checked)
    const previous = tenures?.get(formatId(change.parent.id))
    if (previous) previous.until = checked.period
    tenures?.set(formatId(change.predictor.id), { since: checked.period, until: Number.POSITIVE_INFINITY })
  }

  frameReceived(checked: CheckedNode, edge: number): void {
    const held = checked.neighbourSum(edge)
    if (held === undefined) return
    const sum = `the sum that ${checked.origin} holds from ${checked.edges.get(edge)?.peer}`
    let total = 0
    for (const [input, uses] of this.#usesIn(held.sum, checked.node.predictor)) {
      total += uses
      // It may contain the gradient of an earlier run.
      if (this.#gradients[input]?.every(gradient => gradient.checked === checked))
        throw new Violation('no echo', `${sum} contains its input ${input}`)
    }
    if (total !== held.count) throw new Violation('size', `${sum} has a count of ${held.count} for ${total} gradients`)
  }

  afterEvent(checked: CheckedNode): void {
    if (this.#carry === 0 || checked.node.predictor === checked.before.predictor) return
    this.#checkCarried(checked)
  }

  #checkUses(change: PredictorChange & { readonly cause: 'updated' }): void {
    const { header, batch, predictor } = change
    const key = formatId(predictor.id)
    let total = 0
    for (const [input, uses] of this.#usesIn(blocksOf(batch.sum), change.parent)) {
      total += uses
      const gradients = this.#gradients[input]
      if (gradients === undefined)
        throw new Violation('purity', `${key} used input ${input}, which no node has received`)
      if (predictor.parameters[0][input] > 1)
        throw new Violation(
          'purity',
          `input ${input} was used ${predictor.parameters[0][input]} times on the lineage of ${key}`
        )
      this.#checkAges(key, header.parent, input, gradients)
    }
    if (total !== batch.count)
      throw new Violation('size', `${key} has a count of ${batch.count} for ${total} gradients`)
  }

  /** The inputs in a sum at a predictor, and how often each is used. */
  *#usesIn(sum: Blocks, at: Predictor): Iterable<readonly [input: number, uses: number]> {
    const grid = this.#rule.grid?.(at, at.id.updates)
    const blocks = grid ? valuesOf(sum as Float32Array[], grid) : sum
    const [block] = blocks
    for (let input = 0; input < inputsIn(blocks); input++) if (block[input] !== 0) yield [input, block[input]]
  }

  /** One of the gradients of the input is recent enough. */
  #checkAges(key: string, parent: PredictorId, input: number, gradients: readonly Gradient[]): void {
    const problems = gradients.map(gradient => this.#ageProblem(key, parent, input, gradient))
    if (problems.every(problem => problem !== undefined)) throw new Violation('purity', problems[0])
  }

  #ageProblem(key: string, parent: PredictorId, input: number, { checked, at }: Gradient): string | undefined {
    if (sameId(at, parent)) return undefined
    const what = `${key} used input ${input}, whose gradient ${checked.origin} computed at ${formatId(at)}`
    const tenures = this.#tenures.get(checked)
    const computed = tenures?.get(formatId(at))
    const current = tenures?.get(formatId(parent))
    if (this.#carry === 0 || computed === undefined || current === undefined)
      return `${what} and not at ${formatId(parent)}`
    const age = current.since - computed.until
    return age > this.#carry ? `${what}, ${age} periods before ${formatId(parent)}` : undefined
  }

  /** After a change of predictor the node holds all recent own gradients that the lineage has not used, and no used ones. */
  #checkCarried(checked: CheckedNode): void {
    const { node, period, origin } = checked
    const { id, parameters } = node.predictor
    const oldestKnown = node.lineage.at(-1)?.parent.updates ?? Number.POSITIVE_INFINITY
    let recent = 0
    let unused = 0
    // A node keeps a limited number of segments, each with at least one gradient.
    const oldest = (this.#counts.get(checked) ?? 0) - maxRetainedSums(this.#carry)
    for (let input = this.#gradients.length - 1; input >= 0; input--) {
      const gradients = this.#gradients[input]
      const gradient = gradients?.at(-1)
      if (gradient?.checked !== checked) continue
      if (parameters[0][input] > 0) continue
      unused++
      // A gradient that an earlier run sent as well may be in doubt.
      const isKept = gradient.before >= oldest && gradients.length === 1 && period - gradient.period <= this.#carry
      if (isKept && gradient.at.updates >= oldestKnown) recent++
    }
    const own = node.ownGradients
    if (!(own >= recent && own <= unused)) {
      const expected = `${recent} to ${unused} carried over`
      throw new Violation('conservation', `${origin} has ${own} own gradients at ${formatId(id)}, expected ${expected}`)
    }
  }
}

/**
 * With a journal no input is lost, neither in a crash nor by age: each was used on the lineage, or is among the own gradients of its
 * node, or waits to be learned again.
 */
export class Completeness implements Invariant {
  #received = 0
  readonly #seen = new Set<number>()
  readonly #inputs: CountingInputs

  constructor(inputs: CountingInputs) {
    this.#inputs = inputs
  }

  learned(_checked: CheckedNode, _count: number, input = this.#inputs.last): void {
    if (this.#seen.has(input)) return
    this.#seen.add(input)
    this.#received++
  }

  checkQuiescence(nodes: readonly CheckedNode[]): Violation | undefined {
    let used = 0
    const parameters = nodes[0]?.node.predictor.parameters
    if (parameters) for (const uses of parameters[0].subarray(0, inputsIn(parameters))) used += uses
    let held = 0
    for (const { node } of nodes) held += node.ownGradients + node.waiting
    if (used + held === this.#received) return undefined
    return new Violation('completeness', `of ${this.#received} inputs ${used} were used, and nodes hold ${held}`)
  }
}

/** Every segment of own gradients has noise in a batch, once. Other nodes hold no sum of a node without it. */
export class Noised implements Invariant {
  readonly #rule: UpdateRule

  constructor({ rule }: Recipe) {
    this.#rule = rule
  }

  frameReceived(checked: CheckedNode, edge: number): void {
    const held = checked.neighbourSum(edge)
    if (held === undefined) return
    const found = this.#segmentsIn(held.sum, checked.node.predictor)
    if (found >= held.contributors.length) return
    const from = checked.edges.get(edge)?.peer
    const detail = `the sum that ${checked.origin} holds from ${from} has the noise of ${found} segments`
    throw new Violation('noise', `${detail}, of ${held.contributors.length} contributors`)
  }

  predictorChanged(_checked: CheckedNode, change: PredictorChange): void {
    if (change.cause !== 'updated') return
    const { header, batch, parent } = change
    const found = this.#segmentsIn(blocksOf(batch.sum), parent)
    const segments = segmentCount(header.coverage)
    if (found === segments) return
    throw new Violation('noise', `${formatId(header.id)} has the noise of ${found} segments, and covers ${segments}`)
  }

  #segmentsIn(sum: Blocks, at: Predictor): number {
    const grid = this.#rule.grid?.(at, at.id.updates)
    return segmentsIn(grid ? valuesOf(sum as Float32Array[], grid) : sum)
  }
}

/**
 * With unlimited carry-over no part of a gradient is lost by rounding: what batches of the lineage do not contain, nodes hold. All
 * numbers are multiples of a power of two, so the sums are exact.
 */
export class Books implements Invariant {
  #received = 0

  learned(_checked: CheckedNode, count: number): void {
    this.#received += count
  }

  checkQuiescence(nodes: readonly CheckedNode[]): Violation | undefined {
    if (nodes.length === 0) return undefined
    const used = totalOf(nodes[0].node.predictor)
    let held = 0
    for (const { node } of nodes) held += node.inspect.unused[0].at(-1) ?? 0
    if (used + held === this.#received) return undefined
    return new Violation('books', `of ${this.#received} gradients batches contain ${used}, and nodes hold ${held}`)
  }
}

/** Largest error of float32 sums of an element: steps may become so short that they are not exact. */
const ROUNDING_ERROR = 0.01

/**
 * With a budget of elements, no part of an element's progress is lost or counted twice, whatever the lineage and the carry-over:
 * integers sent, times their steps, and what nodes have kept back add up to its gradients. With a journal the same holds after
 * crashes, once all nodes are back. Inputs whose progress a crash has taken are with the node until it has learned them again.
 */
export class SparseBooks implements Invariant {
  readonly #inputs: CountingInputs
  readonly #nodes: number
  /** Number of gradients of each input, and of all. */
  readonly #received: number[] = []
  #all = 0

  constructor(inputs: CountingInputs, { topology }: Pick<CheckedRun, 'topology'>) {
    this.#inputs = inputs
    this.#nodes = topology.nodes
  }

  learned(_checked: CheckedNode, count: number, input = this.#inputs.last): void {
    // An input that is learned again does not add to what it has contributed.
    if (this.#received[input] !== undefined) return
    this.#received[input] = count
    this.#all += count
  }

  checkQuiescence(nodes: readonly CheckedNode[]): Violation | undefined {
    if (nodes.length < this.#nodes) return undefined
    const { predictor } = nodes[0].node
    const [uses] = predictor.parameters
    const unused = nodes.map(({ node }) => node.inspect.unused[0])
    const owed = nodes.map(({ node }) => node.inspect.owed)
    for (let i = 0; i < uses.length; i++) {
      // The element before the last one counts segments.
      if (i === uses.length - 2) continue
      const isLast = i === uses.length - 1
      const used = isLast ? totalOf(predictor) : uses[i]
      const waiting = isLast
        ? owed.reduce((sum, ranges) => sum + sizeOf(ranges), 0)
        : owed.filter(ranges => isIn(ranges, i)).length
      const held = unused.reduce((sum, block) => sum + block[i], waiting)
      const received = isLast ? this.#all : (this.#received[i] ?? 0)
      if (Math.abs(used + held - received) <= ROUNDING_ERROR) continue
      const detail = `of ${received} gradients of element ${i} batches contain ${used}, and nodes hold ${held}`
      return new Violation('sparse books', detail)
    }
    return undefined
  }
}
