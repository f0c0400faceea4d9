/** What the page shows as the error of predictions: the root mean squared error of a regression, the mean loss of other models. */
import type { PeerRow } from '../view/types.js'
import { formatLoss } from './format.js'

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
