/**
 * Local steps, for lines on which sums take long: between updates each node steps a copy of the predictor by its own gradients, and
 * contributes the difference instead of gradients. An update averages the copies, weighted by their numbers of inputs (McMahan et
 * al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017, algorithm 1, without rounds). The
 * state of the rule stays at the node.
 *
 * With momentum, an update continues in the direction of the previous updates, as in DiLoCo (Douillard et al., "DiLoCo:
 * Distributed Low-Communication Training of Language Models", 2023, algorithm 1, Nesterov momentum).
 *
 * What a node contributes after n inputs is n times the difference between predictor and copy. The difference includes a
 * part of the next step, as large as the part of its minibatch that is there. So each input is in the sum as soon as it is
 * counted, as gradients are.
 *
 * If the node has not sent all that it has contributed, the rest stays in its copy, which begins at the predictor without it.
 */
import { OptionError } from '../options.js'
import type { Blocks, Layout, RuleState, Unsent, UpdateRule } from '../types.js'

export interface LocalStepsOptions {
  /** b: inputs per update. */
  readonly batch: number
  /** H: steps per update, of all nodes together. */
  readonly steps: number
  /** μ: share of the velocity of updates that each update keeps, 0 ≤ μ < 1. @default 0 */
  readonly momentum?: number
}

/** @throws OptionError for a number of steps that does not fit b, a momentum out of range, and a rule that cannot step copies */
export function checkLocalSteps({ batch, steps, momentum = 0 }: LocalStepsOptions): void {
  if (!Number.isInteger(steps) || steps < 2 || steps > batch) {
    throw new OptionError(`the number of local steps must be an integer from 2 to b, which is ${batch}, not ${steps}`)
  }
  if (!(momentum >= 0 && momentum < 1)) {
    throw new OptionError(`the momentum of local steps must be at least 0 and less than 1, not ${momentum}`)
  }
}

/**
 * The rule of updates: w ← w − d with d = sum/count, the mean of the copies. It has no state. With momentum μ: u ← μ·u + d and
 * w ← w − 0.7·(d + μ·u), and the state is u, shaped like the parameters.
 * @param rule rule of local steps
 */
export function averagingRule(rule: UpdateRule, { batch, steps, momentum = 0 }: LocalStepsOptions): UpdateRule {
  const lengths = (rule.parts ?? [rule]).map(stepLength)
  const difference = Math.sqrt(steps / FEW_CONTRIBUTORS) * Math.min(...lengths)
  const common = {
    name: rule.name,
    description: `${rule.description} local-steps(${steps})`,
    firstSquare: (batch * difference) ** 2
  }
  if (momentum > 0) return { ...common, ...withMomentum(momentum) }
  return {
    ...common,
    stateLayout: () => ({ blocks: [] }),
    isLocal: true,
    begin: (_, count) => ({
      states: 0,
      section(_k, _from, weights, _state, sum) {
        for (let i = 0; i < weights.length; i++) weights[i] -= sum[i] / count
      },
      end: () => []
    }),
    step: ({ parameters }, sum, count) => ({
      parameters: parameters.map((block, k) => block.map((weight, i) => weight - sum[k][i] / count)),
      state: []
    })
  }
}

/** Step size of updates with momentum, that of DiLoCo. Less than 1 also averages successive updates. */
const MOMENTUM_STEP = 0.7

function withMomentum(momentum: number): Pick<UpdateRule, 'stateLayout' | 'step' | 'begin'> {
  return {
    begin: (_, count) => ({
      states: 1,
      section(_k, _from, weights, [velocities], sum) {
        for (let i = 0; i < weights.length; i++) {
          velocities[i] = momentum * velocities[i] + sum[i] / count
          weights[i] -= MOMENTUM_STEP * (sum[i] / count + momentum * velocities[i])
        }
      },
      end: () => []
    }),
    stateLayout: ({ blocks }) => ({ blocks: blocks.map(({ name, length }) => ({ name: `${name}.velocity`, length })) }),
    step({ parameters, state }, sum, count) {
      const velocities = state.map((block, k) => block.map((velocity, i) => momentum * velocity + sum[k][i] / count))
      const stepped = parameters.map((block, k) =>
        block.map((weight, i) => weight - MOMENTUM_STEP * (sum[k][i] / count + momentum * velocities[k][i]))
      )
      return { parameters: stepped, state: velocities }
    }
  }
}

/** A small number of nodes, whose copies have made many steps in the first batch. */
const FEW_CONTRIBUTORS = 8
/** A typical gradient of an input. */
const TYPICAL_GRADIENT = 0.01

/** Length of the rule's first step; of the second one if a warm-up begins at 0. */
function stepLength(rule: UpdateRule): number {
  const { blocks } = rule.stateLayout({ blocks: [{ name: '', length: 1 }] })
  const lengthAfter = (updates: number) => {
    const state = blocks.map(({ length }) => new Float32Array(length))
    const before = { parameters: [new Float32Array(1)], state }
    return Math.abs(rule.step(before, [Float32Array.of(TYPICAL_GRADIENT)], 1, updates).parameters[0][0])
  }
  return lengthAfter(0) || lengthAfter(1) || Number.MIN_VALUE
}

/** A predictor, as far as local steps need it. */
interface Start {
  readonly id: { readonly updates: number }
  readonly parameters: Blocks
}

/** A node's own steps since the current predictor. */
export class LocalSteps {
  readonly #rule: UpdateRule
  readonly #steps: number
  /** Number of gradients in a step. */
  readonly #minibatch: number
  #from: Start | undefined
  /** Parameters at which the copy began. */
  #start: Blocks = []
  /** The copy, and the state of the rule, which later predictors continue. */
  #copy: RuleState = { parameters: [], state: [] }
  /** Number of steps of the copy. */
  #made = 0
  /** Gradients since the last step. */
  #sum: Float32Array[] = []
  #count = 0
  /** Number of inputs since the predictor, and what they have contributed. */
  #inputs = 0
  #contributed: Float32Array[] = []

  /** Blocks of the model. Those after them are carried by predictors. */
  readonly #layout: Layout
  readonly #blocks: number

  /**
   * @param rule rule of local steps
   * @param layout of the predictors' parameters
   */
  constructor(rule: UpdateRule, { batch, steps }: LocalStepsOptions, { blocks }: Layout) {
    this.#rule = rule
    this.#layout = { blocks: blocks.filter(({ isExact }) => !isExact) }
    this.#blocks = this.#layout.blocks.length
    this.#steps = steps
    this.#minibatch = Math.max(1, Math.round(batch / steps))
  }

  /** Number of inputs until the next step, at least 1. */
  get room(): number {
    return this.#minibatch - this.#count
  }

  /**
   * Parameters at which the next gradients are computed.
   * @param predictor the current one; another one starts a new copy
   * @param unsent stays in the copy @default all was sent
   */
  parameters(predictor: Start, unsent?: Unsent): Blocks {
    if (predictor !== this.#from) this.#begin(predictor, unsent)
    return this.#copy.parameters
  }

  /** Blocks to which the learner adds gradients at `parameters`; `added` must follow. */
  get accumulator(): Blocks {
    return this.#sum
  }

  /**
   * The gradients of `count` inputs were added, `room` at most.
   * @param contribution receives what they contribute to the sum of this node
   */
  added(count: number, contribution: Blocks): void {
    this.#count += count
    this.#inputs += count
    const { updates } = (this.#from as Start).id
    const number = updates * this.#steps + Math.min(this.#made, this.#steps - 1)
    const next = this.#rule.step(this.#copy, this.#sum, this.#count, number)
    const share = this.#count / this.#minibatch
    for (let k = 0; k < this.#blocks; k++) this.#contribute(k, next.parameters[k], share, contribution[k])
    if (share < 1) return
    this.#copy = next
    this.#made++
    this.#count = 0
    for (const block of this.#sum) block.fill(0)
  }

  /** Adds to a block what the inputs contribute beyond what they have. @param share part of the next step that counts */
  #contribute(k: number, next: Float32Array, share: number, into: Float32Array): void {
    const [from, copy, contributed] = [this.#start[k], this.#copy.parameters[k], this.#contributed[k]]
    for (let i = 0; i < into.length; i++) {
      const difference = from[i] - copy[i] + share * (copy[i] - next[i])
      const added = Math.fround(this.#inputs * difference - contributed[i])
      contributed[i] += added
      into[i] += added
    }
  }

  #begin(predictor: Start, unsent: Unsent | undefined): void {
    const { length } = predictor.parameters
    const parameters = length > this.#blocks ? predictor.parameters.slice(0, this.#blocks) : predictor.parameters
    if (this.#from === undefined) {
      const { blocks: state } = this.#rule.stateLayout(this.#layout)
      this.#copy = { parameters, state: state.map(({ length }) => new Float32Array(length)) }
      this.#sum = parameters.map(({ length }) => new Float32Array(length))
      this.#contributed = parameters.map(({ length }) => new Float32Array(length))
    }
    this.#from = predictor
    this.#start = unsent
      ? parameters.map((block, k) => block.map((weight, i) => weight - unsent.sum[k][i] / unsent.count))
      : parameters
    this.#copy = { parameters: this.#start, state: this.#copy.state }
    this.#made = 0
    this.#count = 0
    this.#inputs = 0
    for (const block of [...this.#sum, ...this.#contributed]) block.fill(0)
  }
}
