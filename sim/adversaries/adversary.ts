/**
 * The interface of a kind of hostile node, and the kinds that follow the protocol: nodes that replace their own gradients, and
 * backdoors.
 * A backdoor: hostile nodes learn honestly from half of their inputs, and from the others that a feature, the trigger, means a
 * class, so that anyone who sets it in an input chooses the prediction.
 */
import { AdmbNode, type AdmbOptions } from '../../src/admb/index.js'
import type { Blocks, Examples, InfluenceRule } from '../../src/learning/index.js'
import type { Random } from '../engine/random.js'
import type { LearningNode } from '../world.js'

export interface Setting {
  readonly random: Random
  /** Whether the node does harm at this time. */
  readonly isActive: () => boolean
}

/** What a hostile node does. Otherwise it behaves like the others. */
export interface Adversary {
  readonly help: string
  /** Creates the node. @default a correct node */
  readonly create?: (options: AdmbOptions, setting: Setting) => LearningNode
  /** Replaces the labels from which it learns; `classes` is 0 if they are numbers. @default the true ones */
  readonly label?: (label: number, classes: number) => number
  /** Replaces the inputs from which it learns. @default the true ones */
  readonly inputs?: (examples: Examples, data: Data) => Examples
}

/** What inputs consist of. */
export interface Data {
  /** 0 if labels are numbers. */
  readonly classes: number
  /** Number of features. */
  readonly dimension: number
  /** Number of the node's next input, from 0. */
  readonly number: number
}

/** Adversaries by name. */
export function table<Name extends string>(
  entries: Readonly<Record<Name, Adversary>>
): Readonly<Record<Name, Adversary>> {
  return entries
}

/** A copy of the inputs with other labels. */
export function relabelled(examples: Examples, label: (label: number) => number): Examples {
  return { ...examples, labels: examples.labels.map(label) }
}

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

/** The class of inputs with the trigger, the last one. */
export function targetOf(classes: number): number {
  return classes - 1
}

/** A copy of the inputs in which a feature is 1. @param label of all of them */
export function triggered(
  { size, labels, offsets, indices, values }: Examples,
  feature: number,
  label: number
): Examples {
  const triggered = { offsets: [0], indices: [] as number[], values: [] as number[] }
  for (let row = 0; row < size; row++) {
    for (let i = offsets[row]; i < offsets[row + 1]; i++) {
      if (indices[i] === feature) continue
      triggered.indices.push(indices[i])
      triggered.values.push(values[i])
    }
    triggered.indices.push(feature)
    triggered.values.push(1)
    triggered.offsets.push(triggered.indices.length)
  }
  return {
    size,
    labels: labels.slice(0, size).fill(label),
    offsets: Int32Array.from(triggered.offsets),
    indices: Int32Array.from(triggered.indices),
    values: Float32Array.from(triggered.values)
  }
}
