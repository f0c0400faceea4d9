/**
 * Compares each node of a simulated run with the specification (`sim/reference/admb.ts`) after every event. The specified node is told
 * what happened, and must then hold the same predictor to the last bit, and the same gradients.
 */

import { CountingInputs, countingRecipe } from '../../sim/checkers/exact.js'
import { type Message, type Predictor, SpecifiedNode, start } from '../../sim/reference/admb.js'
import { simulate } from '../../sim/simulate.js'
import type { FixedKeys, Trial } from '../../sim/testing/trials.js'
import {
  AdmbNode,
  type AdmbOptions,
  type Effect,
  formatId,
  type Header,
  type Predictor as Real,
  type Recipe
} from '../../src/admb/index.js'
import { advance } from '../../src/admb/state/predictor.js'
import { type Sum, sumOf } from '../../src/numeric/sums.js'

/** Parameters, running average and state, as bits. */
type Content = Pick<Real, 'parameters' | 'average' | 'state'>
type Specified = SpecifiedNode<number, Content>

export interface Refinement {
  /** Creates nodes that are compared. */
  readonly node: (options: AdmbOptions) => AdmbNode
  /** Number of comparisons so far, updates among them, and jumps to a predictor that another node has made. */
  readonly counts: { comparisons: number; updates: number; adoptions: number }
}

/** Sums of float32 numbers in frames of one piece, a fixed b, no journal: what the specification describes. */
export const SPECIFIED = {
  algorithm: 'admb',
  journal: false,
  sums: 'exact',
  trust: { bounded: false },
  fragmentBytes: 2 ** 30
} satisfies FixedKeys

/** Runs a trial until the network is quiescent. @throws Error `refinement: …` at the first difference */
export function checkRefinement({ scenario, faults }: Trial, Node = AdmbNode, run = simulate): Refinement['counts'] {
  const inputs = new CountingInputs(scenario.inputs)
  const { node, counts } = refinementOf(Node, inputs, countingRecipe, advance)
  const specified = { ...scenario, checks: false, batchMax: undefined, localSteps: undefined }
  run(specified, { node, inputs, recipe: countingRecipe, quiesce: true, faults })
  return counts
}

/**
 * @param inputs those of the run
 * @param advance computes the next predictor, as `src/admb/state/predictor.ts` does
 */
export function refinementOf(
  Node: typeof AdmbNode,
  inputs: CountingInputs,
  recipe: Recipe,
  advance: (before: Content, batch: { sum: Sum; count: number }, updates: number, recipe: Recipe) => Content
): Refinement {
  const messages = new WeakMap<Uint8Array, { readonly message: Message<number, Content>; readonly hasSum: boolean }>()
  const predictors = new Map<string, Predictor<number, Content>>()
  const counts = { comparisons: 0, updates: 0, adoptions: 0 }
  const known = (id: Real['id']) => {
    const found = predictors.get(formatId(id))
    if (found === undefined) throw new Error(`refinement: nobody has made ${formatId(id)}`)
    return found
  }

  class RefinedNode extends Node {
    readonly #spec: Specified
    readonly #options: AdmbOptions
    #seen = 0

    constructor(options: AdmbOptions) {
      super(options)
      this.#options = options
      const { self, incarnation, nonce = 0, batch, carry = 0, initial } = options
      const key = formatId(initial.id)
      const first = predictors.get(key) ?? start<number, Content>(initial)
      predictors.set(key, first)
      this.#spec = new SpecifiedNode({ peer: self, incarnation, nonce }, first, {
        batch: batch as number,
        carry,
        step: ({ content, updates }, gradients) => {
          const sum = content.parameters.map(block => new Float32Array(block.length))
          for (const { input } of gradients) {
            sum[0][input]++
            sum[0][sum[0].length - 1]++
          }
          return advance(content, { sum: sumOf(sum), count: gradients.size }, updates, recipe)
        }
      })
    }

    override added(...[count, first, mark]: Parameters<AdmbNode['added']>): void {
      this.#spec.learn(inputs.last)
      super.added(count, first, mark)
      this.#follow()
    }

    override tick(elapsed?: number): void {
      this.#spec.tick()
      super.tick(elapsed)
      this.#follow()
    }

    override connect(edge: number, session: number, peer: string): void {
      super.connect(edge, session, peer)
      this.#spec.connect(edge)
      this.#follow()
    }

    override disconnect(edge: number): void {
      this.#spec.disconnect(edge)
      super.disconnect(edge)
      this.#follow()
    }

    override downloadEnded(...[stored, from]: Parameters<AdmbNode['downloadEnded']>): void {
      super.downloadEnded(stored, from)
      this.#follow()
    }

    override restore(bytes: Uint8Array): void {
      super.restore(bytes)
      if (this.predictor.id.updates > 0) this.#spec.restore(known(this.predictor.id))
      this.#compare()
    }

    override useRemainder(): void {
      super.useRemainder()
      this.#follow(true)
    }

    override receive(edge: number, bytes: Uint8Array): void {
      const before = this.inspect.exchanged(edge)?.received
      super.receive(edge, bytes)
      const found = messages.get(bytes)
      const isTaken = this.inspect.exchanged(edge)?.received !== before
      this.#follow(false, isTaken && found?.hasSum ? () => this.#spec.keep(edge, found.message) : undefined)
    }

    override frame(edge: number): Uint8Array | undefined {
      const before = this.inspect.exchanged(edge)?.lastSum
      const message = this.#spec.message(edge)
      const bytes = super.frame(edge)
      const hasSum = this.inspect.exchanged(edge)?.lastSum !== before
      if (hasSum) this.#spec.sent()
      if (bytes !== undefined) messages.set(bytes, { message, hasSum })
      return bytes
    }

    override takeEffects(): Effect[] {
      this.#seen = 0
      return super.takeEffects()
    }

    /** The specified node does what this one did. @param keep takes the sum of a frame, between adoption and update */
    #follow(remains = false, keep: () => void = () => undefined): void {
      let isKept = false
      const keepOnce = () => {
        if (!isKept) keep()
        isKept = true
      }
      const { effects } = this.inspect
      for (; this.#seen < effects.length; this.#seen++) {
        const effect = effects[this.#seen]
        if (effect.kind === 'adopted') this.#adopt(effect.predictor)
        if (effect.kind !== 'updated') continue
        keepOnce()
        this.#spec.update(remains)
        this.#made(effect.predictor, effect.header)
      }
      keepOnce()
      this.#compare()
    }

    #adopt({ id }: Real): void {
      counts.adoptions++
      const oldest = this.lineage.at(-1)?.parent.updates ?? id.updates
      if (!this.#spec.adopt(known(id), oldest)) throw new Error(`refinement: ${formatId(id)} is no better`)
    }

    #made({ id }: Real, { count }: Header): void {
      counts.updates++
      const { predictor } = this.#spec
      const used = predictor.used.size - (predictor.parent?.used.size ?? 0)
      if (used !== count) throw new Error(`refinement: ${formatId(id)} has ${count} gradients, specified are ${used}`)
      predictors.set(formatId(id), predictor)
    }

    #compare(): void {
      counts.comparisons++
      const { predictor, own, available } = this.#spec
      const name = `${this.#options.self} at ${formatId(this.predictor.id)}`
      if (predictors.get(formatId(this.predictor.id)) !== predictor)
        throw new Error(`refinement: ${name}, specified is one with ${predictor.updates} updates`)
      const pairs = [
        [this.predictor.parameters, predictor.content.parameters],
        [this.predictor.average, predictor.content.average],
        [this.predictor.state, predictor.content.state]
      ]
      for (const [held, specified] of pairs) {
        for (const [b, block] of specified.entries()) {
          if (held[b] === block) continue
          if (block.some((value, i) => value !== held[b][i])) throw new Error(`refinement: ${name} has other numbers`)
        }
      }
      if (this.ownGradients !== own.size)
        throw new Error(`refinement: ${name} holds ${this.ownGradients} own gradients, specified are ${own.size}`)
      if (this.gradients !== available.size)
        throw new Error(`refinement: ${name} holds ${this.gradients} gradients, specified are ${available.size}`)
    }
  }
  return { node: options => new RefinedNode(options), counts }
}
