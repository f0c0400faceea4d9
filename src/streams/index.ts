/** The module's public API: streams of inputs from files, standard input, built-in data and plug-ins. */
export {
  addReader,
  type CustomFormat,
  type CustomInput,
  type CustomReader,
  type CustomReaderFactory,
  isCustomFormat,
  type ReadContext
} from './custom.js'
export {
  CorruptInputError,
  HeaderError,
  IdxError,
  InputError,
  LineTooLongError,
  MalformedInputError,
  MissingInputError,
  SchemaError,
  StreamOptionsError,
  UnknownFormatError,
  UnreadableInputError
} from './errors.js'
export {
  type Format,
  formatNames,
  guessFormat,
  type InputKind,
  inputKind,
  inputOptionsOf,
  isText,
  type TextFormat
} from './formats.js'
export { murmur3 } from './hash.js'
export { NEW_CLASS } from './labels.js'
export { LagHistory, type SavedHistory } from './lags.js'
export { openStream, type StreamOptions } from './open.js'
export type { OnHashed, ParserOptions } from './options.js'
export { createParser, type Parser } from './parser.js'
export type { From, Mark, StreamPosition } from './position.js'
export { Preparation, type Scaling } from './prepare.js'
export { Random } from './random.js'
export { RecordReader } from './records.js'
export { collect, RowBuffer, type Rows } from './rows.js'
export { RunningMoments, resolveScale, type SavedMoments } from './scale.js'
export { readSource } from './source.js'
export type { Shard } from './stages.js'
export { type SyntheticOptimum, type SyntheticOptions, syntheticOptimum } from './synthetic.js'
export { delimiters, sniffDialect } from './table/dialect.js'
export { inferColumns, inferLabel, listed } from './table/infer.js'
export { type Column, checkedSchema, isFeature, Layout, schemaText } from './table/schema.js'
export type { ColumnKind, ColumnRole, ColumnSchema, Delimiter, LabelSchema, Schema } from './table/types.js'
export { timeFeatureNames } from './table/values.js'
export { openInThread, openThreaded, type ReaderThread, startReader } from './threads/open-in-thread.js'
export { rowsOfTokens, type TokenRows } from './tokens.js'
export type { ExampleStream, Malformed } from './types.js'
