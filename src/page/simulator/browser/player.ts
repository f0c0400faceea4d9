/** Plays the frames of a run: forward in real time as they arrive, or wherever the slider is. */
import { byId, setAttribute, setText } from '../../browser/dom.js'

/** Seconds that a run takes at least at normal speed, with more than this number of frames per second. */
const LEAST_SECONDS = 12
const LEAST_RATE = 3

const isCalm = matchMedia('(prefers-reduced-motion: reduce)')

export class Player {
  readonly #slider = byId<HTMLInputElement>('position')
  readonly #button = byId<HTMLButtonElement>('play')
  readonly #onMove: (index: number) => void
  #length = 0
  #at = 0
  #drawn = -1
  #isPlaying = true
  #rate = 15
  #before = 0

  /** @param onMove called with the index of the frame to draw */
  constructor(onMove: (index: number) => void) {
    this.#onMove = onMove
    this.#slider.addEventListener('input', () => {
      this.#play(false)
      this.#at = this.#slider.valueAsNumber
    })
    this.#button.addEventListener('click', () => {
      // At the end, it starts again.
      if (!this.#isPlaying && this.#at >= this.#length - 1) this.#at = 0
      this.#play(!this.#isPlaying)
    })
    requestAnimationFrame(now => this.#tick(now))
  }

  /** @param rate frames per second at normal speed */
  reset(rate: number): void {
    this.#rate = rate
    this.#length = 0
    this.#at = 0
    this.#drawn = -1
    // The last frame is drawn instead, once the run has ended.
    this.#play(!isCalm.matches)
  }

  /** Tells the number of frames so far. */
  extend(length: number): void {
    this.#length = length
    this.#slider.max = String(Math.max(0, length - 1))
  }

  /** All frames are there. Few of them are played slowly. */
  end(): void {
    this.#rate = Math.min(this.#rate, Math.max(LEAST_RATE, this.#length / LEAST_SECONDS))
    if (isCalm.matches) this.#at = Math.max(0, this.#length - 1)
  }

  /** Draws the frame again. */
  redraw(): void {
    this.#drawn = -1
  }

  /** Describes the position for screen readers. */
  describe(text: string): void {
    setAttribute(this.#slider, 'aria-valuetext', text)
  }

  #play(isPlaying: boolean): void {
    this.#isPlaying = isPlaying
    setText(this.#button, isPlaying ? 'Pause' : 'Play')
  }

  #tick(now: number): void {
    const seconds = Math.min(0.1, (now - this.#before) / 1000)
    this.#before = now
    const last = this.#length - 1
    if (this.#isPlaying && last >= 0) {
      const speed = Number(byId<HTMLSelectElement>('speed').value)
      this.#at = Math.min(last, this.#at + seconds * this.#rate * speed)
    }
    const index = Math.floor(this.#at)
    if (index !== this.#drawn && index <= last) {
      this.#drawn = index
      this.#slider.value = String(index)
      this.#onMove(index)
    }
    requestAnimationFrame(time => this.#tick(time))
  }
}
