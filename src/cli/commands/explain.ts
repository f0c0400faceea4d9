/** `admb explain`: what a stored predictor has learned, by the names of its features and columns. */
import type { Command } from 'commander'
import { Notices } from '../../base/errors.js'
import { openStream, RowBuffer } from '../../data/index.js'
import { type Examples, rowsOf } from '../../learning/index.js'
import { readsText } from '../../nn/spec/presets.js'
import { readableSpec } from '../../task/learning-spec.js'
import { checkFits, streamFor } from '../../task/stream.js'
import { UsageError } from '../errors.js'
import { type Importance, importanceOf, lossOf, rowsWithin } from '../explain/importance.js'
import { deviationsOf, FeatureNames, namedWeights, type Weights } from '../explain/weights.js'
import { add } from '../options/command.js'
import { executionOf, readOptions } from '../options/settings.js'
import type { Flags } from '../options/table.js'
import { SkippedInputs } from '../output/malformed.js'
import { formatNumber, ProgressLine, print, printJson, timeLeft, warn } from '../output/output.js'
import { loadStored, type Stored } from '../training/stored.js'

/** Rows of the data that are read at most without `--limit`, of a linear model and of a network. */
const LINEAR_ROWS = 10_000
const NETWORK_ROWS = 1000
const REPEATS = 5
const TOP = 20

export function explainCommand(program: Command): Command {
  return add(
    program,
    'explain',
    {
      help: `Prints the weights of a linear model by name. With --data also the importance
of each column: the increase of the loss when its values are permuted among the
rows, for any model. The rows also name the hashed features.

Examples:
  admb explain --dir model
  admb explain --dir model --data test.csv --json`
    },
    explain
  )
}

interface Explained extends Partial<Weights> {
  /** Inputs whose columns were permuted. */
  readonly inputs?: number
  /** Inputs that were read. */
  readonly rows?: number
  readonly loss?: number
  readonly importance?: readonly Importance[]
}

async function explain(flags: Flags<'explain'>): Promise<void> {
  const loaded = await loadStored(flags.dir, executionOf(flags))
  const { predictor } = loaded
  const spec = readableSpec(loaded.spec, predictor.parameters)
  const stored = { ...loaded, spec }
  const isLinear = spec.network === undefined
  if (!isLinear && flags.data === undefined) {
    throw new UsageError(
      'the weights of a network explain nothing by themselves: give --data FILE for the importance of columns'
    )
  }
  if (spec.network && readsText(spec.network.layers)) {
    throw new UsageError('a model that reads text has no columns to explain: give --dir of a model of a table')
  }
  const names = new FeatureNames(spec.features)
  const { rows, check } = flags.data === undefined ? {} : await readRows(flags, stored, names)
  const parameters = flags.predictWith === 'current' ? predictor.parameters : predictor.average
  const weights = isLinear ? namedWeights(stored, parameters[0], names, rows && deviationsOf(rows)) : undefined
  const data = rows && measured(flags, stored, names, rows)
  show(flags, stored, { ...weights, ...data })
  check?.()
}

/** Labelled rows of the data, whose values name the hashed features. */
async function readRows(flags: Flags<'explain'>, { spec, scaling }: Stored, names: FeatureNames) {
  const options = streamFor(spec, readOptions(flags))
  const skipped = new SkippedInputs(flags.shard)
  const notices = new Notices(warn)
  const maxRows = flags.limit ?? (spec.network ? NETWORK_ROWS : LINEAR_ROWS)
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

function measured(flags: Flags<'explain'>, { spec, learner, predictor }: Stored, names: FeatureNames, all: Examples) {
  const weights = learner.layout.blocks.reduce((sum, { length }) => sum + length, 0)
  const size = flags.limit === undefined ? rowsWithin(all, spec.network && weights) : all.size
  const rows = rowsOf(all, 0, size)
  const parameters = flags.predictWith === 'current' ? predictor.parameters : predictor.average
  const progress = new ProgressLine()
  const start = performance.now()
  const importance = importanceOf({
    learner,
    parameters,
    rows,
    columnOf: feature => (names.isConstant(feature) ? undefined : names.columnOf(feature)),
    repeats: flags.repeats ?? REPEATS,
    seed: flags.seed ?? 0,
    onProgress: share => progress.show(() => `permuting columns${timeLeft(share, (performance.now() - start) / 1000)}`)
  })
  progress.clear()
  return { inputs: size, rows: all.size, loss: lossOf({ learner, parameters }, rows), importance }
}

function show(
  flags: Flags<'explain'>,
  { spec, predictor }: Stored,
  { weights, constant, inputs = 0, rows: read = 0, loss, importance }: Explained
): void {
  const count = flags.top ?? TOP
  const top = { weights: weights?.slice(0, count), importance: importance?.slice(0, count) }
  if (flags.json) {
    printJson({
      command: 'explain',
      model: spec.model,
      inputs: importance && inputs,
      loss,
      constant,
      ...top,
      predictor: predictor.id
    })
    return
  }
  if (constant !== undefined) print(`constant  ${constant.map(format).join(' ')}`)
  if (top.weights !== undefined) {
    const isClassified = top.weights.some(weight => weight.class !== undefined)
    table(
      ['feature', ...(isClassified ? ['class'] : []), 'weight', 'per unit', 'effect'],
      top.weights.map(weight => [
        weight.feature,
        ...(isClassified ? [weight.class ?? ''] : []),
        ...[weight.weight, weight.perUnit, weight.effect].map(format)
      ]),
      isClassified ? 2 : 1
    )
    more(weights, count, 'weights')
  }
  if (top.importance === undefined) return
  if (top.weights !== undefined) print('')
  const part = inputs < read ? `the first ${formatNumber(inputs)} of ${formatNumber(read)}` : formatNumber(inputs)
  print(`loss ${format(loss)} on ${part} inputs${inputs < read ? ': more take long (--limit N)' : ''}`)
  const rows = top.importance.map(({ column, increase, deviation }) => [column, format(increase), format(deviation)])
  table(['column permuted', 'increase', '±'], rows, 1)
  more(importance, count, 'columns')
}

function more(all: readonly unknown[] | undefined, shown: number, what: string): void {
  const left = (all?.length ?? 0) - shown
  if (left > 0) print(`and ${formatNumber(left)} more ${what}: --top ${all?.length}`)
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
