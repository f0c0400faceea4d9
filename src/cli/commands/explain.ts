/** `admb explain`: what a stored predictor has learned, by the names of its features and columns. */
import type { Command } from 'commander'
import { Notices } from '../../base/errors.js'
import { openStream, RowBuffer } from '../../data/index.js'
import { readableSpec } from '../../task/learning-parts.js'
import { checkFits, streamFor } from '../../task/stream.js'
import { UsageError } from '../errors.js'
import { deviationsOf, FeatureNames, namedWeights, type Weights } from '../explain/weights.js'
import { add } from '../options/command.js'
import { readOptions } from '../options/settings.js'
import type { Flags } from '../options/table.js'
import { SkippedInputs } from '../output/malformed.js'
import { formatNumber, print, printJson, warn } from '../output/output.js'
import { loadStored, type Stored } from '../training/stored.js'

/** Rows of the data that are read at most without `--limit`. */
const MAX_ROWS = 10_000
const TOP = 20

export function explainCommand(program: Command): Command {
  return add(
    program,
    'explain',
    {
      help: `Prints the weights of a linear model by name. The rows of --data name the
hashed features, and say how much each feature varies.

Examples:
  admb explain --dir model
  admb explain --dir model --data test.csv --json`
    },
    explain
  )
}

async function explain(flags: Flags<'explain'>): Promise<void> {
  const loaded = await loadStored(flags.dir, undefined)
  const { predictor } = loaded
  const spec = readableSpec(loaded.spec, predictor.parameters)
  const stored = { ...loaded, spec }
  if (spec.network !== undefined) {
    throw new UsageError('the weights of a network explain nothing by themselves: give --dir of a linear model')
  }
  const names = new FeatureNames(spec.features)
  const { rows, check } = flags.data === undefined ? {} : await readRows(flags, stored, names)
  const parameters = flags.predictWith === 'current' ? predictor.parameters : predictor.average
  show(flags, stored, namedWeights(stored, parameters[0], names, rows && deviationsOf(rows)))
  check?.()
}

/** Labelled rows of the data, whose values name the hashed features. */
async function readRows(flags: Flags<'explain'>, { spec, scaling }: Stored, names: FeatureNames) {
  const options = streamFor(spec, readOptions(flags))
  const skipped = new SkippedInputs(flags.shard)
  const notices = new Notices(warn)
  const maxRows = flags.limit ?? MAX_ROWS
  const onHashed = spec.features.columns && names.note
  const stream = await openStream({
    ...options,
    scaling,
    maxRows,
    onHashed,
    onMalformed: skipped.add,
    onNotice: notices.add
  })
  checkFits(spec, stream)
  const kept = new RowBuffer()
  let unlabelled = 0
  for await (const batch of stream) {
    for (let row = 0; row < batch.size; row++) {
      if (Number.isNaN(batch.labels[row])) unlabelled++
      else kept.append(batch, row)
    }
  }
  notices.show()
  skipped.requireInputs(options.data, kept.size, unlabelled)
  const check = () => skipped.checkLimit(options.data, kept.size, unlabelled, flags.skipLimit)
  return { rows: kept.view(), check }
}

function show(flags: Flags<'explain'>, { spec, predictor }: Stored, { weights, constant }: Weights): void {
  const shown = weights.slice(0, flags.top ?? TOP)
  if (flags.json) {
    printJson({ command: 'explain', model: spec.model, constant, weights: shown, predictor: predictor.id })
    return
  }
  if (constant !== undefined) print(`constant  ${constant.map(format).join(' ')}`)
  const isClassified = shown.some(weight => weight.class !== undefined)
  table(
    ['feature', ...(isClassified ? ['class'] : []), 'weight', 'per unit', 'effect'],
    shown.map(weight => [
      weight.feature,
      ...(isClassified ? [weight.class ?? ''] : []),
      ...[weight.weight, weight.perUnit, weight.effect].map(format)
    ]),
    isClassified ? 2 : 1
  )
  const left = weights.length - shown.length
  if (left > 0) print(`and ${formatNumber(left)} more weights: --top ${weights.length}`)
}

function format(value: number | undefined): string {
  if (value === undefined) return '-'
  if (value === 0) return '0'
  return Math.abs(value) < 1000 ? value.toPrecision(4) : value.toFixed(1)
}

/** @param texts number of columns at the left that hold text */
function table(head: readonly string[], rows: readonly (readonly string[])[], texts: number): void {
  const widths = head.map((name, i) => Math.max(name.length, ...rows.map(row => row[i].length)))
  for (const row of [head, ...rows]) {
    const cells = row.map((cell, i) => (i < texts ? cell.padEnd(widths[i]) : cell.padStart(widths[i])))
    print(cells.join('  ').trimEnd())
  }
}
