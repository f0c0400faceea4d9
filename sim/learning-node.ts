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
  | 'neighbourSum'
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

/** Makes the node of that number among all; again, with a new incarnation or identity, when it starts again. */
export type NodeFactory = (options: AdmbOptions, index: number) => LearningNode
