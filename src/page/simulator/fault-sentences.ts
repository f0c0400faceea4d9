/** Faults of a run as sentences. */
import type { Fault } from '../../../sim/faults/schedule.js'
import { formatCount } from '../format.js'

export function describeFault(fault: Fault): string {
  switch (fault.kind) {
    case 'crash':
      return `node ${fault.node} crashed`
    case 'restart':
      return `node ${fault.node} restarted${RESTARTS[fault.disk]}`
    case 'pause':
      return `node ${fault.node} was paused`
    case 'resume':
      return `node ${fault.node} continued`
    case 'hang':
      return `node ${fault.node} hung and left the tree`
    case 'unhang':
      return `node ${fault.node} returned to the tree`
    case 'join':
      return `node ${fault.node} joined`
    case 'leave':
      return `node ${fault.node} left`
    case 'partition': {
      const other = fault.sides.filter(side => side > 0).length
      const sides = `${formatCount(other)} of ${formatCount(fault.sides.length)} nodes`
      return `a partition cut off ${sides}${fault.oneWay ? ', in one direction' : ''}`
    }
    case 'heal':
      return 'the partition healed'
    case 'clog':
      return `the link from node ${fault.from} to node ${fault.to} was clogged`
    case 'unclog':
      return `the link from node ${fault.from} to node ${fault.to} was free again`
    case 'link':
      return `a link between nodes ${fault.from} and ${fault.to} was added`
    case 'unlink':
      return `node ${fault.from} closed its link to node ${fault.to}`
    default:
      return fault satisfies never
  }
}

const RESTARTS = {
  kept: '',
  lost: ' with an empty disk, as a new node',
  reset: ' without its state'
} as const
