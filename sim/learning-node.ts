/**
 * What the simulator asks of a node that learns together with its neighbours. AdmbNode is one; a wrapper that watches it, or a
 * researcher's own, takes its place.
 */
import type { AdmbNode, AdmbOptions } from '../src/admb/index.js'

export type LearningNode = Pick<
  AdmbNode,
  | 'predictor'
  | 'gradients'
  | 'ownGradients'
  | 'discarded'
  | 'lineage'
  | 'held'
  | 'accumulator'
  | 'added'
  | 'tick'
  | 'connect'
  | 'disconnect'
  | 'receive'
  | 'frame'
  | 'takeEffects'
  | 'save'
  | 'snapshot'
  | 'restore'
>

export type NodeFactory = (options: AdmbOptions) => LearningNode
