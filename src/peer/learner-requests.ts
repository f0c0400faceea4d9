/** Answers requests to predict or learn, in the learner thread, which handles its other messages between slices of a request. */
import { nextTurn } from '#platform'
import { createParser, type Malformed, MalformedInputError, type Rows } from '../data/parsing.js'
import { ExampleError } from '../learning/index.js'
import { growingNames } from '../task/learning-spec.js'
import { optionsOf } from '../task/stream.js'
import type { requestedText } from '../task/text.js'
import type { InputAnswer } from './answers.js'
import { LateLabelError, rowCopy } from './late-labels.js'
import type { KeyProgress } from './learned-keys.js'
import type { LearnerLoop } from './learner-loop.js'
import type { InputRequest, LearnerInit } from './thread-messages.js'

/** What determines how requests are read. */
interface RequestInit extends Pick<LearnerInit, 'spec' | 'labelDelay'> {
  readonly readText: ReadText
  /** Called for each request with a key that is no column of the model. */
  readonly onNotice: (line: string) => void
}

/** Reads the texts of a request for a network that learns texts. */
export type ReadText = typeof requestedText

/** @throws Error if the inputs are malformed or do not fit the model */
export async function answerRequest(loop: LearnerLoop, init: RequestInit, request: InputRequest): Promise<InputAnswer> {
  const { action, format, body, key } = request
  if (init.spec.model === 'external')
    throw new Error('a program has the model of this peer: predict and learn there (--learner external)')
  await loop.begun
  const learns = action === 'learn'
  const progress = learns && key !== undefined ? loop.requests.begin(key) : undefined
  if (learns && format === 'jsonl' && init.labelDelay !== undefined) return learnWithIds(loop, init, body, progress)
  const malformed: Malformed[] = []
  const rows = await rowsOf(init, request, learns, malformed)
  // If nothing can be scored, the request is wrong.
  if (rows.size === 0 && malformed.length > 0) throw new MalformedInputError(malformed[0])
  const predictions: InputAnswer['predictions'][number][] = []
  for (const slice of loop.requests.slices(rows, learns, progress)) {
    for (const prediction of slice) predictions.push(prediction)
    await nextTurn()
    if (learns) await loop.room()
  }
  if (progress !== undefined) loop.requests.end(progress)
  return { predictions: withFailures(predictions, malformed), predictor: loop.status().predictor }
}

/** @param malformed receives inputs that cannot be scored; those to learn throw */
async function rowsOf(
  { spec, readText, onNotice }: RequestInit,
  { format, body, delimiter }: Pick<InputRequest, 'format' | 'body' | 'delimiter'>,
  learns: boolean,
  malformed: Malformed[]
): Promise<Rows> {
  const text = spec.network?.text
  if (text !== undefined) {
    if (format !== 'jsonl' || text.label === undefined) {
      throw new Error('the model reads texts: a classifier takes JSON objects with the columns of its data')
    }
    return readText(text, body, learns)
  }
  const parser = createParser(format, {
    ...optionsOf(spec, format),
    ...(delimiter && { delimiter }),
    // A prediction ignores a feature without a weight, but nothing of an input to learn is dropped.
    ...(learns && { ignoreUnknown: false }),
    source: 'request',
    strict: learns,
    unlabelled: !learns,
    ids: true,
    newClasses: learns && growingNames(spec) !== undefined,
    onMalformed: one => malformed.push(one),
    onNotice
  })
  return parser.push(terminated(body))
}

/** The answers to all inputs in their order, those that cannot be scored included. */
function withFailures(
  predictions: InputAnswer['predictions'],
  malformed: readonly Malformed[]
): InputAnswer['predictions'] {
  const failures = (index: number) =>
    malformed
      .filter(one => one.index === index)
      .map(({ line, column, reason }) => ({ error: `request:${line}:${column}: ${reason}` }))
  if (malformed.length === 0) return predictions
  return [
    ...predictions.flatMap((prediction, index) => [...failures(index), prediction]),
    ...failures(predictions.length)
  ]
}

/** Learns lines of inputs, and of labels for inputs that were predicted before: `{"id": …, "label": …}`. */
async function learnWithIds(
  loop: LearnerLoop,
  init: RequestInit,
  body: Uint8Array,
  progress: KeyProgress | undefined
): Promise<InputAnswer> {
  const lines = Buffer.from(body)
    .toString('utf8')
    .split('\n')
    .filter(line => line.trim() !== '')
  const names = loop.classNames ?? init.spec.network?.text?.classNames
  const { label = 'label' } = init.spec.features
  const late = lines.map(line => lateLabel(line, label, names))
  const inputs = lines.filter((_, index) => late[index] === undefined)
  // Nothing is learned if an input or a label is malformed.
  const rows =
    inputs.length === 0
      ? undefined
      : await rowsOf(init, { format: 'jsonl', body: Buffer.from(inputs.join('\n')) }, true, [])
  const predictions: InputAnswer['predictions'][number][] = []
  let row = 0
  for (const [index, one] of late.entries()) {
    await loop.room()
    const isRepeated = progress !== undefined && index < progress.from
    const learned = () => progress?.learned(index + 1)
    if (one === undefined) {
      const input = rowCopy(rows as Rows, row++)
      const noted = { from: isRepeated ? 1 : 0, learned, end: () => undefined }
      predictions.push(...loop.requests.answer(input, true, noted).predictions)
    } else if (isRepeated) {
      const error = `the label of ${one.id} was received before, with the same Idempotency-Key`
      predictions.push({ id: one.id, error, code: LateLabelError.code })
    } else predictions.push(learnLate(loop, one, learned))
  }
  if (progress !== undefined) loop.requests.end(progress)
  return { predictions, predictor: loop.status().predictor }
}

interface LateLabel {
  readonly id: string
  /** Class number, or the number to predict. */
  readonly label: number
}

/**
 * The label of a line that has no input.
 * @param key of the label, besides `label`
 * @throws Error for a label that the model does not know
 */
function lateLabel(line: string, key: string, names: readonly string[] | undefined): LateLabel | undefined {
  if (!line.includes('"id"')) return undefined
  const { id, label: plain, [key]: label = plain, ...others } = JSON.parse(line) as Record<string, unknown>
  if (typeof id !== 'string' || label === undefined || Object.keys(others).length > 0) return undefined
  if (names === undefined) return { id, label: label === -1 ? 0 : Number(label) }
  const number = names.indexOf(String(label))
  if (number >= 0) return { id, label: number }
  throw new Error(`label ${JSON.stringify(label)} is not among the class names ${names.join(', ')}`)
}

function learnLate(
  loop: LearnerLoop,
  { id, label }: LateLabel,
  onLearned: () => void
): InputAnswer['predictions'][number] {
  try {
    return loop.requests.learnLate(id, label, onLearned)
  } catch (error) {
    if (error instanceof LateLabelError) return { id, error: error.message, code: error.code }
    if (error instanceof ExampleError) return { id, error: error.message, code: 'ERR_REQUEST' }
    throw error
  }
}

/** Appends the newline that completes the last row. */
function terminated(body: Uint8Array): Uint8Array {
  return Buffer.concat([body, Buffer.from('\n')])
}
