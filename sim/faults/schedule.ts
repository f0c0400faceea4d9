/**
 * What goes wrong in a run and when, drawn ahead as plain data: so every algorithm meets the same faults, and a schedule can
 * be printed, replayed and shortened.
 */
import type { Random } from '../engine/random.js'
import type { Scenario } from '../scenario.js'

export type Fault =
  | { readonly time: number; readonly kind: 'crash' | 'restart'; readonly node: number }
  /** From now on only nodes of the same side hear one another; side 0 or 1 of each node. */
  | { readonly time: number; readonly kind: 'partition'; readonly sides: Uint8Array }
  | { readonly time: number; readonly kind: 'heal' }

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

function crashesOf(node: number, faults: Scenario['faults'], end: number, random: Random, into: Fault[]): void {
  const uptime = (faults.downtime * (1 - faults.crashShare)) / faults.crashShare
  for (let time = random.exponential(uptime); time < end; ) {
    into.push({ time, kind: 'crash', node })
    time += random.exponential(faults.downtime)
    into.push({ time: Math.min(time, end), kind: 'restart', node })
    time += random.exponential(uptime)
  }
}

function partitions(nodes: number, faults: Scenario['faults'], end: number, random: Random, into: Fault[]): void {
  const whole = (faults.partitionTime * (1 - faults.partitionShare)) / faults.partitionShare
  for (let time = random.exponential(whole); time < end; ) {
    const sides = Uint8Array.from({ length: nodes }, () => random.below(2))
    into.push({ time, kind: 'partition', sides })
    time = Math.min(time + faults.partitionTime, end)
    into.push({ time, kind: 'heal' })
    time += random.exponential(whole)
  }
}
