/** The module's public API: streams of inputs from files, standard input, built-in data and plug-ins. */

export { HeaderError, SchemaError } from './errors.js'
export { rowsOfTokens, type TokenRows } from './formats/builtins.js'
export {
  addReader,
  type CustomFormat,
  type CustomInput,
  type CustomReader,
  type CustomReaderFactory,
  type ReadContext
} from './formats/custom.js'
export { type Format, formatNames } from './formats/formats.js'
export { murmur3 } from './formats/hash.js'
export { listed, noLabel } from './formats/labels.js'
export { RecordReader } from './formats/records.js'
export { openStream } from './open.js'
export type { OnHashed } from './options.js'
export * from './parsing.js'
export { Random } from './random.js'
export { openRaw, type RawBlock, type RawInput, type RawPlace } from './raw.js'
export type { From, Mark, StreamPosition } from './rows.js'
export { collect } from './rows.js'
export { resolveScale, scaleOf } from './scale.js'
export { inferColumns } from './schema/columns.js'
export { delimiterNames, delimiters, sniffDialect } from './schema/dialect.js'
export { inferLabel, isQuantity } from './schema/infer.js'
export { checkedSchema, isFeature, Layout } from './schema/schema.js'
export type { Interactions } from './schema/table-schema.js'
export { EPOCH_DAYS, timeFeatureNames, YEARS_10 } from './schema/times.js'
export { readSource } from './source.js'
export { headOf } from './sources/byte-source.js'
export type { Shard } from './stages.js'
export { openInThread, openThreaded } from './threads/open-in-thread.js'
export { type ReaderThread, startReader } from './threads/reader.js'
export type { ColumnKind, ColumnRole, Delimiter } from './types.js'
