/** Settings from flags: each value goes where its row says. Defaults and checks are in `src/task` and `src/peer`, which serve the library as well. */

import type { StreamOptions } from '../../data/index.js'
import type { Execution } from '../../l2l/index.js'
import type { PeerOptions } from '../../peer/index.js'
import type { TaskOptions } from '../../task/options.js'
import type { ReadOptions } from '../../task/stream.js'
import type { Place, Row } from './option.js'
import { type AnyFlags, type Flags, rows } from './table.js'

/** The task that the flags describe. */
export function taskOptions(flags: AnyFlags): TaskOptions {
  const task = settings(flags, 'task') as TaskOptions
  if (flags.data === undefined) return task
  return { ...task, data: { ...readOptions(flags), ...settings(flags, 'table') } as StreamOptions }
}

/** How inputs are read, independent of a model. */
export function readOptions(flags: AnyFlags): ReadOptions {
  const reading = settings(flags, 'read') as ReadOptions
  // Names of columns describe the file; numeric columns describe a model.
  return reading.header === false && flags.columns ? { ...reading, columns: flags.columns } : reading
}

/** How a network is executed. */
export function executionOf(flags: AnyFlags): Execution {
  return settings(flags, 'execution') as Execution
}

/** The options of a peer that need no file. */
export function peerOptions(flags: Flags<'peer'>): Partial<PeerOptions> {
  return settings(flags, 'peer') as Partial<PeerOptions>
}

function settings(flags: AnyFlags, place: Place): Record<string, unknown> {
  const found: Record<string, unknown> = {}
  for (const row of rows as readonly Row[]) {
    if (row.in === undefined || !(row.in === place || row.in.includes(place))) continue
    const isNegative = row.name.startsWith('no-')
    const key = camel(isNegative ? row.name.slice(3) : row.name)
    const value = (flags as Readonly<Record<string, unknown>>)[key]
    // A switch that is on without its option says nothing.
    if (value === undefined || (isNegative && value === true)) continue
    if (row.spreads) Object.assign(found, value)
    else found[row.as ?? key] = value
  }
  return found
}

function camel(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
}
