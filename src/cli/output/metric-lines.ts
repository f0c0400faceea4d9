/** Figures of a learner as lines: since the start, over the last inputs, and by class. */
import type { BaselineFigures, Drift, EvaluationFigures, Figures, Metrics } from '../../learning/index.js'
import { windowName } from '../../view/index.js'
import { formatNumber } from './output.js'

const share = (value: number) => `${(100 * value).toFixed(2)} %`
const plain = (value: number) => (Math.abs(value) < 1000 ? value.toFixed(4) : value.toPrecision(6))

/** Figures in the order of their lines, except those that the caller prints itself. */
const ROWS: readonly (readonly [key: keyof Figures, name: string, format: (value: number) => string])[] = [
  ['balancedAccuracy', 'balanced', share],
  ['auc', 'AUC', plain],
  ['calibrationError', 'calibration', plain],
  ['rmse', 'RMSE', plain],
  ['mae', 'MAE', plain],
  ['r2', 'R²', plain],
  ['perplexity', 'perplexity', plain]
]

/** @param width of the names */
export function figureLines(figures: Figures, width: number): string[] {
  return ROWS.flatMap(([key, name, format]) => {
    const value = figures[key]
    return typeof value === 'number' ? [`${name.padEnd(width)}${format(value)}`] : []
  })
}

/** What predictions that learn nothing reach, as a line. @param width of the name */
export function baselineLine({ accuracy, rmse, previous }: BaselineFigures, width: number): string {
  const own =
    accuracy === undefined
      ? `RMSE ${plain(rmse ?? 0)} of the mean, ${plain(previous.rmse ?? 0)} of the number before`
      : `${share(accuracy)} correct with the most frequent class, ${share(previous.accuracy ?? 0)} with the same as the last`
  return `${'baseline'.padEnd(width)}${own}`
}

/** A line for each window that is smaller than the run. @param width of the names */
export function windowLines({ total, recent, byTime }: Metrics, width: number): string[] {
  const windows = recent.filter(({ window }) => window < total.inputs)
  const timed = byTime?.windows.filter(({ inputs }) => inputs > 0 && inputs < total.inputs) ?? []
  return [
    ...windows.map(figures => `${`last ${formatNumber(figures.window)}`.padEnd(width)}${summary(figures)}`),
    ...timed.map(({ seconds, ...figures }) => {
      const count = `${formatNumber(figures.inputs)} input${figures.inputs === 1 ? '' : 's'}`
      return `${`last ${windowName(seconds)}`.padEnd(width)}${summary(figures)} (${count})`
    })
  ]
}

/** Such as `loss 0.32451, 84.91 % correct`. */
export function summary({ loss, accuracy, rmse }: Figures): string {
  const parts = [`loss ${loss.toFixed(5)}`]
  if (accuracy !== undefined) parts.push(`${share(accuracy)} correct`)
  if (rmse !== undefined) parts.push(`RMSE ${plain(rmse)}`)
  return parts.join(', ')
}

/** Such as `2 × the loss rose, the last time noticed after 12,345 inputs`. @param drift with at least one alarm */
export function driftSummary({ alarms, recent }: Drift): string {
  const { inputs } = recent[recent.length - 1]
  return `${formatNumber(alarms)} × the loss rose, the last time noticed after ${formatNumber(inputs)} inputs`
}

/** Classes above which a table is left out; `--json` has it. */
const MOST_CLASSES = 20
const MOST_COLUMNS = 10
const MOST_CHARACTERS = 20

const CLASS_ROWS = [
  ['macroF1', 'macro F1'],
  ['matthews', 'Matthews'],
  ['pearson', 'Pearson'],
  ['spearman', 'Spearman']
] as const

/** @param width of the names */
export function evaluationLines(figures: EvaluationFigures, width: number): string[] {
  return CLASS_ROWS.flatMap(([key, name]) => {
    const value = figures[key]
    return value === undefined ? [] : [`${name.padEnd(width)}${value.toFixed(4)}`]
  })
}

/** The figures of each class, and how often it was predicted as each other. @param names of the classes @default their numbers */
export function classTables({ byClass = [], confusion }: EvaluationFigures, names?: readonly string[]): string[] {
  if (byClass.length === 0 || byClass.length > MOST_CLASSES) return []
  const labels = byClass.map((_, k) => shortened(names?.[k] ?? String(k)))
  const rows = byClass.map(({ inputs, precision, recall, f1 }, k) => {
    const shares = [precision, recall, f1].map(share => share.toFixed(4))
    return [labels[k], formatNumber(inputs), ...shares]
  })
  const lines = ['', ...table([['class', 'inputs', 'precision', 'recall', 'F1'], ...rows])]
  if (confusion === undefined || confusion.length > MOST_COLUMNS) return lines
  const counts = confusion.map((row, k) => [labels[k], ...row.map(formatNumber)])
  return [...lines, '', ...table([['predicted', ...labels], ...counts])]
}

function shortened(name: string): string {
  return name.length > MOST_CHARACTERS ? `${name.slice(0, MOST_CHARACTERS - 1)}…` : name
}

/** The first column on the left, the others on the right. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0].map((_, column) => Math.max(...rows.map(row => row[column].length)))
  return rows.map(row => row.map((cell, k) => (k === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[k]))).join('  '))
}
