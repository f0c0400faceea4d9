/** Reads the first rows of a text input and infers from them what its options leave open. */
import { importance, type Notice } from '../../base/errors.js'
import { HeaderError, SchemaError } from '../errors.js'
import type { TextDefinition } from '../formats/format.js'
import { formats, type TextFormat } from '../formats/formats.js'
import { listed, noLabel } from '../formats/labels.js'
import { createParser, parsedInParts } from '../formats/parser.js'
import { MAX_LINE_BYTES, type ParserOptions } from '../options.js'
import type { ColumnSchema, Dialect, LabelSchema } from '../types.js'
import {
  type ColumnHints,
  columnNotices,
  type FirstRows,
  type InferredColumn,
  inferNotation,
  inferTable,
  plainColumn
} from './columns.js'
import { recordsOf, type SniffedDialect, sniffDialect } from './dialect.js'
import { describe, inferLabel, jsonTable, SAMPLE_ROWS } from './infer.js'
import { labelNotices, refuseLabels } from './label-checks.js'
import { type DecimalMark, marksOf } from './numbers.js'
import { isDerived, withDerived } from './schema.js'

/** Bytes that are enough for a sample, unless they hold no complete row. */
const SAMPLE_BYTES = 4 * 1024 * 1024
/** Maximum time to wait for more rows of a live source after its first row, in milliseconds. */
const MAX_WAIT_MS = 1000
const NEWLINE = 0x0a

/** The start of an input, and the input from its start. */
interface Head {
  readonly bytes: Uint8Array
  readonly chunks: AsyncGenerator<Uint8Array>
  /** Closes the source without reading on. */
  close(): Promise<void>
}

/**
 * Reads the start of an input.
 * @param isLive whether the source may be slow, so that the wait is limited
 */
export async function readHead(source: AsyncGenerator<Uint8Array>, isLive: boolean): Promise<Head> {
  const parts: Uint8Array[] = []
  let size = 0
  let rows = 0
  let deadline: number | undefined
  let pending: Promise<IteratorResult<Uint8Array>> | undefined
  let isDone = false
  let failure: Error | undefined
  while (rows === 0 ? size < MAX_LINE_BYTES : size < SAMPLE_BYTES && rows < SAMPLE_ROWS) {
    pending ??= source.next()
    let next: IteratorResult<Uint8Array> | undefined
    try {
      next = deadline === undefined ? await pending : await inTime(pending, deadline - performance.now())
    } catch (error) {
      // The rows before the damage are learned before the failure is reported.
      if (rows === 0) throw error
      failure = error as Error
      break
    }
    if (next === undefined) break
    pending = undefined
    isDone = next.done === true
    if (next.done) break
    const part = next.value.slice()
    parts.push(part)
    size += part.length
    for (let at = part.indexOf(NEWLINE); at >= 0; at = part.indexOf(NEWLINE, at + 1)) rows++
    if (isLive && rows > 1) deadline ??= performance.now() + MAX_WAIT_MS
  }
  // A generator that was not started does not run its `finally`.
  const close = async () => {
    await source.return(undefined)
  }
  async function* chunks(): AsyncGenerator<Uint8Array> {
    try {
      yield* parts
      if (failure !== undefined) throw failure
      if (pending !== undefined) {
        const next = await pending
        if (next.done) return
        yield next.value
      }
      if (!isDone) yield* source
    } finally {
      await close()
    }
  }
  // The last row of a whole input may lack its newline.
  const bytes = Buffer.concat(isDone ? [...parts, Uint8Array.of(NEWLINE)] : parts)
  const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
  return { bytes: hasMark ? bytes.subarray(3) : bytes, chunks: chunks(), close }
}

async function inTime<T>(promise: Promise<T>, milliseconds: number): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<undefined>(resolve => {
    timer = setTimeout(resolve, Math.max(0, milliseconds), undefined)
  })
  try {
    return await Promise.race([promise, timeout])
  } finally {
    clearTimeout(timer)
  }
}

/** What the first rows determine; the options that are given are kept. */
export interface Inferred extends Dialect {
  readonly schema?: readonly ColumnSchema[]
  readonly label?: LabelSchema
  /** The decimal mark of labels that are ambiguous numbers. */
  readonly labelDecimal?: DecimalMark
  /** The number columns with marks that may divide thousands. */
  readonly grouped?: readonly string[]
  /** What was inferred, in one line. */
  readonly summary?: string
  /** What could be wrong of it. */
  readonly notices?: readonly Notice[]
}

/**
 * @param head the start of the input
 * @param infersLabel whether the task is to be inferred as well
 * @param shuffleWindow rows in the window of a later shuffle
 * @throws SchemaError, HeaderError
 */
export function inferFrom(
  format: TextFormat,
  head: Uint8Array,
  options: ParserOptions & Pick<ColumnHints, 'scale'>,
  infersLabel: boolean,
  shuffleWindow = 0
): Inferred {
  const source = options.source ?? '<input>'
  const definition: TextDefinition = formats[format]
  const sniffed = definition.dialect === 'sniffed' ? sniffDialect(head, options, source) : undefined
  const dialect = definition.dialect === 'sniffed' ? sniffed : definition.dialect
  // With a number of features, the names of JSON lines are numbers.
  const isKeyed = format === 'jsonl' && options.dimension === undefined
  const json = isKeyed ? jsonTable(head, options) : undefined
  const first = dialect ? firstRows(head, { ...options, ...dialect }) : json?.rows
  const isNew = options.schema === undefined
  const hints = dialect?.header === false ? { ...options, columns: undefined } : options
  const found = first && (isNew ? inferTable(first, hints, source) : inferNotation(options.schema, first, options))
  const known = found?.map(plainColumn) ?? options.schema
  const label = options.label ?? 'label'
  const labels = first?.get(label)
  const labelMarks = labels && marksOf(labels)
  const labelDecimal = options.decimal ?? labelMarks?.decide(undefined).decimal
  const schema = known && withDerived(known, options, source)
  if (schema === undefined && format === 'jsonl' && Array.isArray(options.interactions)) {
    throw new SchemaError(`${source}: interactions of sparse JSON lines need a schema: give one with schema`)
  }
  if (json && labels === undefined && infersLabel && !options.unlabelled) {
    throw new HeaderError(
      `${source}: the first row (${listed([...json.rows.keys()], 20)}) ${noLabel(label, [...json.rows.keys()], 'key')}`
    )
  }
  const columns = {
    ...sniffed,
    ...(schema && { schema }),
    ...(labels && { labelDecimal }),
    ...(found && { grouped: found.filter(({ isGrouped }) => isGrouped).map(({ name }) => name) }),
    notices: [...columnNotices(found ?? [], source), ...nestedNotices(isNew ? json?.nested : undefined, source)]
  }
  const derived = schema?.filter(isDerived).map(column => ({ ...column, missingShare: 0 })) ?? []
  const described = found && isNew ? [...found, ...derived] : undefined
  const summary = described && describe(undefined, described)
  if (!infersLabel || options.unlabelled || options.classNames !== undefined) return { ...columns, summary }
  const own = inferredLabel(format, head, { ...options, ...columns }, described, shuffleWindow)
  return { ...columns, ...own, notices: [...columns.notices, ...own.notices] }
}

function nestedNotices(keys: readonly string[] = [], source: string): Notice[] {
  if (keys.length === 0) return []
  const line = `${source}: ${listed(keys)}: nested values are left out: flatten them to use them`
  return [{ line, importance: importance.leftOut }]
}

/** What the label is, by the labels of the first rows. */
function inferredLabel(
  format: TextFormat,
  head: Uint8Array,
  options: ParserOptions,
  described: readonly InferredColumn[] | undefined,
  shuffleWindow: number
): Pick<Inferred, 'label' | 'summary'> & { readonly notices: readonly Notice[] } {
  const labels: string[] = []
  const parser = createParser(format, {
    ...options,
    target: undefined,
    classes: undefined,
    strict: false,
    onMalformed: undefined,
    onNotice: undefined,
    onLabel: label => labels.push(label)
  })
  for (const _ of parsedInParts(parser, head)) if (labels.length >= SAMPLE_ROWS) break
  const { options: taken }: TextDefinition = formats[format]
  const hasColumns = taken.includes('schema')
  const name = hasColumns ? (options.label ?? 'label') : undefined
  const source = options.source ?? '<input>'
  const what = name === undefined ? `${source}: the label` : `${source}: the label "${name}"`
  const { labelDecimal, target, classes } = options
  const sample = labels.slice(0, SAMPLE_ROWS)
  refuseLabels(sample, format, what)
  const found = inferLabel(sample, { target, classes, decimal: labelDecimal, hasColumns }, what)
  if (found === undefined) return { summary: described && describe(undefined, described), notices: [] }
  const label = { ...(name !== undefined && { name }), ...found }
  const isGiven = target !== undefined || classes !== undefined
  const notices = labelNotices(sample, found, { isGiven, shuffleWindow }, what)
  return { label, summary: describe(label, described), notices }
}

/** The values of the columns in the first complete rows; undefined if there are none, or if the header is invalid. */
function firstRows(head: Uint8Array, options: ParserOptions & SniffedDialect): FirstRows | undefined {
  const { delimiter, header, columns } = options
  const records = recordsOf(head, delimiter, SAMPLE_ROWS + 1)
  if (records.length <= (header ? 1 : 0)) return undefined
  const [first] = records
  const names = header ? first : first.map((_, index) => columns?.[index] ?? String(index + 1))
  const rows = (header ? records.slice(1) : records).filter(record => record.length === names.length)
  // The parser reports an invalid header.
  if (rows.length === 0 || new Set(names).size < names.length) return undefined
  return new Map(names.map((name, index) => [name, rows.map(row => row[index])]))
}
