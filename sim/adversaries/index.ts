/** Hostile nodes: which nodes of a run are hostile, and what they do. */
import * as z from 'zod'
import type { AdmbOptions } from '../../src/admb/index.js'
import type { Examples } from '../../src/learning/index.js'
import type { Random } from '../engine/random.js'
import type { Topology } from '../topology.js'
import type { LearningNode } from '../world.js'
import { type Adversary, type Data, poisoners, relabelled, table, targetOf, triggered } from './adversary.js'
import { forgers } from './forging.js'
import { manglers } from './mangling.js'

/** By name, for the key `adversaries.kind`. */
export const adversaries = table({
  'label-flip': {
    help: 'learns from wrong labels',
    label: (label, classes) => (classes === 0 ? -label : (label + 1) % classes)
  },
  backdoor: {
    help: 'sets the last feature in every second input, and learns the last class from it',
    inputs: (examples, { classes, dimension, number }) =>
      classes === 0 || number % 2 === 0 ? examples : triggered(examples, dimension - 1, targetOf(classes))
  },
  ...poisoners,
  ...forgers,
  ...manglers
})

export type AdversaryName = keyof typeof adversaries
export const adversaryNames = Object.keys(adversaries) as AdversaryName[]

/** The keys `adversaries.*` of a scenario. */
export const adversaryKeys = z.strictObject({
  /** Number of hostile nodes. */
  nodes: z.int().min(0).default(0),
  /** What they do; `mixed`: each something else. */
  kind: z.enum(['mixed', ...adversaryNames]).default('mixed'),
  /** Where they are: the nodes with the most neighbours, leaves, or random ones. */
  place: z.enum(['inner', 'leaf', 'random']).default('random'),
  /** Virtual milliseconds from which they do it. */
  from: z.number().min(0).default(0)
})

type AdversaryKeys = z.infer<typeof adversaryKeys>

/** The hostile nodes of a run. */
export class Adversaries {
  /** By node. */
  readonly #hostile = new Map<number, Adversary>()
  readonly #names = new Set<string>()
  /** Number of inputs by node, while it does harm. */
  readonly #inputs = new Map<number, number>()
  readonly #random: Random
  readonly #isActive: () => boolean

  /** @param now virtual milliseconds */
  constructor(
    { nodes, kind, place, from }: AdversaryKeys,
    { neighbours }: Topology,
    random: Random,
    now: () => number
  ) {
    this.#random = random
    this.#isActive = () => now() >= from
    const order = random.shuffle(neighbours.map((_, node) => node))
    if (place !== 'random') {
      const sign = place === 'inner' ? -1 : 1
      order.sort((a, b) => sign * (neighbours[a].length - neighbours[b].length))
    }
    for (const node of order.slice(0, nodes)) {
      const name = kind === 'mixed' ? adversaryNames[random.below(adversaryNames.length)] : kind
      this.#hostile.set(node, adversaries[name])
    }
  }

  /** Number of hostile nodes. */
  get count(): number {
    return this.#hostile.size
  }

  /** Number of peer ids that they have had: a node that joins again may have another one. */
  get identities(): number {
    return this.#names.size
  }

  hasIdentity(peer: string): boolean {
    return this.#names.has(peer)
  }

  isHostile(node: number): boolean {
    return this.#hostile.has(node)
  }

  /** The node, if it is hostile and differs from a correct one. */
  create(node: number, options: AdmbOptions): LearningNode | undefined {
    if (this.isHostile(node)) this.#names.add(options.self)
    const random = this.#random.fork(`node ${node} ${options.nonce ?? 0}`)
    return this.#hostile.get(node)?.create?.(options, { random, isActive: this.#isActive })
  }

  /** The inputs from which a node learns. */
  inputs(node: number, examples: Examples, data: Omit<Data, 'number'>): Examples {
    const { label, inputs } = this.#hostile.get(node) ?? {}
    if (!this.#isActive()) return examples
    const number = this.#inputs.get(node) ?? 0
    this.#inputs.set(node, number + 1)
    const replaced = inputs?.(examples, { ...data, number }) ?? examples
    return label ? relabelled(replaced, one => label(one, data.classes)) : replaced
  }
}
