/** Figures of an evaluation as lines: by class, and the table of classes and predictions. */
import type { EvaluationFigures } from '../../learning/index.js'
import { formatNumber } from './output.js'

/** Classes above which a table is left out; `--json` has it. */
const MOST_CLASSES = 20
const MOST_COLUMNS = 10
const MOST_CHARACTERS = 20

const ROWS = [
  ['macroF1', 'macro F1'],
  ['matthews', 'Matthews'],
  ['pearson', 'Pearson'],
  ['spearman', 'Spearman']
] as const

/** @param width of the names */
export function evaluationLines(figures: EvaluationFigures, width: number): string[] {
  return ROWS.flatMap(([key, name]) => {
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
