/** The module's public API: streams of inputs from files, standard input, built-in data and plug-ins. */

export {
  rowsOfTokens,
  type SyntheticOptimum,
  type SyntheticOptions,
  syntheticOptimum,
  type TokenRows
} from './builtins.js'
export {
  addReader,
  type CustomFormat,
  type CustomInput,
  type CustomReader,
  type CustomReaderFactory,
  type ReadContext
} from './custom.js'
export {
  CorruptInputError,
  HeaderError,
  IdxError,
  LineTooLongError,
  MissingInputError,
  SchemaError,
  StreamOptionsError,
  UnknownFormatError,
  UnreadableInputError
} from './errors.js'
export { type Format, formatNames, guessFormat } from './formats.js'
export { murmur3 } from './hash.js'
export { listed, noLabel } from './labels.js'
export { openStream, type StreamOptions } from './open.js'
export type { OnHashed } from './options.js'
export * from './parsing.js'
export { Random } from './random.js'
export { RecordReader } from './records.js'
export type { From, Mark, StreamPosition } from './rows.js'
export { collect } from './rows.js'
export { resolveScale, scaleOf } from './scale.js'
export { readSource } from './source.js'
export { type Head, headOf } from './sources/byte-source.js'
export type { Shard } from './stages.js'
export { inferColumns } from './table/columns.js'
export { delimiters, sniffDialect } from './table/dialect.js'
export { inferLabel, isQuantity } from './table/infer.js'
export { type Column, checkedSchema, isFeature, Layout } from './table/schema.js'
export { EPOCH_DAYS, timeFeatureNames, YEARS_10 } from './table/times.js'
export { openInThread, openThreaded, type ReaderThread, startReader } from './threads/open-in-thread.js'
export type { ColumnKind, ColumnRole, Delimiter } from './types.js'
