/** `admb regret`: the regret of predictions against the best fixed predictor in hindsight of the same inputs. */
import type { Command } from 'commander'
import {
  type BaselineFigures,
  baselineFor,
  type HindsightOptimum,
  hindsightOptimum,
  SerialTrainer
} from '../../learning/index.js'
import { add } from '../options/command.js'
import type { Flags } from '../options/table.js'
import { baselineLine } from '../output/metric-lines.js'
import { formatMean, formatNumber, ProgressLine, print, printJson } from '../output/output.js'
import { ProgressLogError, readProgress } from '../output/progress-log.js'
import { openLearning, Recorder } from '../training/learning.js'

/** Progressive sums. */
interface Served {
  readonly inputs: number
  readonly averageLoss: number
  readonly accuracy?: number
}

export function regretCommand(program: Command): Command {
  return add(
    program,
    'regret',
    {
      help: `Examples:
  admb regret --data ads.svm.gz --model logistic
  admb regret --data digits --log peer1.jsonl --log peer2.jsonl
  admb regret --data ads.csv --label sold --passes 3 --log peer.jsonl --json

Give the peers' --data and its options, without --shard: all data that they
learned from, with the same number of passes.`
    },
    regret
  )
}

async function regret(flags: Flags<'regret'>): Promise<void> {
  const logged = flags.log && fromLogs(flags.log)
  const { stream, options } = await openLearning(flags)
  const recorder = new Recorder(flags.data as string)
  const trainer = new SerialTrainer(options)
  const progress = new ProgressLine()
  for await (const rows of stream) {
    recorder.append(rows)
    if (logged === undefined) trainer.learn(rows)
    progress.show(() => `${formatNumber(recorder.size)} inputs read`)
  }
  const { examples } = recorder
  const labels = baselineFor(options, trainer.classifies)
  labels?.add(examples)
  const optimum = hindsightOptimum(options.model, examples, {
    classes: options.classes,
    maxPasses: flags.maxPasses,
    onStep: ({ gradientNorm, passes }) =>
      progress.show(() => `best predictor in hindsight: gradient ${gradientNorm.toExponential(1)}, ${passes} passes`)
  })
  progress.clear()
  const { inputs, averageLoss = 0, accuracy } = logged ?? trainer.report()
  show(flags, { inputs, averageLoss, accuracy }, optimum, labels?.figures)
}

function fromLogs(files: readonly string[]): Served {
  const { inputs, loss, hits } = readProgress(files)
  if (inputs === 0)
    throw new ProgressLogError(`${files.join(', ')}: no inputs yet: wait until the peers have learned some`)
  return {
    inputs,
    averageLoss: inputs > 0 ? loss / inputs : 0,
    accuracy: hits === undefined || inputs === 0 ? undefined : hits / inputs
  }
}

function show(
  { json }: Flags<'regret'>,
  { inputs, averageLoss, accuracy }: Served,
  { averageLoss: comparatorLoss, inputs: dataInputs, outcome, gradientNorm, weightNorm }: HindsightOptimum,
  baseline: BaselineFigures | undefined
): void {
  const regret = inputs * (averageLoss - comparatorLoss)
  if (json) {
    const found = { dataInputs, outcome, gradientNorm, weightNorm }
    printJson({ command: 'regret', inputs, averageLoss, accuracy, comparatorLoss, regret, baseline, ...found })
    return
  }
  print(`inputs          ${formatNumber(inputs)}`)
  print(`average loss    ${formatMean(averageLoss, inputs)}   (each input scored before it was learned)`)
  print(
    `in hindsight    ${comparatorLoss.toFixed(5)}   (${explain(outcome)}; gradient ${gradientNorm.toExponential(1)})`
  )
  print(`regret          ${regret.toFixed(1)}   (${formatMean(regret / inputs, inputs)} per input)`)
  if (baseline !== undefined) print(baselineLine(baseline, 16))
  if (accuracy !== undefined) print(`accuracy        ${(100 * accuracy).toFixed(2)} %`)
  if (inputs !== dataInputs) {
    const passes = (inputs / dataInputs).toFixed(3)
    print(
      `note            the logs have ${formatNumber(inputs)} inputs, the data ${formatNumber(dataInputs)} (${passes} times as many); the loss in hindsight is that of the data`
    )
  }
}

function explain(outcome: HindsightOptimum['outcome']): string {
  switch (outcome) {
    case 'minimum':
      return 'the best fixed predictor'
    case 'separable':
      return 'no best predictor: the classes are separable, and the loss falls to 0 as weights grow'
    case 'stopped':
      return 'not converged: give more --max-passes'
    default:
      return outcome satisfies never
  }
}
