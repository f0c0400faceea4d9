/** How far runs are, in inputs, and how long the rest will take: one line on a terminal, nothing elsewhere. */
import { formatDuration, ProgressLine } from '../output/output.js'

const BAR = 24

export class InputProgress {
  readonly #line = new ProgressLine()
  readonly #start = performance.now()
  readonly #total: number

  /** @param total inputs of all runs */
  constructor(total: number) {
    this.#total = total
  }

  /** @param done inputs served so far, in all runs @param what the runs that are at it */
  show(done: number, what: string): void {
    this.#line.show(() => {
      const share = Math.min(1, done / this.#total)
      const seconds = (performance.now() - this.#start) / 1000
      const left = share > 0 ? `, ${formatDuration((seconds / share) * (1 - share))} left` : ''
      const full = Math.floor(share * BAR)
      return `${'█'.repeat(full)}${'░'.repeat(BAR - full)} ${Math.floor(100 * share)} %, ${what}${left}`
    })
  }

  clear(): void {
    this.#line.clear()
  }
}
