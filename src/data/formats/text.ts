/** Text from files, standard input or a URL as readers of rows, with the position of each row. */
import { importance } from '../../base/errors.js'
import type { Rows, Verified } from '../rows.js'
import { SampledFeatures } from '../scale.js'
import { type Inferred, inferFrom, readHead } from '../schema/sample.js'
import { sourceName } from '../source.js'
import { openByteSource } from '../sources/byte-source.js'
import { bytesAt, type FilePosition, isFilePosition, PositionTracker } from '../sources/file-position.js'
import type { ByteSource, Piece } from '../sources/segments.js'
import { checkUtf8, Utf8Checker } from '../sources/utf8.js'
import type { LabelSchema } from '../types.js'
import type { InputOptions, Reader, TextDefinition } from './format.js'
import { formats, refuseUnsupported, type TextFormat } from './formats.js'
import { createParser, type Parser, parsedInParts } from './parser.js'

/** Bytes of the first rows of a table from which their features are counted. */
const SAMPLE_BYTES = 1 << 16

interface TextOptions extends InputOptions {
  /** Infers from the first rows whether the label is a class or a number, and the names of the classes. @default false */
  readonly inferLabel?: boolean
  /** Largest number of classes, including those that the first rows lack. @default those of the first rows */
  readonly classesMax?: number
  /** Counts the labels of each class in the first rows. @default false */
  readonly countClasses?: boolean
  /** Rows in the window of a later shuffle. @default no shuffle */
  readonly shuffleWindow?: number
  /** `hashBits` of a table with categories or texts, if that is not given. @default 18 */
  readonly tableHashBits?: number
}

/**
 * Opens a text input. The first rows determine what the options leave open: the separator and the columns of CSV, and the
 * label if asked.
 * @param data a file, a directory, a pattern of files, a URL, or `-`
 * @throws MissingInputError, UnreadableInputError, HeaderError, SchemaError, StreamOptionsError
 */
export async function openText(data: string, format: TextFormat, options: TextOptions): Promise<Reader> {
  const { inferLabel = false, countClasses = false, classesMax, tableHashBits, ...given } = options
  const { newClasses = classesMax !== undefined } = given
  const named = { ...given, newClasses, source: options.source ?? sourceName(data) }
  const source = await openByteSource(data, options)
  const { isReplayable } = source
  // Reports options that contradict each other, before anything is read.
  const plain = { strict: false, onMalformed: undefined, onNotice: undefined }
  const quiet = { ...plain, onLabel: () => undefined }
  const probe = createParser(format, { ...named, ...quiet })
  const { isSizedByFirstRow, dialect: tableDialect }: TextDefinition = formats[format]
  const isTable = tableDialect !== undefined
  const isOpen = probe.dimension === undefined && isSizedByFirstRow
  const derives = options.interactions !== undefined
  let started: Piece | undefined
  let inferred: Inferred = {}
  let first: Uint8Array | undefined
  const isAuto = options.scale === 'auto'
  if (isTable || inferLabel || isOpen || countClasses || derives || isAuto) {
    const piece = await firstPiece(source)
    // Notices and progress are those of the rows that are learned.
    const head = await readHead(isReplayable ? piece.readAt(0) : piece.read(), !isReplayable)
    if (isReplayable) await head.close()
    else started = { ...piece, read: () => head.chunks }
    refuseUnsupported(head.bytes, named.source)
    if (options.encoding === undefined) checkUtf8(wholeRows(head.bytes), named.source)
    first = head.bytes
    inferred = inferFrom(format, head.bytes, named, inferLabel, options.shuffleWindow)
    // JSON lines have the features of their first row.
    if (isOpen && !isTable && inferred.schema === undefined) probe.push(head.bytes)
  }
  const { label, schema, summary, notices, ...dialect } = inferred
  for (const { line, importance } of notices ?? []) options.onNotice?.(line, importance)
  const isHashed = schema?.some(({ kind }) => kind === 'category' || kind === 'text')
  const hashBits = options.hashBits ?? (isHashed ? tableHashBits : undefined)
  const parserOptions = {
    ...named,
    ...dialect,
    ...(schema && { schema }),
    ...(hashBits !== undefined && { hashBits }),
    ...(label && {
      target: label.kind,
      classes: label.names ? undefined : mostClasses(label, classesMax),
      classNames: label.names
    })
  }
  const parser = createParser(format, parserOptions)
  const { constant = false } = options
  const isBare = parserOptions.schema === undefined
  const sample = new SampledFeatures(constant)
  let classCounts: readonly number[] | undefined
  if (first !== undefined) {
    const sampled = isBare && isAuto ? first : wholeRows(first.subarray(0, SAMPLE_BYTES))
    const counter = countClasses && createParser(format, { ...parserOptions, ...plain })
    if (counter) classCounts = classCountsOf(counter, first, sampled === first ? sample : undefined)
    if (!counter || sampled !== first) {
      const sampler = createParser(format, { ...parserOptions, ...quiet, unlabelled: true })
      for (const rows of parsedInParts(sampler, sampled)) sample.add(rows)
    }
  }
  const scale = isAuto && isBare && parser.interactions === undefined && sample.isDense ? 'standard' : undefined
  return {
    get dimension() {
      return parser.dimension ?? probe.dimension
    },
    classes: label?.kind === 'number' ? undefined : parser.classes,
    get hashBits() {
      return parser.hashBits ?? probe.hashBits
    },
    get schema() {
      return parser.schema
    },
    label,
    classCounts,
    scale,
    featuresPerRow: sample.perRow,
    interactions: parser.interactions,
    newClasses: parser.newClasses,
    summary,
    get skipped() {
      return parser.skipped
    },
    repeatable: isReplayable && !options.follow,
    replayable: isReplayable,
    verify: position => verify(source, position),
    async locate(from) {
      return source.locate(from, await afterFirstRows(source, createParser(format, { ...parserOptions, ...quiet })))
    },
    pass(from) {
      const pieces = started === undefined ? source.pieces(from as FilePosition | undefined) : [started]
      started = undefined
      return parse(pieces, parser, isReplayable, options)
    }
  }
}

/** Without an incomplete last row, whose last character may be cut. */
function wholeRows(bytes: Uint8Array): Uint8Array {
  return bytes.subarray(0, bytes.lastIndexOf(0x0a) + 1)
}

function mostClasses({ classes }: LabelSchema, most: number | undefined): number | undefined {
  return classes === undefined || most === undefined ? classes : Math.max(classes, most)
}

/** How many of the first rows have each class. */
function classCountsOf(parser: Parser, first: Uint8Array, sample: SampledFeatures | undefined): readonly number[] {
  const counts: number[] = []
  for (const rows of parsedInParts(parser, first)) {
    for (let row = 0; row < rows.size; row++) counts[rows.labels[row]] = (counts[rows.labels[row]] ?? 0) + 1
    sample?.add(rows)
  }
  return Array.from(counts, count => count ?? 0)
}

async function firstPiece(source: ByteSource): Promise<Piece> {
  for await (const piece of source.pieces(undefined, true)) return piece
  throw new Error('a source has at least one piece')
}

async function verify(source: ByteSource, position: unknown): Promise<Verified> {
  // Positions of other versions are not understood.
  if (!isFilePosition(position)) return { source: undefined, isSame: false }
  const { isSame, notice } = await source.resume(position)
  return { source: isSame ? position : { path: position.path, offset: 0, line: 0 }, isSame, notice }
}

/** Reads the first rows. @returns the position after them, from which the header is known */
async function afterFirstRows(source: ByteSource, parser: Parser): Promise<FilePosition> {
  const piece = await firstPiece(source)
  const tracker = new PositionTracker(parser, piece.start)
  for await (const chunk of piece.read()) {
    const { size } = parser.push(chunk)
    tracker.pushed(chunk, size)
    if (size > 0) return tracker.position
  }
  parser.end()
  tracker.ended()
  return tracker.position
}

async function* parse(
  pieces: AsyncIterable<Piece> | Iterable<Piece>,
  parser: Parser,
  isReplayable: boolean,
  options: Pick<TextOptions, 'encoding' | 'onNotice'>
): AsyncGenerator<Rows> {
  const checker = options.encoding === undefined ? new Utf8Checker() : undefined
  const noticed = (chunk: Uint8Array, { name }: Piece) => {
    if (!checker?.add(chunk)) return
    const line = `${name}: from about line ${parser.line + 1} on, some text is not UTF-8: give its --encoding`
    options.onNotice?.(line, importance.contradiction)
  }
  for await (const piece of pieces) {
    for await (const rows of parsePiece(piece, parser, noticed))
      yield isReplayable ? rows : { ...rows, mark: undefined }
  }
}

async function* parsePiece(
  piece: Piece,
  parser: Parser,
  onChunk: (chunk: Uint8Array, piece: Piece) => void
): AsyncGenerator<Rows> {
  const { start } = piece
  parser.source = piece.name
  if (start.offset > 0 && start.head !== undefined) {
    parser.resume(await bytesAt(piece.readAt, 0, start.head.length), start.line)
  } else parser.restart()
  const tracker = new PositionTracker(parser, start)
  piece.position = () => tracker.position
  for await (const chunk of piece.read()) {
    const { mark } = tracker
    onChunk(chunk, piece)
    const rows = parser.push(chunk)
    tracker.pushed(chunk, rows.size)
    if (rows.size > 0) yield { ...rows, mark }
  }
  if (piece.isCut) return
  const { mark } = tracker
  tracker.ended()
  const rows = parser.end()
  if (rows.size > 0) yield { ...rows, mark }
}
