/** `admb train`: trains on a stream in one process, without a network. */
import type { Command } from 'commander'
import { type ReaderThread, startReader } from '../../data/index.js'
import { add } from '../options/command.js'
import { readOptions } from '../options/settings.js'
import type { Flags } from '../options/table.js'

/** @param reader a thread for the stream, if one is started already */
export function trainCommand(program: Command, reader?: ReaderThread): Command {
  return add(
    program,
    'train',
    {
      help: `Examples:
  admb train --data digits
  admb train --data digits --model mlp --schedule l2l-p --microbatch 16
  admb train --data ads.svm.gz --model logistic --dir model
  admb train --data ads.csv --label sold --passes 50 --holdout 0.1
  admb train --weights bert --lora rank=8 --data pairs.tsv --label same
  zcat clicks.vw.gz | admb train --data - --format vw --hash-bits 20 --json`
    },
    (flags: Flags<'train'>) => train(flags, reader)
  )
}

async function train(given: Flags<'train'>, prestarted: ReaderThread | undefined): Promise<void> {
  const { dir } = given
  const { data = '', passes } = readOptions(given)
  const reader = prestarted ?? startReader({ data, passes })
  // Imported here: the help does not need the trainers, the database and libp2p's keys.
  const { withReadableWeights } = await import('../training/stored.js')
  const { openForTraining } = await import('../training/trained-store.js')
  const { setUpTraining } = await import('../training/training-setup.js')
  const { hostsFor } = await import('../training/hosts.js')
  const { TrainingRun } = await import('../training/training-run.js')
  const flags = { ...(await withReadableWeights(given)), givenWeights: given.weights }
  const stored = dir === undefined ? undefined : { dir, ...(await openForTraining(dir)) }
  const hosts = hostsFor(flags.schedule)
  try {
    const start = performance.now()
    const setup = await setUpTraining(flags, stored, reader, hosts && (() => hosts.joined()))
    await new TrainingRun(setup, start).run()
  } finally {
    await hosts?.close()
    await stored?.store.close()
  }
}
