/** The interface of a kind of hostile node. */
import type { AdmbOptions } from '../../src/admb/index.js'
import type { Examples } from '../../src/learner/index.js'
import type { Random } from '../engine/random.js'
import type { LearningNode } from '../learning-node.js'

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
