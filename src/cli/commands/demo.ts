/**
 * `admb demo`: five peer processes on this machine learn the digits together while one is killed and restarted and the network is
 * partitioned and healed. At the end the result is compared with training on the same data without a network.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { PEER_BATCH } from '../../task/spec.js'
import { noData } from '../../task/stream.js'
import { createPeerTask } from '../../task/task.js'
import { Cluster } from '../demo/cluster.js'
import { setup } from '../demo/setup.js'
import { compare, conclude, rowsOf, Stage } from '../demo/stage.js'
import { Watch } from '../demo/watch.js'
import { InterruptedError, UsageError } from '../errors.js'
import { add } from '../options/command.js'
import { executionOf, taskOptions } from '../options/settings.js'
import type { Flags } from '../options/table.js'
import { print } from '../output/output.js'
import { parseHttp } from '../peer/http.js'

const DEFAULT_PASSES = 4

export function demoCommand(program: Command): Command {
  return add(
    program,
    'demo',
    {
      help: `Examples:
  admb demo
  admb demo --data mine.csv --label outcome --scale standard --json`
    },
    demo
  )
}

async function demo(given: Flags<'demo'>, command: Command): Promise<void> {
  const passes = given.passes ?? (given.data === undefined ? DEFAULT_PASSES : 1)
  const flags = { ...given, data: given.data ?? 'digits', passes, batch: given.batch ?? PEER_BATCH }
  if (flags.shard !== undefined) throw new UsageError('demo divides the data among its peers: remove --shard')
  if (flags.data === '-') throw new UsageError('demo reads its data several times: give a file instead of -')
  const { spec, stream } = await createPeerTask(taskOptions(flags))
  if (stream === undefined) throw noData()
  const http = parseHttp(flags.http)
  const scratch = await mkdtemp(join(tmpdir(), 'admb-demo-'))
  const start = performance.now()
  let fail: (error: Error) => void = () => undefined
  const failure = new Promise<never>((_, reject) => {
    fail = reject
  })
  const interrupted = (signal: string) => fail(new InterruptedError(signal))
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted)
  let cluster: Cluster | undefined
  let watch: Watch | undefined
  try {
    watch = http === 'off' ? undefined : await Watch.start(http)
    if (watch && !flags.json) print(`watch it at ${watch.url}`)
    cluster = new Cluster(await setup(scratch, flags, command), {
      status: (id, status) => watch?.receive(id, status),
      lost: id => watch?.lost(id),
      failed: error => fail(error)
    })
    const { rate, json = false } = flags
    const stage = new Stage(cluster, { rate, rows: await rowsOf(stream), quiet: json, start })
    // Runs while the peers start.
    const comparing = compare(spec, stream, executionOf(flags))
    comparing.then(({ references }) => watch?.setReferences(references), fail)
    await Promise.race([stage.play(), failure])
    const comparison = await Promise.race([comparing, failure])
    if (!flags.stay) await cluster.stop()
    conclude(flags.json ?? false, comparison, stage, cluster, start)
    // From here on a signal ends the demo normally.
    process.off('SIGINT', interrupted).off('SIGTERM', interrupted)
    if (watch && flags.stay) await Promise.race([stay(watch.url), failure])
  } finally {
    process.off('SIGINT', interrupted).off('SIGTERM', interrupted)
    await cluster?.stop()
    await watch?.stop()
    await rm(scratch, { recursive: true, force: true })
  }
}

/** Waits for a signal. */
async function stay(url: string): Promise<void> {
  process.stderr.write(`the page stays at ${url}; stop with Ctrl-C\n`)
  await new Promise<void>(resolve => {
    process.once('SIGINT', () => resolve()).once('SIGTERM', () => resolve())
  })
}
