/** Draws the faults of a scenario ahead of its run, each kind from a stream of randomness of its own. */
import type { Random } from '../engine/random.js'
import type { Scenario } from '../scenario.js'
import type { Topology } from '../topology.js'
import { outages } from './outages.js'
import { drawPartitions } from './partitions.js'
import type { Fault } from './schedule.js'

/**
 * @param until virtual milliseconds that the run takes
 * @returns faults in the order of their times; all are over at about nine tenths of the run
 */
export function drawFaults(scenario: Scenario, topology: Topology, until: number, random: Random): Fault[] {
  const { warmup } = scenario
  const end = (until - warmup) * 0.9
  const drawn: Fault[] = []
  for (let node = 0; node < scenario.nodes; node++) {
    crashes(node, scenario, end, random, drawn)
    pauses(node, scenario, end, random, drawn)
    absences(node, scenario, end, random, drawn)
  }
  drawPartitions(scenario, topology, end, random.fork('partition'), drawn)
  clogs(scenario, topology, end, random, drawn)
  return drawn.map(fault => ({ ...fault, time: fault.time + warmup })).sort((a, b) => a.time - b.time)
}

function crashes(node: number, { faults }: Scenario, end: number, random: Random, into: Fault[]): void {
  const times = random.fork(`crash ${node}`)
  const kinds = random.fork(`crash kind ${node}`)
  const { crashShare, downtime, diskLossShare, silentShare } = faults
  for (const { from, to } of outages(crashShare, downtime, end, times, () => times.exponential(downtime))) {
    const disk = kinds.next() < diskLossShare ? 'lost' : 'kept'
    const silent = kinds.next() < silentShare
    into.push({ time: from, kind: 'crash', node, ...(silent && { silent }) }, { time: to, kind: 'restart', node, disk })
  }
}

function pauses(node: number, { faults }: Scenario, end: number, random: Random, into: Fault[]): void {
  const times = random.fork(`pause ${node}`)
  const { pauseShare, pauseTime } = faults
  for (const { from, to } of outages(pauseShare, pauseTime, end, times, () => times.exponential(pauseTime))) {
    into.push({ time: from, kind: 'pause', node }, { time: to, kind: 'resume', node })
  }
}

function absences(node: number, { faults }: Scenario, end: number, random: Random, into: Fault[]): void {
  const times = random.fork(`away ${node}`)
  const { awayShare, awayTime } = faults
  for (const { from, to } of outages(awayShare, awayTime, end, times, () => times.exponential(awayTime))) {
    into.push({ time: from, kind: 'leave', node }, { time: to, kind: 'join', node })
  }
}

/** Of the tree's edges; where the tree is the overlay's to choose, of any two nodes. */
function clogs(
  { faults, nodes }: Scenario,
  { neighbours, links }: Topology,
  end: number,
  random: Random,
  into: Fault[]
): void {
  const { clogShare, clogTime } = faults
  if (clogShare === 0) return
  for (let from = 0; from < nodes; from++) {
    const others = links === undefined ? neighbours[from] : neighbours.keys()
    for (const to of others) {
      if (to === from) continue
      const times = random.fork(`clog ${from} ${to}`)
      for (const { from: at, to: until } of outages(clogShare, clogTime, end, times, () =>
        times.exponential(clogTime)
      )) {
        into.push({ time: at, kind: 'clog', from, to }, { time: until, kind: 'unclog', from, to })
      }
    }
  }
}
