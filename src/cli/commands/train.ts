/** `admb train`: one process, no network; what a serial learner makes of a stream. */
import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import { encodeSaved } from '../../admb/index.js'
import { ContributorTable } from '../../admb/keys.js'
import { digest, type SerialReport, SerialTrainer, type Trained } from '../../learner/index.js'
import { decodeIdentityKey, encodeIdentityKey, generateIdentityKey, peerIdOf } from '../../network/keys.js'
import { type LearningSpec, learningParts, specText } from '../../peer/agreement.js'
import type { Progress } from '../../peer/thread-messages.js'
import { Store } from '../../storage/index.js'
import type { SavedMoments } from '../../streams/index.js'
import { UsageError } from '../errors.js'
import { openLearning, SERIAL_BATCH, type SerialFlags } from '../learning.js'
import { withCommon, withData, withFeatures, withLearning, withPredictWith } from '../options.js'
import { formatNumber, ProgressLine, print, printJson } from '../output.js'
import { ProgressLog, progressEntry } from '../progress-log.js'
import { learningSpec } from '../specs.js'

interface Flags extends SerialFlags {
  readonly dir?: string
  readonly log?: string
  readonly json?: boolean
}

export function trainCommand(program: Command): Command {
  const command = program.command('train').description('learn a stream in one process, without a network')
  withPredictWith(withLearning(withFeatures(withData(command)), SERIAL_BATCH), ['average', 'current'] as const)
    .option('--dir <dir>', 'store the predictor there')
    .option('--log <file>', 'append losses there, for admb regret')
    .addHelpText(
      'after',
      `
Examples:
  admb train --data digits
  admb train --data ads.svm.gz --model logistic --dir model
  zcat clicks.vw.gz | admb train --data - --format vw --hash-bits 20 --json`
    )
  return withCommon(command).action(train)
}

async function train(flags: Flags): Promise<void> {
  const store = flags.dir === undefined ? undefined : await emptyStore(flags.dir)
  try {
    const start = performance.now()
    const { stream, options, moments } = await openLearning(flags)
    const trainer = new SerialTrainer(options)
    const log = flags.log === undefined ? undefined : new ProgressLog(flags.log)
    const run = `train ${randomUUID()}`
    const progress = new ProgressLine()
    for await (const examples of stream) {
      trainer.learn(examples)
      log?.note(progressEntry(run, trainer.report()))
      progress.show(() => describe(trainer.report(), start))
    }
    progress.clear()
    const trained = trainer.finish()
    log?.end(progressEntry(run, trainer.report()))
    const { model, classes, batch } = options
    const { hashBits, columns } = stream
    const spec = learningSpec(flags, { model, classes, batch, hashBits, columns, dimension: trained.dimension })
    const saved = flags.scale === 'standard' ? moments.save() : undefined
    const name = await keep(store, spec, trained, trainer.report(), saved)
    show(flags, trainer.report(), { seconds: (performance.now() - start) / 1000, skipped: stream.skipped }, name)
  } finally {
    await store?.close()
  }
}

async function emptyStore(dir: string): Promise<Store> {
  const store = await Store.open(dir)
  if ((await store.checkpoint()) === undefined) return store
  await store.close()
  throw new UsageError(
    `${dir} holds a predictor already: give another --dir, or go on from it with admb peer --dir ${dir}`
  )
}

/** Names the predictor, and stores it where a directory was given. */
async function keep(
  store: Store | undefined,
  spec: LearningSpec,
  { parameters, average, state, updates }: Trained,
  { inputs, averageLoss, accuracy }: SerialReport,
  moments: SavedMoments | undefined
) {
  const content = digest([parameters, average, state])
  let origin = 'train'
  let incarnation = 1
  if (store) {
    const key = store.identity ? decodeIdentityKey(store.identity) : await generateIdentityKey()
    if (!store.identity) await store.create(encodeIdentityKey(key))
    origin = peerIdOf(key)
    incarnation = (await store.begin(specText(spec))).incarnation
  }
  const name =
    updates === 0
      ? { updates, origin, incarnation: 0, digest: content }
      : { updates, origin, incarnation, digest: content }
  if (store) {
    const { learner, recipe } = learningParts(spec)
    const shapes = { parameters: learner.layout, state: recipe.rule.stateLayout(learner.layout) }
    const predictor = encodeSaved(
      { predictor: { name, parameters, average, state }, lineage: [] },
      shapes,
      new ContributorTable()
    )
    const hits = accuracy === undefined ? undefined : Math.round(accuracy * inputs)
    const progress: Progress = { inputs, loss: (averageLoss ?? 0) * inputs, hits, moments }
    await store.save({ predictor, progress })
  }
  return name
}

function describe({ inputs, averageLoss, accuracy }: SerialReport, start: number): string {
  const rate = inputs / ((performance.now() - start) / 1000)
  const hits = accuracy === undefined ? '' : `, accuracy ${(100 * accuracy).toFixed(2)} %`
  return `${formatNumber(inputs)} inputs, loss ${(averageLoss ?? 0).toFixed(4)}${hits}, ${formatNumber(rate)} inputs/s`
}

function show(
  { json, dir }: Flags,
  { inputs, updates, averageLoss = 0, accuracy, unlabelled }: SerialReport,
  { seconds, skipped }: { seconds: number; skipped: number },
  predictor: object
): void {
  const inputsPerSecond = inputs / seconds
  if (json) {
    const skippedAll = skipped + unlabelled
    printJson({
      command: 'train',
      inputs,
      updates,
      averageLoss,
      accuracy,
      skipped: skippedAll,
      seconds,
      inputsPerSecond,
      predictor
    })
    return
  }
  print(
    `inputs          ${formatNumber(inputs)}${skipped > 0 ? ` (${formatNumber(skipped)} malformed ones skipped)` : ''}`
  )
  print(`updates         ${formatNumber(updates)}`)
  print(`average loss    ${averageLoss.toFixed(5)}   (each input scored before it was learned)`)
  if (accuracy !== undefined) print(`accuracy        ${(100 * accuracy).toFixed(2)} %`)
  print(`time            ${seconds.toFixed(2)} s, ${formatNumber(inputsPerSecond)} inputs/s`)
  if (dir !== undefined) print(`stored in       ${dir}   (try: admb eval --dir ${dir} --data FILE)`)
}
