/** The first rows of JSON lines as a table, from which columns are inferred as those of CSV. */
import type { FirstRows } from './columns.js'
import { SAMPLE_ROWS } from './infer.js'
import { columnRoles } from './schema.js'
import type { ColumnRole } from './types.js'

/** Largest number of keys of a table. Names of further ones are hashed. */
const MAX_KEYS = 1000
/** Share of the keys that a row of a table has on average. Rows with fewer are sparse, and their names are hashed. */
const MIN_SHARE = 0.2

interface Hints extends Partial<Record<ColumnRole, string>> {
  readonly label?: string
}

export interface JsonTable {
  readonly rows: FirstRows
  /** Keys whose values are objects or arrays, which are left out. */
  readonly nested: readonly string[]
}

/** @returns undefined if the rows are no table: arrays of numbers, or sparse */
export function jsonTable(head: Uint8Array, hints: Hints): JsonTable | undefined {
  const label = hints.label ?? 'label'
  const apart = new Set([label, ...columnRoles.flatMap(role => hints[role] ?? [])])
  const rows: Readonly<Record<string, unknown>>[] = []
  for (const object of objectsOf(head)) {
    const { features } = object
    if (Array.isArray(features)) return undefined
    if (!isObject(features)) rows.push(object)
    else {
      const others = Object.entries(object).filter(([key]) => apart.has(key))
      rows.push({ ...features, ...Object.fromEntries(others) })
    }
  }
  if (rows.length === 0) return undefined
  const keys = new Map<string, { present: number; nested: number }>()
  let cells = 0
  for (const row of rows) {
    for (const [key, value] of Object.entries(row)) {
      if (key !== label) cells++
      const seen = keys.get(key) ?? { present: 0, nested: 0 }
      seen.present++
      if (typeof value === 'object' && value !== null) seen.nested++
      keys.set(key, seen)
    }
  }
  const features = keys.size - Number(keys.has(label))
  if (features === 0 || features > MAX_KEYS || cells < MIN_SHARE * features * rows.length) return undefined
  const nested = [...keys].filter(([, seen]) => 2 * seen.nested > seen.present).map(([key]) => key)
  const names = [...keys.keys()].filter(key => !nested.includes(key))
  return { rows: new Map(names.map(name => [name, rows.map(row => textOf(row[name]))])), nested }
}

/** The objects of complete lines. Others are reported when they are read. */
function* objectsOf(head: Uint8Array): Generator<Readonly<Record<string, unknown>>> {
  let count = 0
  for (let from = 0; count < SAMPLE_ROWS; ) {
    const to = head.indexOf(0x0a, from)
    if (to < 0) return
    const value = parsed(Buffer.from(head.buffer, head.byteOffset + from, to - from).toString('utf8'))
    from = to + 1
    if (!isObject(value)) continue
    count++
    yield value
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** As CSV writes it. */
function textOf(value: unknown): string {
  return value === null || value === undefined || typeof value === 'object' ? '' : String(value)
}
