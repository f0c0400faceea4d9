/** The interface of a node that learns together with its neighbours: AdmbNode, a checked wrapper of it, or a custom node. */
import type { AdmbNode, AdmbOptions } from '../src/admb/index.js'

/** The interface of a node that learns together with its neighbours. */
export type LearningNode = Pick<
  AdmbNode,
  | 'predictor'
  | 'expected'
  | 'isWaiting'
  | 'holdsSums'
  | 'gradients'
  | 'ownGradients'
  | 'ownSum'
  | 'unused'
  | 'account'
  | 'discarded'
  | 'closedSegments'
  | 'contributorsOf'
  | 'retention'
  | 'keptSums'
  | 'chain'
  | 'lineage'
  | 'neighbourSum'
  | 'neighbourPredictor'
  | 'accumulator'
  | 'added'
  | 'tick'
  | 'connect'
  | 'disconnect'
  | 'taken'
  | 'receive'
  | 'frame'
  | 'takeEffects'
  | 'storage'
  | 'restore'
  | 'recover'
  | 'relearnable'
  | 'waiting'
  | 'closeSegment'
  | 'useRemainder'
  | 'takeJournal'
>

/** Creates the node with that index. Called again, with a new incarnation or identity, when the node restarts. */
export type NodeFactory = (options: AdmbOptions, index: number) => LearningNode
