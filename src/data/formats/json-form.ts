/** The form of rows of JSON lines that have the keys of one object, in its order, which a kernel can parse. */
import type { KeyedRow } from '../schema/keyed-row.js'
import { type Field, type FieldForm, isPlainNumber, type PlacedField } from './field-rows.js'
import { isText, JsonScanner, textOf } from './json.js'
import type { LabelReader } from './labels.js'

const NEWLINE = 0x0a
const QUOTE = 0x22

interface FormOptions {
  readonly labelKeys: readonly Uint8Array[]
  readonly ignored: readonly Uint8Array[]
  readonly unlabelled?: boolean
  readonly labels: LabelReader
}

/** The form of the object at `start`; undefined if it has other values than numbers and strings, or only the loops read it. */
export function formOfObject(
  bytes: Uint8Array,
  start: number,
  table: KeyedRow,
  { labelKeys, ignored, unlabelled, labels }: FormOptions
): FieldForm | undefined {
  const scanner = new JsonScanner()
  const names = new Set<string>()
  const fields: PlacedField[] = []
  let at = start
  /** What the member with the key that was read last is. */
  const fieldOf = (name: string, isNumber: boolean): Field | undefined => {
    if (table.roleOf(scanner.text, scanner.from, scanner.to) !== undefined) return undefined
    if (labelKeys.some(key => isText(scanner, key))) return 'label'
    if (ignored.some(key => isText(scanner, key))) return 'ignored'
    const column = table.layout.column(name)
    if (column?.kind === 'ignored') return 'ignored'
    return isNumber && column !== undefined && !isPlainNumber(column) ? undefined : column
  }
  const visit = (_: Uint8Array, value: number): number => {
    const isNumber = bytes[value] !== QUOTE
    const name = textOf(scanner)
    const field = fieldOf(name, isNumber)
    if (field === undefined || names.has(name)) return -1
    names.add(name)
    const end = isNumber ? scanner.finite(bytes, value) : scanner.string(bytes, value)
    fields.push({ field, isNumber, before: bytes.slice(at, isNumber ? value : value + 1) })
    at = isNumber ? end : end - 1
    return end
  }
  if (table.lacksWeight !== undefined) return undefined
  const end = scanner.members(bytes, start, visit)
  const newline = end < 0 ? -1 : bytes.indexOf(NEWLINE, end)
  // The loops refuse text after an object.
  if (newline < 0 || scanner.space(bytes, end) < newline) return undefined
  const hasLabel = fields.some(({ field }) => field === 'label') || unlabelled
  const hasColumn = fields.some(({ field }) => typeof field !== 'string')
  if (!hasLabel || !hasColumn) return undefined
  return {
    form: 'json',
    delimiter: QUOTE,
    fields,
    after: bytes.slice(at, newline + 1),
    absent: table.layout.fields.filter(({ name }) => !names.has(name)),
    encoder: table,
    labels
  }
}
