/**
 * The inputs that a visitor gives to the peer: rows of a file or a built-in stream, digits drawn on a pad, and their rate.
 */

import type { Peer } from '../../../browser/index.js'
import { imageRow, RowReader, type Rows } from '../requests.js'

/** Rows in a request. */
const REQUEST_ROWS = 32
const PIXELS = 28 * 28
const GZIP = [0x1f, 0x8b]
const NOT_TEXT = 'the file is not text in UTF-8: save the table as CSV in UTF-8, and choose that file'

/** The built-in digits, again and again in a new order. */
export async function* digitRows(signal: AbortSignal): AsyncGenerator<Rows> {
  const response = await fetch('digits', { signal })
  if (!response.ok) throw new Error(`the digits could not be loaded (HTTP status ${response.status})`)
  const bytes = new Uint8Array(await response.arrayBuffer())
  const count = bytes.length / (1 + PIXELS)
  for (;;) {
    const order = shuffled(count)
    for (let from = 0; from < count; from += REQUEST_ROWS) {
      const rows = order
        .slice(from, from + REQUEST_ROWS)
        .map(digit => imageRow(bytes.subarray(count + digit * PIXELS, count + (digit + 1) * PIXELS), bytes[digit]))
      yield { format: 'libsvm', text: `${rows.join('\n')}\n`, count: rows.length }
    }
  }
}

/** The rows of a file, once. @throws Error if it is not text */
export async function* fileRows(file: Blob): AsyncGenerator<Rows> {
  const head = new Uint8Array(await file.slice(0, 2).arrayBuffer())
  const isGzip = GZIP.every((byte, i) => head[i] === byte)
  const bytes = isGzip ? file.stream().pipeThrough(new DecompressionStream('gzip')) : file.stream()
  const rows = new RowReader(REQUEST_ROWS)
  for await (const part of textOf(bytes)) yield* rows.push(part)
  yield* rows.end()
}

async function* textOf(bytes: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  const reader = bytes.pipeThrough(new TextDecoderStream('utf-8', { fatal: true })).getReader()
  for (;;) {
    const part = await reader.read().catch(() => undefined)
    if (part === undefined || part.value?.includes('\0')) throw new Error(NOT_TEXT)
    if (part.done) return
    yield part.value
  }
}

/** The rows that the visitor has chosen, as requests. */
export function typedRows(text: string): Rows[] {
  const rows = new RowReader(REQUEST_ROWS)
  return [...rows.push(text), ...rows.end()]
}

/** Fisher and Yates. */
function shuffled(count: number): number[] {
  const order = Array.from({ length: count }, (_, index) => index)
  for (let last = count - 1; last > 0; last--) {
    const chosen = Math.floor(Math.random() * (last + 1))
    ;[order[last], order[chosen]] = [order[chosen], order[last]]
  }
  return order
}

/** An area to draw a digit, which becomes an image of 28 × 28 pixels like those of MNIST. */
const SIZE = 28
/** The digit lies in a square of this size, and its centre of mass in the middle of the image. */
const BOX = 20
const LINE = 22

export class Pad {
  readonly #canvas: HTMLCanvasElement
  readonly #context: CanvasRenderingContext2D
  #isEmpty = true

  /** @param onDrawn called after each line with the image: 784 bytes, 0 for the background */
  constructor(canvas: HTMLCanvasElement, onDrawn: (pixels: Uint8Array) => void) {
    this.#canvas = canvas
    this.#context = canvas.getContext('2d', { willReadFrequently: true }) as CanvasRenderingContext2D
    this.clear()
    canvas.addEventListener('pointerdown', event => {
      canvas.setPointerCapture(event.pointerId)
      this.#context.beginPath()
      this.#lineTo(event)
    })
    canvas.addEventListener('pointermove', event => {
      if (event.buttons !== 0) this.#lineTo(event)
    })
    canvas.addEventListener('pointerup', () => {
      if (!this.#isEmpty) onDrawn(this.#image())
    })
  }

  clear(): void {
    const { width, height } = this.#canvas
    this.#isEmpty = true
    this.#context.fillStyle = '#ffffff'
    this.#context.fillRect(0, 0, width, height)
  }

  #lineTo({ offsetX, offsetY }: PointerEvent): void {
    const scale = this.#canvas.width / this.#canvas.clientWidth
    const context = this.#context
    this.#isEmpty = false
    context.lineWidth = LINE
    context.lineCap = 'round'
    context.lineJoin = 'round'
    context.strokeStyle = '#000000'
    context.lineTo(offsetX * scale, offsetY * scale)
    context.stroke()
  }

  #image(): Uint8Array {
    const { width, height } = this.#canvas
    const ink = inkOf(this.#context.getImageData(0, 0, width, height))
    let [left, right, top, bottom] = [width, 0, height, 0]
    let [sum, sumX, sumY] = [0, 0, 0]
    ink.forEach((value, i) => {
      if (value === 0) return
      const [x, y] = [i % width, Math.floor(i / width)]
      left = Math.min(left, x)
      right = Math.max(right, x)
      top = Math.min(top, y)
      bottom = Math.max(bottom, y)
      sum += value
      sumX += value * x
      sumY += value * y
    })
    const scale = BOX / Math.max(right - left + 1, bottom - top + 1)
    const small = new OffscreenCanvas(SIZE, SIZE).getContext('2d') as OffscreenCanvasRenderingContext2D
    small.fillStyle = '#ffffff'
    small.fillRect(0, 0, SIZE, SIZE)
    small.imageSmoothingQuality = 'high'
    const [x, y] = [SIZE / 2 - (sumX / sum) * scale, SIZE / 2 - (sumY / sum) * scale]
    small.drawImage(this.#canvas, x, y, width * scale, height * scale)
    return inkOf(small.getImageData(0, 0, SIZE, SIZE))
  }
}

/** Black is 255, white is 0. */
function inkOf({ data }: ImageData): Uint8Array {
  return Uint8Array.from({ length: data.length / 4 }, (_, i) => 255 - data[4 * i])
}

/** Rows that may be due at once, in seconds of the rate: less after a pause of the tab. */
const BURST_S = 2
/** Number of first rows, one of which must fit the model. Otherwise the source is the wrong one. */
const TRIED_ROWS = 32

/**
 * Gives rows to the peer at a rate. It runs with each status of the peer, which the learner's thread sends four times a second also
 * when the tab is hidden and its timers stand still.
 */
interface Fed {
  readonly learned: number
  readonly refused: number
  /** Why the last row was refused. */
  readonly reason?: string
  /** Whether there are no further rows. */
  readonly ended: boolean
  /** Why the source as a whole is refused. */
  readonly problem?: string
}

export class Feeder {
  readonly #peer: Peer
  readonly #rows: AsyncIterator<Rows>
  readonly #rate: number
  readonly #onChange: (fed: Fed) => void
  readonly #run = () => void this.#feed()
  #fed: Fed = { learned: 0, refused: 0, ended: false }
  #due = 0
  #at = performance.now()
  #isBusy = false

  /** @param rate rows a second */
  constructor(peer: Peer, rows: AsyncIterable<Rows>, rate: number, onChange: (fed: Fed) => void) {
    this.#peer = peer
    this.#rows = rows[Symbol.asyncIterator]()
    this.#rate = rate
    this.#onChange = onChange
    peer.on('status', this.#run)
    this.#run()
  }

  stop(): void {
    this.#peer.off('status', this.#run)
    void this.#rows.return?.()
  }

  async #feed(): Promise<void> {
    const now = performance.now()
    this.#due = Math.min(BURST_S * this.#rate, this.#due + (this.#rate * (now - this.#at)) / 1000)
    this.#at = now
    if (this.#isBusy || this.#fed.ended) return
    this.#isBusy = true
    try {
      while (this.#due >= 0) {
        const next = await this.#rows.next()
        if (next.done) {
          this.#checkFit(1)
          this.#note({ ended: true })
          return
        }
        this.#due -= next.value.count
        await this.#learn(next.value)
      }
    } catch (error) {
      this.#note({ ended: true, problem: (error as Error).message })
      this.stop()
    } finally {
      this.#isBusy = false
    }
  }

  /** Learns rows. If one is malformed, none of them is learned, so they are tried one by one. */
  async #learn(rows: Rows): Promise<void> {
    try {
      await this.#request(rows)
      this.#note({ learned: this.#fed.learned + rows.count })
    } catch (error) {
      if (rows.count > 1) for (const row of singly(rows)) await this.#learn(row)
      else {
        this.#fed = { ...this.#fed, refused: this.#fed.refused + 1, reason: (error as Error).message }
        this.#checkFit(TRIED_ROWS)
        this.#note({})
      }
    }
  }

  /** @throws Error if no row fits, of that many or more */
  #checkFit(rows: number): void {
    const { learned, refused, reason = '' } = this.#fed
    if (learned > 0 || refused < rows) return
    const tried = refused === 1 ? 'the row does not fit' : `none of the first ${refused} rows fits`
    throw new Error(
      `${tried} what this network learns: choose other rows. The reason is: ${reason.replace(/^request: /, '')}`
    )
  }

  #request({ format, text }: Rows): Promise<unknown> {
    return this.#peer.request({ action: 'learn', format, body: new TextEncoder().encode(text) })
  }

  #note(change: Partial<Fed>): void {
    this.#fed = { ...this.#fed, ...change }
    this.#onChange(this.#fed)
  }
}

/** Each row on its own. */
function singly({ format, text }: Rows): Rows[] {
  const reader = new RowReader(1, format)
  return [...reader.push(text), ...reader.end()]
}
