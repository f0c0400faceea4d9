/** Partitions drawn at random: when, how long, in which directions, and who is on which side. */
import type { Random } from '../engine/random.js'
import type { Scenario } from '../scenario.js'
import type { Topology } from '../topology.js'
import { outages } from './outages.js'
import type { Fault } from './schedule.js'

export function drawPartitions(
  scenario: Scenario,
  topology: Topology,
  end: number,
  random: Random,
  into: Fault[]
): void {
  const { partitionShare, partitionTime, partitionMin = partitionTime, oneWayShare } = scenario.faults
  const modes = random.fork('sides')
  const length = (): number =>
    partitionMin + (partitionMin < partitionTime ? random.exponential(partitionTime - partitionMin) : 0)
  for (const { from, to } of outages(partitionShare, partitionTime, end, random, length)) {
    const sides = drawSides(scenario, topology, modes)
    into.push({ time: from, kind: 'partition', sides, oneWay: modes.next() < oneWayShare }, { time: to, kind: 'heal' })
  }
}

/** Side 0 or 1 of each node. */
function drawSides({ nodes, faults }: Scenario, topology: Topology, random: Random): number[] {
  const sides = new Array<number>(nodes).fill(0)
  switch (faults.partitionMode) {
    case 'random':
      return sides.map(() => random.below(2))
    case 'uniform': {
      const order = random.shuffle(sides.map((_, node) => node))
      for (const node of order.slice(0, 1 + random.below(nodes - 1))) sides[node] = 1
      return sides
    }
    case 'isolate':
      sides[random.below(nodes)] = 1
      break
    case 'split':
      for (const node of subtree(topology, 1 + random.below(nodes - 1))) sides[node] = 1
      break
    default:
      faults.partitionMode satisfies never
  }
  // Which side is the lower one matters to a one-way cut.
  return random.below(2) === 0 ? sides : sides.map(side => 1 - side)
}

/** A node and all that hang below it: both it and the rest hang together. */
function subtree({ neighbours, parents }: Topology, root: number): Set<number> {
  const found = new Set([root])
  for (const node of found) for (const next of neighbours[node]) if (next !== parents[node]) found.add(next)
  return found
}
