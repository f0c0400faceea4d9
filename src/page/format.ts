/**
 * How the page displays numbers, times, names, predictors and errors. The error of a regression is the root mean squared error;
 * other models show the mean loss.
 */
import type { PeerRow } from '../view/types.js'

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })

export const formatCount = (value: number): string => whole.format(value)

/** A loss or an error, such as `0.3245`, `60,195` or `1.21e12`; a dash for an unknown value. */
export function formatLoss(loss: number | undefined): string {
  if (loss === undefined) return '–'
  if (loss >= 1e9) return loss.toExponential(2).replace('+', '')
  if (loss >= 1000) return formatCount(loss)
  if (loss >= 100) return loss.toFixed(2)
  return loss > 0 && loss < 0.001 ? loss.toPrecision(3) : loss.toFixed(4)
}

/** R², which has no lower bound. */
export const formatR2 = (r2: number | undefined): string =>
  r2 === undefined ? '–' : r2 < -99 ? '< −99' : r2.toFixed(3).replace('-', '−')

export const formatShare = (share: number | undefined): string =>
  share === undefined ? '–' : `${(100 * share).toFixed(1)} %`

/** A rate, with one decimal if it is below 10. */
export const formatRate = (perSecond: number): string =>
  perSecond > 0 && perSecond < 10 ? perSecond.toFixed(1) : whole.format(perSecond)

/** Such as `ε 2.35 of 8`: rounded up, so that the budget never seems smaller than it is spent. */
export const formatBudget = ({ epsilon, spent }: NonNullable<PeerRow['privacy']>): string =>
  `ε ${Math.min(epsilon, Math.ceil(100 * spent) / 100)} of ${epsilon}`

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB']

/** Three digits and a unit, where 1 kB is 1000 bytes. */
export function formatBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000
    unit++
  }
  return `${unit === 0 || value >= 99.95 ? value.toFixed(0) : value.toPrecision(3)} ${UNITS[unit]}`
}

/** An age in milliseconds, such as `5 s ago`. */
export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 3) return 'now'
  if (seconds < 120) return `${seconds} s ago`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min ago`
  return `${Math.round(seconds / 3600)} h ago`
}

/** Minutes and seconds, or hours and minutes: `0:05`, `12:30`, `3 h 05`. */
export function formatDuration(seconds: number): string {
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0')
  if (seconds < 3600) return `${Math.floor(seconds / 60)}:${two(seconds % 60)}`
  return `${Math.floor(seconds / 3600)} h ${two((seconds % 3600) / 60)}`
}

/** A peer's display name, or the end of its id, which differs between peers. */
export function peerName(id: string, peers: ReadonlyMap<string, Pick<PeerRow, 'name'>>): string {
  return peers.get(id)?.name ?? `…${id.slice(-6)}`
}

/** `a`, `a and b`, `a, b and c`, or `a, b and 7 more`. */
export function listOf(names: readonly string[], count = names.length): string {
  const shown = count > 4 ? names.slice(0, 3) : names
  const rest = count - shown.length
  const parts = rest > 0 ? [...shown, `${formatCount(rest)} more`] : shown
  return parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts[parts.length - 1]}`
}

/** Number of colours `--mark-0` … in `browser/style.css`, a palette that is distinguishable with common colour vision deficiencies. */
export const MARKS = 8

/** CSS value of the colour of a predictor's group. If there are more groups than colours, groups differ by their letters. */
export function markColour(group: number): string {
  return `var(--mark-${group % MARKS})`
}

/** Letter of a predictor's group, so that groups differ without colours: A, B, …, Z, A2, … */
export function markLetter(group: number): string {
  const round = Math.floor(group / 26)
  return String.fromCharCode(65 + (group % 26)) + (round === 0 ? '' : String(round + 1))
}

type Figures = Pick<NonNullable<PeerRow['recent']>, 'loss' | 'rmse' | 'inputs' | 'r2'>

export interface Measure {
  /** In a heading, and within a sentence. */
  readonly name: 'Loss' | 'RMSE'
  readonly noun: 'loss' | 'RMSE'
  /** The shown figure of a mean loss. */
  readonly of: (loss: number) => number
}

const LOSS: Measure = { name: 'Loss', noun: 'loss', of: loss => loss }
/** The loss of a regression is half the mean squared error. */
const RMSE: Measure = { name: 'RMSE', noun: 'RMSE', of: loss => Math.sqrt(2 * loss) }

/** Losses and errors of statuses are rounded to seven digits. */
const ROUNDING = 1e-5

/** Whether the loss is half the squared error. The losses of plug-ins can be others. */
export function isSquaredError({ loss, rmse }: Pick<Figures, 'loss' | 'rmse'>): boolean {
  return rmse !== undefined && Math.abs((rmse * rmse) / 2 - loss) <= ROUNDING * loss
}

/** All peers of a network learn one model, so they have one measure. */
export function measureOf(rows: readonly Pick<PeerRow, 'recent'>[]): Measure {
  const known = rows.flatMap(({ recent }) => recent ?? [])
  return known.length > 0 && known.every(isSquaredError) ? RMSE : LOSS
}

/** A mean loss as the shown figure. */
export function formatError(measure: Measure, loss: number | undefined): string {
  return formatLoss(loss === undefined ? undefined : measure.of(loss))
}

/**
 * R² of several peers over their last inputs: 1 − Σ squared errors / Σ squared deviations from the mean target of each peer.
 * Undefined if it is unknown for one of them.
 */
export function pooledR2(rows: readonly Pick<PeerRow, 'recent'>[]): number | undefined {
  let errors = 0
  let deviations = 0
  for (const { recent } of rows) {
    if (recent === undefined) continue
    const { inputs, rmse, r2 } = recent
    // All targets are equal, or all predictions are exact.
    if (rmse === undefined || r2 === undefined || r2 === 1) return undefined
    errors += inputs * rmse * rmse
    deviations += (inputs * rmse * rmse) / (1 - r2)
  }
  return deviations > 0 ? 1 - errors / deviations : undefined
}
