/**
 * The journal of a node's own segments. It says which inputs each segment contains and on which lists it was, so that a later run
 * can tell from the headers of any lineage which inputs have been used. A record must be durable before a frame with its segment
 * leaves the node.
 */

import type { ContributorTable } from '../state/contributors.js'
import type { PredictorId } from '../state/predictor-id.js'
import { FrameError } from '../wire/bytes.js'
import { type Ranges, without } from './ranges.js'
import type { Epoch, Segment } from './segments.js'

/** A record; records are in chronological order. Segments and epochs are numbered 1, 2, 3, … */
export type JournalRecord =
  /** The node switches to a predictor. */
  | {
      readonly kind: 'epoch'
      readonly number: number
      readonly id: PredictorId
      readonly incarnation: number
      readonly nonce: number
      /** Numbers of the segments with which its list begins. */
      readonly carried: readonly number[]
      /** Numbers of the other segments that its lineage has not used. */
      readonly open: readonly number[]
    }
  /** A segment is appended to the list of the last epoch. */
  | {
      readonly kind: 'segment'
      readonly number: number
      readonly epoch: number
      /** Numbers of its inputs, as intervals [first, end, first, end, …]. */
      readonly inputs: readonly number[]
      /** Number of the earlier run's segment that contains these inputs. */
      readonly of?: number
    }
  /** Epochs before this number, and their segments, are no longer needed. */
  | { readonly kind: 'dropped'; readonly before: number }

/** What earlier runs recorded. */
export interface Recovered {
  /** Oldest first. */
  readonly epochs: readonly Epoch[]
  /** Segments of these epochs. */
  readonly segments: readonly Segment[]
  /** Number of the next segment. */
  readonly nextSegment: number
}

/**
 * Reads the records of earlier runs.
 * @throws FrameError if they contradict each other
 */
export function recover(records: readonly JournalRecord[], self: string, table: ContributorTable): Recovered {
  const segments = new Map<number, Segment>()
  const lists = new Map<number, { readonly record: JournalRecord & { kind: 'epoch' }; readonly list: Segment[] }>()
  const found = (number: number): Segment => {
    // The record of a segment that is no longer needed may have been deleted, but later lists still contain its number.
    const segment = segments.get(number) ?? recovered(number, [], 0, undefined)
    segments.set(number, segment)
    return segment
  }
  for (const record of records) {
    if (record.kind === 'epoch') lists.set(record.number, { record, list: record.carried.map(found) })
    else if (record.kind === 'segment') {
      const epoch = lists.get(record.epoch)
      if (epoch === undefined || segments.has(record.number)) {
        throw new FrameError(`segment ${record.number} of the journal is out of place`)
      }
      const of = record.of === undefined ? undefined : found(record.of)
      const segment = recovered(record.number, record.inputs, epoch.record.id.updates, of)
      segments.set(record.number, segment)
      epoch.list.push(segment)
      for (let one = of; one !== undefined; one = one.of) one.remaining = without(one.remaining, record.inputs)
    }
  }
  const epochs = [...lists.values()].map(({ record, list }): Epoch => {
    return {
      number: record.number,
      id: record.id,
      contributor: table.indexOf({ origin: self, incarnation: record.incarnation, nonce: record.nonce }),
      segments: list,
      carried: record.carried.length,
      open: record.open.map(found),
      used: 0,
      until: 0,
      grid: undefined,
      settled: new Map()
    }
  })
  return { epochs, segments: [...segments.values()], nextSegment: Math.max(0, ...segments.keys()) + 1 }
}

function recovered(number: number, inputs: Ranges, updates: number, of: Segment | undefined): Segment {
  let count = 0
  for (let i = 0; i < inputs.length; i += 2) count += inputs[i + 1] - inputs[i]
  return {
    number,
    sum: undefined,
    grid: undefined,
    count,
    period: 0,
    updates,
    inputs,
    of,
    remaining: inputs,
    isRepeated: true,
    isRecovered: true,
    used: false
  }
}
