/** Columns that are made from others: interactions of two columns, and lags, the values of earlier rows. */
import { SchemaError } from '../errors.js'
import type { ColumnSchema } from './types.js'

/** Largest number of rows that a lag looks back. */
const MAX_ROWS = 100_000

/** What to add to the columns of a table. */
export interface DerivedHints {
  /** Pairs of columns: products of numbers, crosses of categories. @default none */
  readonly interactions?: readonly (readonly [string, string])[]
  /** By the name of a number, or of a label that is a number: how many rows to look back, each from 1. @default none */
  readonly lags?: Readonly<Record<string, readonly number[]>>
}

/** Whether a column is made from others, so that rows do not contain it. */
export function isDerived({ of }: ColumnSchema): boolean {
  return of !== undefined
}

/**
 * Adds the columns that the hints describe and the schema lacks, in the order of their names.
 * @param label name of the label's column
 * @param labelOrigin what is subtracted from labels in lags @default 0
 * @throws SchemaError
 */
export function withDerived<Column extends ColumnSchema>(
  columns: readonly Column[],
  { interactions = [], lags = {} }: DerivedHints,
  label: string,
  source: string,
  labelOrigin?: number
): readonly (Column | ColumnSchema)[] {
  const known = new Set(columns.map(({ name }) => name))
  const pairs = interactions.map((pair): ColumnSchema => {
    const of = [...pair].sort()
    return { name: of.join(':'), kind: 'interaction', of }
  })
  const earlier = Object.entries(lags).flatMap(([of, all]) =>
    all.map(
      (rows): ColumnSchema => ({
        ...{ name: `${of} lag ${rows}`, kind: 'lag', of: [of], rows, missing: true },
        ...(of === label && labelOrigin !== undefined && { origin: labelOrigin })
      })
    )
  )
  const added = new Map([...pairs, ...earlier].filter(({ name }) => !known.has(name)).map(one => [one.name, one]))
  if (added.size === 0) return columns
  const all = [...columns, ...[...added.values()].sort((a, b) => (a.name < b.name ? -1 : 1))]
  checkDerived(all, label, source)
  return all
}

/** @throws SchemaError if a column is made from others that do not exist or do not fit */
export function checkDerived(columns: readonly ColumnSchema[], label: string, source: string): void {
  const byName = new Map(columns.map(column => [column.name, column]))
  const fail = (reason: string): never => {
    throw new SchemaError(`${source}: ${reason}`)
  }
  for (const { name, kind, of = [], rows } of columns) {
    if (kind !== 'interaction' && kind !== 'lag') {
      if (of.length > 0 || rows !== undefined) fail(`column "${name}": of and rows are for interactions and lags`)
      continue
    }
    const sources = of.map(one => byName.get(one))
    const unknown = of.find((one, i) => sources[i] === undefined && (kind === 'interaction' || one !== label))
    if (unknown !== undefined)
      fail(`"${name}" needs the column "${unknown}", which the data do not have: check its spelling`)
    const unfit = sources.find(one => one !== undefined && !fits(one, kind))
    if (unfit !== undefined) {
      const taken = kind === 'lag' ? 'numbers' : 'numbers and categories'
      fail(`"${name}" is made from ${taken}, and "${unfit.name}" is ${unfit.role ?? unfit.kind}`)
    }
    if (kind === 'lag') {
      if (of.length !== 1) fail(`"${name}": give one column as of`)
      if (!(Number.isInteger(rows) && (rows as number) >= 1 && (rows as number) <= MAX_ROWS)) {
        fail(`"${name}": rows must be a whole number from 1 to ${MAX_ROWS}`)
      }
    } else {
      if (of.length !== 2 || rows !== undefined) fail(`"${name}": give two columns as of, and no rows`)
      if (of[0] === of[1] && sources[0]?.kind === 'category') fail(`"${name}": a category has no square`)
    }
  }
}

function fits({ kind, role }: ColumnSchema, made: 'interaction' | 'lag'): boolean {
  if (role !== undefined) return false
  return kind === 'number' || (made === 'interaction' && (kind === 'category' || kind === 'lag'))
}

/** The hash of a pair of hashed values (the finaliser of MurmurHash3 over both). */
export function crossHash(a: number, b: number): number {
  let hash = Math.imul(a, 0x01000193) ^ b
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}
