/** `admb predict`: one prediction per line for inputs that need no label. */
import type { Command } from 'commander'
import { Notices } from '../../base/errors.js'
import { type Format, inputKind, type Malformed, openStream } from '../../data/index.js'
import { readableSpec } from '../../task/learning-parts.js'
import { checkFits, isTextKind, streamFor } from '../../task/stream.js'
import { moreText } from '../../task/text.js'
import { add } from '../options/command.js'
import { readOptions } from '../options/settings.js'
import type { Flags } from '../options/table.js'
import { SkippedInputs } from '../output/malformed.js'
import { print, printJson, warn } from '../output/output.js'
import { loadPredictor } from '../training/loaded.js'
import { withReadableWeights } from '../training/stored.js'

export function predictCommand(program: Command): Command {
  return add(
    program,
    'predict',
    {
      help: `Prints a line for each input: the label and its probability, or the number. The
value of the column with the role id, or the tag of VW, comes first.
With --json a line {rowId, label, scores} for each input, then one with
{command, inputs, skipped, predictor}. An input that cannot be scored gets a
line "error: REASON", or {error}, in its place.

Examples:
  admb predict --dir model --data new.csv
  echo '1 3:0.5 7:1' | admb predict --dir model --data - --format libsvm --json`
    },
    predict
  )
}

async function predict(given: Flags<'predict'>): Promise<void> {
  const flags = await withReadableWeights(given)
  const { spec: stored, learner, predictor, scaling } = await loadPredictor(flags, false)
  const spec = readableSpec(stored, predictor.parameters)
  const skipped = new SkippedInputs(flags.shard)
  const notices = new Notices(warn)
  const tokens = spec.network && (await moreText(spec.network, readOptions(flags), false))
  const reading = readOptions(flags)
  const options = streamFor(spec, reading)
  const unlabelled = isTextKind(inputKind(options.data, reading.format as Format)) ? true : undefined
  // Malformed inputs are reported before the inputs that follow them are yielded.
  const malformed: Malformed[] = []
  const answers = options.shard === undefined && options.shuffleWindow === undefined
  const onMalformed = (one: Malformed) => {
    skipped.add(one)
    if (answers) malformed.push(one)
  }
  const stream = await openStream({
    ...options,
    tokens,
    scaling,
    unlabelled,
    ids: true,
    onMalformed,
    onNotice: notices.add
  })
  notices.show()
  checkFits(spec, stream)
  const parameters = flags.predictWith === 'current' ? predictor.parameters : predictor.average
  const names = spec.features.classNames
  let inputs = 0
  const answerMalformed = () => {
    while (malformed.length > 0 && malformed[0].index <= inputs) {
      const { line, column, reason } = malformed.shift() as Malformed
      const error = `${line}:${column}: ${reason}`
      if (flags.json) printJson({ error })
      else print(`error: ${error}`)
    }
  }
  for await (const examples of stream) {
    const predictions = learner.predict(parameters, examples, 0, examples.size)
    for (const [row, { label: number, scores }] of predictions.entries()) {
      answerMalformed()
      const rowId = examples.ids?.[row]
      const label = learner.classifies ? (names?.[number] ?? number) : number
      const prediction = learner.classifies ? `${label} ${scores[number].toFixed(4)}` : String(label)
      if (flags.json) printJson({ rowId, label, scores })
      else print(rowId === undefined ? prediction : `${rowId} ${prediction}`)
      inputs++
    }
  }
  answerMalformed()
  notices.show()
  if (flags.json)
    printJson({ command: 'predict', notices: notices.lines, inputs, skipped: stream.skipped, predictor: predictor.id })
  skipped.checkLimit(options.data, inputs, 0, flags.skipLimit)
}
