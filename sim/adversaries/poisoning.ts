/** Nodes that replace their own gradients and follow the protocol otherwise. */
import { AdmbNode, type AdmbOptions } from '../../src/admb/index.js'
import type { Blocks, InfluenceRule } from '../../src/learner/index.js'
import type { Random } from '../engine/random.js'
import { type Adversary, type Setting, table } from './adversary.js'

/** Replaces the sum of `count` gradients. */
type Poison = (sum: readonly Float32Array[], count: number, random: Random) => void

/** Votes for the largest bound, and keeps to it or not. */
function greedy(rule: InfluenceRule, { isActive }: Setting, keeps: boolean): InfluenceRule {
  const { bounded, index } = rule
  return {
    bounded,
    index,
    of: parameters => (keeps || !isActive() ? rule.of(parameters) : new Float32Array(bounded)),
    vote: lost => (isActive() ? 1 : rule.vote(lost))
  }
}

class PoisoningNode extends AdmbNode {
  readonly #sum: readonly Float32Array[]
  readonly #poison: Poison
  readonly #setting: Setting

  constructor(options: AdmbOptions, poison: Poison, setting: Setting, keeps: boolean) {
    const { influence } = options
    super({ ...options, influence: influence && greedy(influence, setting, keeps) })
    this.#sum = options.layout.blocks.map(({ length }) => new Float32Array(length))
    this.#poison = poison
    this.#setting = setting
  }

  override get accumulator(): Blocks {
    return this.#sum
  }

  override added(count: number, first?: number): void {
    const { random, isActive } = this.#setting
    if (isActive()) this.#poison(this.#sum, count, random)
    const true_ = super.accumulator
    for (const [b, block] of this.#sum.entries()) {
      for (let i = 0; i < block.length; i++) true_[b][i] += block[i]
      block.fill(0)
    }
    super.added(count, first)
  }
}

/** @param keeps whether it keeps to the bound of its sum, if there is one */
function poisoning(help: string, poison: Poison, keeps = true): Adversary {
  return { help, create: (options, setting) => new PoisoningNode(options, poison, setting, keeps) }
}

function scaled(factor: number): Poison {
  return sum => {
    for (const block of sum) for (let i = 0; i < block.length; i++) block[i] *= factor
  }
}

function normOf(sum: readonly Float32Array[]): number {
  let squares = 0
  for (const block of sum) for (let i = 0; i < block.length; i++) squares += block[i] * block[i]
  return Math.sqrt(squares)
}

export const poisoners = table({
  'sign-flip': poisoning('sends its gradients with the opposite sign', scaled(-1)),
  large: poisoning('multiplies its gradients by 1,000', scaled(1000)),
  'large-flip': poisoning('multiplies its gradients by −1,000', scaled(-1000)),
  unbounded: poisoning('multiplies its gradients by −1,000, and does not keep to the bound', scaled(-1000), false),
  random: poisoning('replaces its gradients by random ones of ten times their norm', (sum, _count, random) => {
    const norm = normOf(sum)
    for (const block of sum) for (let i = 0; i < block.length; i++) block[i] = random.normal()
    scaled((10 * norm) / normOf(sum))(sum, 1, random)
  }),
  drift: poisoning('replaces its gradients by one that is always the same', (sum, count) => {
    for (const block of sum) block.fill(count)
  })
})
