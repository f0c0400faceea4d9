/** `admb eval`: scores a stored predictor on labelled data without learning. */
import type { Command } from 'commander'
import { importance, Notices } from '../../base/errors.js'
import { openStream } from '../../data/index.js'
import { baselineFor, Evaluation, hasPlainLoss, type Score, uselessLoss } from '../../learning/index.js'
import { readableSpec } from '../../task/learning-parts.js'
import { checkFits, streamFor } from '../../task/stream.js'
import { moreText } from '../../task/text.js'
import { UsageError } from '../errors.js'
import { add } from '../options/command.js'
import { readOptions } from '../options/settings.js'
import type { Flags } from '../options/table.js'
import { SkippedInputs } from '../output/malformed.js'
import { baselineLine, classTables, evaluationLines, figureLines } from '../output/metric-lines.js'
import { formatNumber, ProgressLine, print, printJson, timeLeft, warn } from '../output/output.js'
import { loadPredictor } from '../training/loaded.js'
import { withReadableWeights } from '../training/stored.js'

export function evalCommand(program: Command): Command {
  return add(
    program,
    'eval',
    {
      help: `Examples:
  admb eval --dir model --data test.svm.gz
  admb eval --dir model --data digits:test --json`
    },
    evaluate
  )
}

async function evaluate(given: Flags<'eval'>): Promise<void> {
  const flags = await withReadableWeights(given)
  const { spec: stored, learner, predictor, scaling } = await loadPredictor(flags, true)
  const spec = readableSpec(stored, predictor.parameters)
  const skipped = new SkippedInputs(flags.shard)
  const notices = new Notices(warn)
  const tokens = spec.network && (await moreText(spec.network, readOptions(flags), true))
  const stream = await openStream({
    ...streamFor(spec, readOptions(flags)),
    tokens,
    scaling,
    onMalformed: skipped.add,
    onNotice: notices.add
  })
  notices.show()
  checkFits(spec, stream)
  const parameters = flags.predictWith === 'current' ? predictor.parameters : predictor.average
  const outcomes = learner.outcomeKind && new Evaluation(learner.outcomeKind)
  const score: Score = { loss: 0, hits: 0, outcomes }
  const labels = baselineFor(spec, learner.classifies)
  let inputs = 0
  const start = performance.now()
  const progress = new ProgressLine()
  for await (const examples of stream) {
    learner.score(parameters, examples, 0, examples.size, score)
    labels?.add(examples)
    inputs += examples.size
    progress.show(() => {
      const seconds = (performance.now() - start) / 1000
      return `${formatNumber(inputs)} inputs, ${formatNumber(inputs / seconds)} inputs/s${timeLeft(stream.share, seconds)}`
    })
  }
  progress.clear()
  const baseline = labels?.figures
  const useless = hasPlainLoss(spec)
    ? uselessLoss(inputs, score.loss / (inputs + (score.surplus ?? 0)), baseline)
    : undefined
  if (useless !== undefined) notices.add(useless, importance.useless)
  notices.show()
  const data = flags.data as string
  skipped.requireInputs(data, inputs)
  const weight = inputs + (score.surplus ?? 0)
  if (weight === 0)
    throw new UsageError(`the weights of all inputs of ${data} are 0: give others, or remove the weights`)
  const loss = score.loss / weight
  const accuracy = learner.classifies ? score.hits / weight : undefined
  const metrics = outcomes?.figures(score.loss)
  const names = spec.network?.text?.classNames ?? spec.features.classNames
  if (flags.json) {
    const { skipped } = stream
    printJson({
      command: 'eval',
      notices: notices.lines,
      inputs,
      loss,
      accuracy,
      metrics,
      baseline,
      classNames: names,
      skipped,
      predictor: predictor.id
    })
  } else {
    print(`inputs      ${formatNumber(inputs)}`)
    print(`loss        ${loss.toFixed(5)}`)
    if (accuracy !== undefined) print(`accuracy    ${(100 * accuracy).toFixed(2)} %`)
    for (const line of metrics ? [...figureLines(metrics, 12), ...evaluationLines(metrics, 12)] : []) print(line)
    if (baseline !== undefined) print(baselineLine(baseline, 12))
    print(`predictor   ${formatNumber(predictor.id.updates)} updates, origin ${predictor.id.origin}`)
    for (const line of metrics ? classTables(metrics, names) : []) print(line)
  }
  skipped.checkLimit(data, inputs, 0, flags.skipLimit)
}
