/**
 * Draws the fault schedule of a scenario, with a random generator for each kind of fault, and validates schedules from files, such
 * as those that `admb sim fuzz` writes.
 */

import * as z from 'zod'
import type { Random } from '../engine/random.js'
import { type Scenario, ScenarioError } from '../scenario.js'
import type { Topology } from '../topology.js'
import type { Fault } from './schedule.js'

/**
 * @param until end of the run in virtual milliseconds
 * @returns faults in order of time; all end after at most nine tenths of the run
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

/** Clogs edges of the tree or, on `overlay`, whose tree is not known in advance, links between any two nodes. */
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
      for (const { from: start, to: until } of outages(clogShare, clogTime, end, times, () =>
        times.exponential(clogTime)
      )) {
        into.push({ time: start, kind: 'clog', from, to }, { time: until, kind: 'unclog', from, to })
      }
    }
  }
}

/** In virtual milliseconds. */
interface Outage {
  readonly from: number
  readonly to: number
}

/**
 * Random outages, with exponentially distributed times between them.
 * @param share average share of time in an outage
 * @param mean mean length
 * @param length draws the length of an outage
 */
function* outages(share: number, mean: number, end: number, random: Random, length: () => number): Generator<Outage> {
  if (share === 0) return
  const between = (mean * (1 - share)) / share
  for (let time = random.exponential(between); time < end; time += random.exponential(between)) {
    const from = time
    time += length()
    yield { from, to: Math.min(time, end) }
  }
}

function drawPartitions(scenario: Scenario, topology: Topology, end: number, random: Random, into: Fault[]): void {
  const { partitionShare, partitionTime, partitionMin = partitionTime, oneWayShare } = scenario.faults
  const sideDraws = random.fork('sides')
  const length = (): number =>
    partitionMin + (partitionMin < partitionTime ? random.exponential(partitionTime - partitionMin) : 0)
  for (const { from, to } of outages(partitionShare, partitionTime, end, random, length)) {
    const sides = drawSides(scenario, topology, sideDraws)
    into.push(
      { time: from, kind: 'partition', sides, oneWay: sideDraws.next() < oneWayShare },
      { time: to, kind: 'heal' }
    )
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
  // The sides are asymmetric in a one-way partition.
  return random.below(2) === 0 ? sides : sides.map(side => 1 - side)
}

/** A node and its descendants. Both they and the other nodes are connected. */
function subtree({ neighbours, parents }: Topology, root: number): Set<number> {
  const found = new Set([root])
  for (const node of found) for (const next of neighbours[node]) if (next !== parents[node]) found.add(next)
  return found
}

/** @param nodes number of nodes of the scenario */
function schemaOf(nodes: number) {
  const time = z.number().min(0)
  const node = z
    .int()
    .min(0)
    .max(nodes - 1)
  const link = { from: node, to: node }
  const fault = <K extends Fault['kind'], S extends z.ZodRawShape>(kind: K, fields: S) =>
    z.strictObject({ time, kind: z.literal(kind), ...fields })
  return z.discriminatedUnion('kind', [
    fault('crash', { node, silent: z.boolean().optional() }),
    fault('restart', { node, disk: z.enum(['kept', 'lost', 'reset']) }),
    fault('pause', { node }),
    fault('resume', { node }),
    fault('join', { node }),
    fault('leave', { node }),
    fault('partition', { sides: z.array(z.int().min(0)), oneWay: z.boolean() }),
    fault('heal', {}),
    fault('clog', { ...link, drips: z.boolean().optional() }),
    fault('unclog', { ...link, drips: z.boolean().optional() }),
    fault('hang', { node }),
    fault('unhang', { node }),
    fault('link', link),
    fault('unlink', link)
  ]) satisfies z.ZodType<Fault>
}

/**
 * @param nodes number of nodes of the scenario
 * @param source named in errors
 * @throws ScenarioError
 */
export function parseFaults(value: unknown, nodes: number, source: string): Fault[] {
  const parsed = z.array(schemaOf(nodes)).safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const [index, ...path] = issue.path
  const given = Array.isArray(value) && typeof index === 'number' ? ` (given: ${JSON.stringify(value[index])})` : ''
  const key =
    index === undefined ? 'faults' : `faults[${String(index)}]${path.map(name => `.${String(name)}`).join('')}`
  throw new ScenarioError(`${source}: ${key}: ${issue.message}${given}`)
}
