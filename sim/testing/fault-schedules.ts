/**
 * Arbitraries of fault schedules: crashes, pauses, absences, partitions, clogs, shortcuts and resets, each with its end. A schedule
 * remains valid if a fault is removed, or with fewer nodes or a shorter run, so that schedules shrink well.
 */
import fc from 'fast-check'
import type { Fault } from '../faults/schedule.js'

/** The run that a schedule is for. */
export interface Extent {
  readonly nodes: number
  /** End of the faults in virtual milliseconds. */
  readonly until: number
}

/** A fault and its end, relative to the number of nodes and the length of the run. */
type LooseFault = (extent: Extent) => readonly Fault[]

/** Thousandths of the run. */
const start = fc.nat(999)
const length = fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 400 }))
const node = fc.nat(1000)

function between<T>(
  fields: { readonly [K in keyof T]: fc.Arbitrary<T[K]> },
  make: (from: number, to: number, fields: T, nodes: number) => readonly Fault[]
): fc.Arbitrary<LooseFault> {
  return fc.tuple(start, length, fc.record(fields) as fc.Arbitrary<T>).map(
    ([from, span, values]): LooseFault =>
      ({ nodes, until }) =>
        make(round((from / 1000) * until), round(((from + span) / 1000) * until), values, nodes)
  )
}

const outage = between(
  { node, disk: fc.constantFrom('kept' as const, 'lost' as const, 'reset' as const), silent: fc.boolean() },
  (from, to, { node: which, disk, silent }, nodes) => [
    { time: from, kind: 'crash', node: which % nodes, ...(silent && { silent }) },
    { time: to, kind: 'restart', node: which % nodes, disk }
  ]
)
const pause = between({ node }, (from, to, { node: which }, nodes) => [
  { time: from, kind: 'pause', node: which % nodes },
  { time: to, kind: 'resume', node: which % nodes }
])
const hang = between({ node }, (from, to, { node: which }, nodes) => [
  { time: from, kind: 'hang', node: which % nodes },
  { time: to, kind: 'unhang', node: which % nodes }
])
const absence = between({ node }, (from, to, { node: which }, nodes) => [
  { time: from, kind: 'leave', node: which % nodes },
  { time: to, kind: 'join', node: which % nodes }
])
const partition = between(
  {
    sides: fc.oneof(
      node.map(one => 2 ** (one % 24)),
      fc.nat(2 ** 24 - 1)
    ),
    oneWay: fc.boolean()
  },
  (from, to, { sides, oneWay }, nodes) => [
    { time: from, kind: 'partition', sides: Array.from({ length: nodes }, (_, i) => (sides >> (i % 24)) & 1), oneWay },
    { time: to, kind: 'heal' }
  ]
)
const clog = between({ a: node, b: node, drips: fc.boolean() }, (from, to, { a, b, drips }, nodes) => {
  const link = { from: a % nodes, to: b % nodes, ...(drips && { drips }) }
  return [
    { time: from, kind: 'clog', ...link },
    { time: to, kind: 'unclog', ...link }
  ]
})

/** A link that may close a cycle, and that its ends close at different times. */
const shortcut = between({ a: node, b: node, late: length }, (from, to, { a, b, late }, nodes) => {
  const [one, other] = [a % nodes, b % nodes]
  return [
    { time: from, kind: 'link', from: one, to: other },
    { time: to, kind: 'unlink', from: one, to: other },
    { time: to + late / 10, kind: 'unlink', from: other, to: one }
  ]
})
/** A session that one end loses, and that is opened again. */
const reset = between({ a: node, b: node }, (from, to, { a, b }, nodes) => {
  const link = { from: a % nodes, to: b % nodes }
  return [
    { time: from, kind: 'unlink', ...link },
    { time: to, kind: 'link', ...link }
  ]
})

const looseFaults = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: outage },
    { weight: 2, arbitrary: partition },
    { weight: 2, arbitrary: clog },
    { weight: 1, arbitrary: shortcut },
    { weight: 1, arbitrary: reset },
    { weight: 1, arbitrary: pause },
    { weight: 1, arbitrary: hang },
    { weight: 1, arbitrary: absence }
  ),
  { maxLength: 16, size: 'max' }
)

/** Schedules relative to a run, for arbitraries in which scenario and schedule shrink independently. */
export const looseSchedules: fc.Arbitrary<(extent: Extent) => Fault[]> = looseFaults.map(
  list => extent => list.flatMap(trouble => trouble(extent)).sort((a, b) => a.time - b.time)
)

/**
 * Schedules for a run, including empty ones.
 * @example
 * const [faults] = fc.sample(faultSchedules({ nodes: 4, until: 1000 }), 1)
 */
export function faultSchedules(extent: Extent): fc.Arbitrary<Fault[]> {
  return looseSchedules.map(schedule => schedule(extent))
}

function round(time: number): number {
  return Math.round(time * 100) / 100
}
