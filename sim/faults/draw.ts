/** Draws the faults of a scenario ahead of its run, each kind from a stream of randomness of its own. */
import type { Random } from '../engine/random.js'
import type { Faults, Scenario } from '../scenario.js'
import type { Fault } from './schedule.js'

/**
 * @param until virtual milliseconds that the run takes
 * @returns faults in the order of their times; all are over at about nine tenths of the run
 */
export function drawFaults({ nodes, faults }: Scenario, until: number, random: Random): Fault[] {
  const end = until * 0.9
  const drawn: Fault[] = []
  if (faults.crashShare > 0) {
    for (let node = 0; node < nodes; node++) crashesOf(node, faults, end, random.fork(`crash ${node}`), drawn)
  }
  if (faults.partitionShare > 0) partitions(nodes, faults, end, random.fork('partition'), drawn)
  return drawn.sort((a, b) => a.time - b.time)
}

function crashesOf(node: number, faults: Faults, end: number, random: Random, into: Fault[]): void {
  const uptime = (faults.downtime * (1 - faults.crashShare)) / faults.crashShare
  for (let time = random.exponential(uptime); time < end; ) {
    into.push({ time, kind: 'crash', node })
    time += random.exponential(faults.downtime)
    into.push({ time: Math.min(time, end), kind: 'restart', node, disk: 'kept' })
    time += random.exponential(uptime)
  }
}

function partitions(nodes: number, faults: Faults, end: number, random: Random, into: Fault[]): void {
  const whole = (faults.partitionTime * (1 - faults.partitionShare)) / faults.partitionShare
  for (let time = random.exponential(whole); time < end; ) {
    const sides = Array.from({ length: nodes }, () => random.below(2))
    into.push({ time, kind: 'partition', sides, oneWay: false })
    time = Math.min(time + faults.partitionTime, end)
    into.push({ time, kind: 'heal' })
    time += random.exponential(whole)
  }
}
