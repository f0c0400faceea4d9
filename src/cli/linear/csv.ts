/** Weights as CSV: a row for each feature, with a column for each class of several. */
import { decimal, type LinearModel, usedFeatures } from './model.js'

export function writeCsv(model: LinearModel): string {
  const { outputs, classNames } = model
  const nameOf = (output: number) => classNames?.[output] ?? String(output)
  const heads = outputs === 1 ? ['weight'] : Array.from({ length: outputs }, (_, output) => nameOf(output))
  const lines = [['index', 'feature', ...heads]]
  for (const { feature, own } of usedFeatures(model)) {
    lines.push([String(feature), model.nameOf(feature), ...Array.from(own, weight => String(decimal(weight)))])
  }
  return lines.map(line => `${line.map(quoted).join(',')}\n`).join('')
}

/** RFC 4180. */
function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
