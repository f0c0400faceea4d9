/** A trial once more, with everything that happened written down: each event, and what it changed at which nodes. */
import { AdmbNode, formatId } from '../../src/admb/index.js'
import type { LearningNode } from '../learning-node.js'
import type { Trial } from '../testing/trials.js'
import { checkExactly } from './check.js'

export interface Step {
  /** Virtual milliseconds. */
  readonly time: number
  /** What happened, in words. */
  readonly what: string
  /** The nodes that it changed, as they are then. */
  readonly changed: NodeState[]
}

export interface NodeState {
  readonly node: number
  /** Its index in the order of precedence. */
  readonly label: string
  /** Name of the predictor that it holds. */
  readonly holds: string
  /** Own gradients for it. */
  readonly own: number
  /** Gradients held from neighbours, by node. */
  readonly from: readonly { readonly node: number; readonly count: number }[]
  /** All gradients held: an update follows at b. */
  readonly total: number
}

export interface Replay {
  readonly steps: readonly Step[]
  /** `property: what happened`; undefined if nothing is wrong with the trial. */
  readonly violation: string | undefined
}

export function replay(trial: Trial): Replay {
  const nodes: { readonly label: string; readonly node: LearningNode }[] = []
  const before: string[] = []
  const steps: Step[] = []
  /** Notes what the last event changed: it may have ended the run before anybody could. */
  const conclude = () => {
    const { changed } = steps[steps.length - 1] ?? { changed: [] }
    nodes.forEach(({ label, node }, index) => {
      const state = stateOf(index, label, node, nodes.length)
      const text = JSON.stringify(state)
      if (text !== before[index]) changed.push(state)
      before[index] = text
    })
  }
  const violation = checkExactly(trial, {
    node: (options, index) => {
      const node = new AdmbNode(options)
      nodes[index] = { label: options.self, node }
      return node
    },
    observer: {
      event(time, what) {
        conclude()
        steps.push({ time, what: what(), changed: [] })
      }
    }
  })
  conclude()
  return { steps, violation }
}

function stateOf(index: number, label: string, node: LearningNode, nodes: number): NodeState {
  const from = []
  for (let other = 0; other < nodes; other++) {
    const count = node.neighbourSum(other)?.count ?? 0
    if (count > 0) from.push({ node: other, count })
  }
  const { predictor, ownGradients, gradients } = node
  return { node: index, label, holds: formatId(predictor.id), own: ownGradients, from, total: gradients }
}
