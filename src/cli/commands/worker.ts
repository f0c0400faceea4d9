/** `admb worker`: lends the device of this machine to a peer, until a signal ends it. */
import { setTimeout } from 'node:timers/promises'
import type { Command } from 'commander'
import { formatBytes } from '../../base/errors.js'
import { withTimeLimit } from '../../network/time-limit.js'
import type { Log } from '../../network/types.js'
import { add } from '../options/command.js'
import { executionOf } from '../options/settings.js'
import type { Flags } from '../options/table.js'
import { printJson } from '../output/output.js'
import { readKey } from '../peer/files.js'
import { readToken } from '../peer/http.js'

/** Times between attempts to connect, in ms; the last one repeats. */
const PAUSES = [1000, 2000, 5000]
/** Largest message of a peer: the weights of a layer. */
const MAX_BYTES = 2 ** 32
const CONNECT_MS = 15_000

export function workerCommand(program: Command): Command {
  const help = `Examples:
  admb keygen token --out worker.token
  admb peer --model mlp --data digits --batch 128 \\
      --schedule l2l-p,microbatch=8,token=worker.token
  admb worker --peer /ip4/192.0.2.7/tcp/4280/p2p/12D3KooW… --token worker.token

The peer divides each minibatch by the speed of its devices, or, as 1f1b and
other pipelines, the layers. A worker that stops costs the peer one step. For
admb train with zero=LEVEL, a worker holds layers, and the run ends with it.`
  return add(program, 'worker', { help }, run)
}

async function run({ peer, token: file, networkKey: keyFile, json, ...flags }: Flags<'worker'>): Promise<void> {
  const [{ createNetwork, generateIdentityKey }, { PROTOCOL_VERSION }, { serveDevice }, { createLog }] =
    await Promise.all([
      import('../../network/index.js'),
      import('../../peer/index.js'),
      import('../../l2l/group/index.js'),
      import('../output/log.js')
    ])
  const log: Log = createLog('info')
  const token = await readToken(file, log, '--token')
  const stopped = new AbortController()
  const stop = () => stopped.abort()
  process.once('SIGINT', stop).once('SIGTERM', stop)
  const network = await createNetwork({
    privateKey: await generateIdentityKey(),
    listen: [],
    dials: [peer],
    networkKey: keyFile === undefined ? undefined : await readKey(keyFile),
    hello: { protocol: PROTOCOL_VERSION, fields: [] },
    maxFrameBytes: MAX_BYTES,
    log: () => undefined
  })
  let tasks = 0
  try {
    for (let attempt = 0; !stopped.signal.aborted; attempt++) {
      try {
        const line = await withTimeLimit(CONNECT_MS, [stopped.signal], signal =>
          network.openDevice({ addresses: [peer] }, signal)
        )
        stopped.signal.addEventListener('abort', () => line.close('the worker stops'), { once: true })
        const events = {
          ready(device: string) {
            attempt = 0
            log('info', `${device} executes tasks of ${peer}`, { peer })
          },
          executed: () => tasks++,
          holds: (blocks: number, bytes: number) =>
            log('info', `holds ${blocks} layers of a network of ${peer}, ${formatBytes(bytes)}`, { peer })
        }
        const reason = await serveDevice(line, token, executionOf(flags), events)
        if (!stopped.signal.aborted) log('warn', `the peer has ended the connection: ${reason}`, { peer, reason })
      } catch (error) {
        if (stopped.signal.aborted) break
        log('warn', (error as Error).message, { peer })
      }
      await setTimeout(PAUSES[Math.min(attempt, PAUSES.length - 1)], undefined, { signal: stopped.signal }).catch(
        () => {}
      )
    }
  } finally {
    await network.stop()
    process.off('SIGINT', stop).off('SIGTERM', stop)
  }
  if (json) printJson({ command: 'worker', peer, tasks })
}
