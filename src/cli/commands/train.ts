/** `admb train`: trains on a stream in one process, without a network. */
import type { Command } from 'commander'
import { STORES } from '../../l2l/executor/types.js'
import { type ReaderThread, startReader } from '../../streams/index.js'
import { SERIAL_BATCH } from '../../task/spec.js'
import { withTuning, withWeights } from '../options/networks.js'
import {
  withCommon,
  withData,
  withFeatures,
  withLearning,
  withMeasurements,
  withPredictWith
} from '../options/options.js'
import { bytes, choice, heldOut, once, whole } from '../options/values.js'
import type { TrainFlags } from '../training/train-inputs.js'

/** @param reader a thread for the stream, if one is started already */
export function trainCommand(program: Command, reader?: Promise<ReaderThread | undefined>): Command {
  const command = program.command('train')
  withMeasurements(
    withPredictWith(withTuning(withWeights(withLearning(withFeatures(withData(command)), SERIAL_BATCH))), [
      'average',
      'current'
    ] as const),
    'off',
    'figures over these times of inputs (default: 1h,1d with --time)'
  )
    .option('--dir <dir>', 'directory of the predictor: to store it in, and to continue from')
    .option(
      '--store <where>',
      `${STORES.join(', ')}: where a network and its optimizer state are (default: memory)`,
      choice(STORES)
    )
    .option('--host-memory <bytes>', '--store disk: memory for what is on the disk (default: 1GiB)', bytes)
    .option('--holdout <share>', 'score this share of the rows after each pass instead of learning it', heldOut)
    .option('--validation <file>', 'the same with the rows of this file', once)
    .option('--patience <passes>', 'end after passes without improvement (default: 3)', whole(1))
    .option('--log <file>', 'append losses to this file, for admb regret')
    .addHelpText(
      'after',
      `
Examples:
  admb train --data digits
  admb train --data digits --model mlp --schedule l2l-p --microbatch 16
  admb train --data ads.svm.gz --model logistic --dir model
  admb train --data ads.csv --label sold --passes 50 --holdout 0.1
  admb train --weights bert --lora rank=8 --data pairs.tsv --label same
  zcat clicks.vw.gz | admb train --data - --format vw --hash-bits 20 --json`
    )
  return withCommon(command).action((flags: TrainFlags) => train(flags, reader))
}

async function train(given: TrainFlags, prestarted: Promise<ReaderThread | undefined> | undefined): Promise<void> {
  const { data = '', format, passes, dir } = given
  const reader = (await prestarted) ?? (await startReader({ data, format, passes }))
  // Imported here: the help does not need the trainers, the database and libp2p's keys.
  const { withReadableWeights } = await import('../training/stored-weights.js')
  const { openForTraining } = await import('../training/trained-store.js')
  const { setUpTraining } = await import('../training/training-setup.js')
  const { TrainingRun } = await import('../training/training-run.js')
  const flags = { ...(await withReadableWeights(given)), givenWeights: given.weights }
  const stored = dir === undefined ? undefined : { dir, ...(await openForTraining(dir)) }
  try {
    const start = performance.now()
    const setup = await setUpTraining(flags, stored, reader)
    await new TrainingRun(setup, start).run()
  } finally {
    await stored?.store.close()
  }
}
