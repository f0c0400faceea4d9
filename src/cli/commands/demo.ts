/**
 * `admb demo`: five real peer processes on this machine learn the digits together while one is killed and restarted and
 * the network is cut in two and healed; at the end all agree, beside what the same inputs give serially and in isolation.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import type { StreamOptions } from '../../streams/index.js'
import { Cluster } from '../demo/cluster.js'
import { conclude } from '../demo/conclude.js'
import { rowsOf } from '../demo/reference.js'
import { type SharedFlags, settle } from '../demo/settle.js'
import { Stage } from '../demo/stage.js'
import { UsageError } from '../errors.js'
import { withCommon, withData, withFeatures, withLearning } from '../options.js'
import { PEER_BATCH, probeTask, type Task } from '../probe.js'
import { amount } from '../values.js'

const DEFAULT_PASSES = 4

/** A signal ended the demonstration before its end. */
export class InterruptedError extends Error {
  static readonly code = 'ERR_INTERRUPTED'
  readonly code = InterruptedError.code
  override readonly name = 'InterruptedError'
  constructor(signal: string) {
    super(`stopped by ${signal} before the end`)
  }
}

export function demoCommand(program: Command): Command {
  const command = program.command('demo').description('five peers on this machine, with faults: see it work')
  withLearning(withFeatures(withData(command)), PEER_BATCH)
    .option('--rate <n>', 'inputs a second and peer', amount(true), 250)
    .addHelpText(
      'after',
      '\nExamples:\n  admb demo\n  admb demo --data mine.csv --label outcome --scale standard --json'
    )
  return withCommon(command).action(demo)
}

async function demo(given: SharedFlags): Promise<void> {
  const passes = given.passes ?? (given.data === undefined ? DEFAULT_PASSES : 1)
  const flags = { ...given, data: given.data ?? 'digits', passes, batch: given.batch ?? PEER_BATCH }
  if (flags.shard !== undefined) throw new UsageError('demo shares the data among its peers itself: leave --shard out')
  if (flags.data === '-') throw new UsageError('demo reads its data several times: give a file instead of -')
  const { spec, stream } = (await probeTask(flags)) as Task & { readonly stream: StreamOptions }
  const scratch = await mkdtemp(join(tmpdir(), 'admb-demo-'))
  const start = performance.now()
  let fail: (error: Error) => void = () => undefined
  const failure = new Promise<never>((_, reject) => {
    fail = reject
  })
  const interrupted = (signal: string) => fail(new InterruptedError(signal))
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted)
  let cluster: Cluster | undefined
  try {
    cluster = new Cluster(await settle(scratch, flags), error => fail(error))
    const stage = new Stage(cluster, flags.json ?? false, start)
    await Promise.race([stage.play(await rowsOf(stream)), failure])
    await cluster.stop()
    await conclude(flags, { spec, stream }, stage, cluster, start)
  } finally {
    process.off('SIGINT', interrupted).off('SIGTERM', interrupted)
    await cluster?.stop()
    await rm(scratch, { recursive: true, force: true })
  }
}
