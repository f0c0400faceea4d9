/** Output: results go to stdout, everything else to stderr, progress only to a terminal. */
import pico from 'picocolors'
import { listed } from '../../data/index.js'
import type { Coverage } from '../../nn/weights/exchange.js'

/** One JSON object as one line on stdout. */
export function printJson(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`)
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** A line on stderr about what the user should know. */
export function warn(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** Colours of stdout: none if NO_COLOR is set or stdout is not a terminal. */
export const colour = pico.createColors(pico.isColorSupported && process.stdout.isTTY === true)

export function formatNumber(value: number): string {
  const rounded = Math.round(value)
  // The first number that `toLocaleString` formats takes 20 ms.
  if (!Number.isSafeInteger(rounded)) return value.toLocaleString('en-US', { maximumFractionDigits: 0 })
  return String(rounded).replace(/\B(?=(?:\d{3})+$)/g, ',')
}

/** `1 row`, or another number of rows. */
export function formatRows(count: number): string {
  return `${formatNumber(count)} row${count === 1 ? '' : 's'}`
}

/** A mean over inputs with that number of digits, or a dash without inputs. */
export function formatMean(value: number | undefined, inputs: number, digits = 5): string {
  return value === undefined || inputs === 0 ? '–' : value.toFixed(digits)
}

/** A line on stderr that is overwritten a few times a second. Prints nothing unless stderr is a terminal. */
export class ProgressLine {
  readonly #every = 200
  #next = 0

  show(text: () => string): void {
    if (process.stderr.isTTY !== true || performance.now() < this.#next) return
    this.#next = performance.now() + this.#every
    process.stderr.write(`\r\x1b[2K${text()}`)
  }

  clear(): void {
    if (process.stderr.isTTY === true && this.#next > 0) process.stderr.write('\r\x1b[2K')
  }
}

/** Such as `, 42 %, 7 s left`; empty while unknown. @param share of the work that is done, 0 to 1 */
export function timeLeft(share: number | undefined, seconds: number): string {
  if (share === undefined || share === 0) return ''
  return `, ${Math.floor(100 * share)} %, ${formatDuration((seconds / share) * (1 - share))} left`
}

/** @param seconds rounded up */
export function formatDuration(seconds: number): string {
  const whole = Math.ceil(seconds)
  if (whole < 60) return `${whole} s`
  const minutes = Math.floor(whole / 60)
  return minutes < 60 ? `${minutes} min ${whole % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

export function showCoverage(coverage: Pick<Coverage, 'missing' | 'unneeded'> | undefined): void {
  const { missing, unneeded } = coverage ?? { missing: [], unneeded: [] }
  if (missing.length > 0) warn(`new weights, which the checkpoint lacks: ${listed(missing)}`)
  if (unneeded.length > 0) warn(`tensors of the checkpoint that the model does not need: ${listed(unneeded)}`)
}
