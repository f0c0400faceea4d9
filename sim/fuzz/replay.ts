/** Replays a trial and records every event with the nodes that it changed. */
import { AdmbNode, formatId } from '../../src/admb/index.js'
import type { LearningNode } from '../learning-node.js'
import type { Trial } from '../testing/trials.js'
import { checkExactly } from '../testing/trials.js'

export interface Step {
  /** Virtual milliseconds. */
  readonly time: number
  /** Description of the event. */
  readonly what: string
  /** New states of the nodes that the event changed. */
  readonly changed: NodeState[]
}

export interface NodeState {
  readonly node: number
  /** Identity of the node, which decides precedence. */
  readonly label: string
  /** Id of its current predictor. */
  readonly holds: string
  /** Own gradients at this predictor. */
  readonly own: number
  /** Gradients held from neighbours, by node. */
  readonly from: readonly { readonly node: number; readonly count: number }[]
  /** All usable gradients; the node updates at b. */
  readonly total: number
}

export interface Replay {
  readonly steps: readonly Step[]
  /** `property: detail`; undefined if the trial violates no property. */
  readonly violation: string | undefined
}

export function replay(trial: Trial): Replay {
  const nodes: { readonly label: string; readonly node: LearningNode }[] = []
  const before: string[] = []
  const steps: Step[] = []
  /** Adds the changes by the last event, at the next event or at the end, since a violation skips `afterEvent`. */
  const recordChanges = () => {
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
      beforeEvent(time, describe) {
        recordChanges()
        steps.push({ time, what: describe(), changed: [] })
      }
    }
  })
  recordChanges()
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
