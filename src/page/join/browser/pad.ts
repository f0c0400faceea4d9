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
