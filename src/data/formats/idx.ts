/**
 * IDX, the format of MNIST: a file of images (or other arrays of bytes) and a file of labels. Bytes are divided by 255, and
 * zeros are left out. The header is the magic number 0, 0, 8 (unsigned bytes), rank, and then the size of each dimension as a
 * big-endian 32-bit number.
 */
import { checkSource, readSource, sourceName } from '#source'
import { IdxError, MissingInputError, Reporter } from '../errors.js'
import type { SourceOptions } from '../options.js'
import { withConstant } from '../options.js'
import { addImage, RowBuffer, type Rows } from '../rows.js'
import type { BinaryDefinition, InputOptions, Reader } from './format.js'

const MAX_BATCH_ROWS = 256
const MAX_BATCH_BYTES = 1024 * 1024
/** Limit of an image's size. A larger size indicates a damaged header. */
const MAX_IMAGE_BYTES = 16 * 1024 * 1024

export const idx: BinaryDefinition = {
  kind: 'binary',
  summary: 'IDX, the format of MNIST: a file of images and a file of labels',
  fileName: /(\.idx|idx\d-ubyte)$/,
  options: ['labels', 'dimension', 'classes'],
  open: openIdx
}

interface IdxFile {
  readonly bytes: ByteReader
  readonly count: number
  /** Bytes of one item. */
  readonly size: number
}

/**
 * Opens images and labels. Malformed inputs are reported with the number of the image as the line.
 * @param images path of the images, or `-`
 * @throws MissingInputError, UnreadableInputError, IdxError
 */
async function openIdx(images: string, options: InputOptions): Promise<Reader> {
  const repeatable = await checkSource(images)
  const labels = options.labels ?? (await labelsBeside(images))
  await checkSource(labels)
  const reporter = new Reporter(sourceName(images), options)
  const isClass = options.target !== 'number'
  const classes = isClass ? (options.classes ?? (await countClasses(labels, options))) : undefined
  const limit = isClass ? (options.classes ?? 256) : 256
  const started = await openFile(images, 'images', options)
  let pending = repeatable ? undefined : started
  if (repeatable) await started.bytes.close()
  return {
    dimension: withConstant(options.dimension ?? started.size, options),
    classes,
    get skipped() {
      return reporter.skipped
    },
    repeatable,
    pass() {
      const opened = pending
      pending = undefined
      return readPass(images, labels, opened, limit, reporter, options)
    }
  }
}

async function* readPass(
  images: string,
  labels: string,
  opened: IdxFile | undefined,
  limit: number,
  reporter: Reporter,
  options: InputOptions
): AsyncGenerator<Rows> {
  const image = opened ?? (await openFile(images, 'images', options))
  const label = await openFile(labels, 'labels', options)
  try {
    if (image.count !== label.count) {
      const counts = `${image.count} images, ${labels} has ${label.count} labels`
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

async function openFile(path: string, content: 'images' | 'labels', options: SourceOptions): Promise<IdxFile> {
  const bytes = new ByteReader(readSource(path, options))
  try {
    const magic = (await exactly(bytes, 4, path)).slice()
    const rank = magic[3]
    const isExpectedRank = content === 'labels' ? rank === 1 : rank >= 2 && rank <= 8
    if (magic[0] !== 0 || magic[1] !== 0 || magic[2] !== 8 || !isExpectedRank) {
      const found = Buffer.from(magic).toString('hex')
      const expected = content === 'labels' ? '00000801' : '00000803'
      throw new IdxError(
        `${sourceName(path)}: magic number ${found}, expected ${expected}: give an IDX file of ${content}`
      )
    }
    const header = await exactly(bytes, 4 * rank, path)
    const view = new DataView(header.buffer, header.byteOffset, header.length)
    const count = view.getUint32(0)
    let size = 1
    for (let i = 1; i < rank; i++) size *= view.getUint32(4 * i)
    if (size === 0 || size > MAX_IMAGE_BYTES) {
      throw new IdxError(
        `${sourceName(path)}: images have ${size} bytes, supported are 1 to ${MAX_IMAGE_BYTES}: check the file`
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
  throw new IdxError(`${sourceName(path)}: ends before the last item that its header declares: download the file again`)
}

async function labelsBeside(images: string): Promise<string> {
  const folder = images.slice(0, Math.max(images.lastIndexOf('/'), images.lastIndexOf('\\')) + 1)
  const file = images.slice(folder.length)
  const name = file.replace('images', 'labels').replace('idx3', 'idx1')
  if (images === '-' || name === file) {
    throw new IdxError(`${sourceName(images)}: the name does not determine the labels file: give it with labels`)
  }
  const path = folder + name
  const other = path.endsWith('.gz') ? path.slice(0, -3) : `${path}.gz`
  for (const candidate of [path, other]) {
    try {
      await checkSource(candidate)
      return candidate
    } catch (error) {
      if (!(error instanceof MissingInputError)) throw error
    }
  }
  throw new MissingInputError(`${path}: no such labels file: put it beside the images or give it with labels`)
}

/** One more than the largest label. Reads the whole labels file, which is small. */
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

/** Reads exact numbers of bytes from a source's chunks. */
class ByteReader {
  readonly #source: AsyncGenerator<Uint8Array>
  #chunk: Uint8Array = new Uint8Array(0)
  #buffer = new Uint8Array(0)

  constructor(source: AsyncGenerator<Uint8Array>) {
    this.#source = source
  }

  /** @returns the next `length` bytes, or fewer at the end of the source; valid until the next call */
  async read(length: number): Promise<Uint8Array> {
    if (this.#buffer.length < length) this.#buffer = new Uint8Array(length)
    let filled = 0
    while (filled < length) {
      if (this.#chunk.length === 0) {
        const { done, value } = await this.#source.next()
        if (done) break
        this.#chunk = value
      }
      const part = this.#chunk.subarray(0, length - filled)
      this.#buffer.set(part, filled)
      this.#chunk = this.#chunk.subarray(part.length)
      filled += part.length
    }
    return this.#buffer.subarray(0, filled)
  }

  async close(): Promise<void> {
    await this.#source.return(undefined)
  }
}
