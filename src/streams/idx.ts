/**
 * IDX, the format of MNIST: a file of images (or other arrays of bytes) and one of labels beside it. Bytes are divided by
 * 255, zeros are left out. The header is a magic number 0, 0, 8 (unsigned bytes), rank, and then one big-endian 32-bit
 * size a dimension.
 */
import { basename, dirname, join } from 'node:path'
import { ByteReader } from './bytes.js'
import { IdxError, MissingInputError } from './errors.js'
import { addImage } from './image.js'
import { type ParserOptions, withConstant } from './options.js'
import type { Reader } from './reader.js'
import { Reporter } from './reporter.js'
import { RowBuffer, type Rows } from './rows.js'
import { checkSource, readSource, type SourceOptions, sourceName } from './source.js'

const MAX_BATCH_ROWS = 256
const MAX_BATCH_BYTES = 1024 * 1024
/** Larger images are refused: a damaged header, more likely. */
const MAX_IMAGE_BYTES = 16 * 1024 * 1024

export interface IdxOptions extends ParserOptions, SourceOptions {
  /** The labels' file. Default: the images' name with `labels` for `images` and `idx1` for `idx3`, with or without `.gz`. */
  readonly labels?: string
}

interface IdxFile {
  readonly bytes: ByteReader
  readonly count: number
  /** Bytes of one item. */
  readonly size: number
}

/**
 * Opens images and labels. Malformed inputs are reported with the number of the image as their line.
 * @param images the images' file, or `-`
 * @throws MissingInputError, UnreadableInputError, IdxError
 */
export async function openIdx(images: string, options: IdxOptions): Promise<Reader> {
  const repeatable = await checkSource(images)
  const labels = options.labels ?? (await labelsBeside(images))
  await checkSource(labels)
  const reporter = new Reporter(sourceName(images), options)
  const isClass = options.target !== 'number'
  const classes = isClass ? (options.classes ?? (await countClasses(labels, options))) : undefined
  const limit = isClass ? (options.classes ?? 256) : 256
  const begun = await openFile(images, 'images', options)
  let held = repeatable ? undefined : begun
  if (repeatable) await begun.bytes.close()
  return {
    dimension: withConstant(options.dimension ?? begun.size, options),
    classes,
    get skipped() {
      return reporter.skipped
    },
    repeatable,
    pass() {
      const opened = held
      held = undefined
      return readPass(images, labels, opened, limit, reporter, options)
    }
  }
}

async function* readPass(
  images: string,
  labels: string,
  held: IdxFile | undefined,
  limit: number,
  reporter: Reporter,
  options: IdxOptions
): AsyncGenerator<Rows> {
  const image = held ?? (await openFile(images, 'images', options))
  const label = await openFile(labels, 'labels', options)
  try {
    if (image.count !== label.count) {
      const counts = `${image.count} images but ${labels} has ${label.count} labels`
      throw new IdxError(`${sourceName(images)}: has ${counts}: give the labels of these images`)
    }
    const out = new RowBuffer()
    const batch = Math.max(1, Math.min(MAX_BATCH_ROWS, Math.floor(MAX_BATCH_BYTES / image.size)))
    for (let row = 0; row < image.count; row += batch) {
      const count = Math.min(batch, image.count - row)
      const pixels = await exactly(image.bytes, count * image.size, images)
      const targets = await exactly(label.bytes, count, labels)
      out.clear()
      out.reserve(count, count * (image.size + 1))
      for (let i = 0; i < count; i++) {
        if (targets[i] < limit) addImage(out, pixels, i * image.size, image.size, targets[i], options.constant ?? false)
        else reporter.report(row + i + 1, 0, `label ${targets[i]} is not below the number of classes, ${limit}`)
      }
      if (out.size > 0) yield out.view()
    }
  } finally {
    await image.bytes.close()
    await label.bytes.close()
  }
}

async function openFile(path: string, holds: 'images' | 'labels', options: SourceOptions): Promise<IdxFile> {
  const bytes = new ByteReader(readSource(path, options))
  try {
    const magic = (await exactly(bytes, 4, path)).slice()
    const rank = magic[3]
    const isRight = holds === 'labels' ? rank === 1 : rank >= 2 && rank <= 8
    if (magic[0] !== 0 || magic[1] !== 0 || magic[2] !== 8 || !isRight) {
      const found = Buffer.from(magic).toString('hex')
      const expected = holds === 'labels' ? '00000801' : '00000803'
      throw new IdxError(
        `${sourceName(path)}: magic number ${found} where ${holds} have ${expected}: give an IDX file of ${holds}`
      )
    }
    const header = await exactly(bytes, 4 * rank, path)
    const view = new DataView(header.buffer, header.byteOffset, header.length)
    const count = view.getUint32(0)
    let size = 1
    for (let i = 1; i < rank; i++) size *= view.getUint32(4 * i)
    if (size === 0 || size > MAX_IMAGE_BYTES) {
      throw new IdxError(
        `${sourceName(path)}: images of ${size} bytes (1 to ${MAX_IMAGE_BYTES} can be read): check the file`
      )
    }
    return { bytes, count, size }
  } catch (error) {
    await bytes.close()
    throw error
  }
}

async function exactly(bytes: ByteReader, length: number, path: string): Promise<Uint8Array> {
  const part = await bytes.read(length)
  if (part.length === length) return part
  throw new IdxError(`${sourceName(path)}: ends before all items that its header announces: fetch the file anew`)
}

async function labelsBeside(images: string): Promise<string> {
  const name = basename(images).replace('images', 'labels').replace('idx3', 'idx1')
  if (images === '-' || name === basename(images)) {
    throw new IdxError(`${sourceName(images)}: the labels' file cannot be told from the name: name it with labels`)
  }
  const path = join(dirname(images), name)
  const other = path.endsWith('.gz') ? path.slice(0, -3) : `${path}.gz`
  for (const candidate of [path, other]) {
    try {
      await checkSource(candidate)
      return candidate
    } catch (error) {
      if (!(error instanceof MissingInputError)) throw error
    }
  }
  throw new MissingInputError(`${path}: no labels beside the images: put the file there or name it with labels`)
}

/** One more than the largest label: the labels' file is small. */
async function countClasses(path: string, options: SourceOptions): Promise<number> {
  const { bytes, count } = await openFile(path, 'labels', options)
  let largest = 1
  try {
    for (let row = 0; row < count; ) {
      const labels = await exactly(bytes, Math.min(count - row, MAX_BATCH_BYTES), path)
      for (const label of labels) if (label > largest) largest = label
      row += labels.length
    }
  } finally {
    await bytes.close()
  }
  return largest + 1
}
