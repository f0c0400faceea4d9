/**
 * One and two devices with one parameter server on the same minibatch, in separate processes that run alternately, so that
 * they do not share caches. The ratio of wall times is meaningful only on an idle machine; the ratio of CPU times, the
 * cost of sharing, on any machine.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Steps } from './l2l-workers-alone.js'
import { median, type Row } from './row.js'

const ROUNDS = 5

export async function* bench(): AsyncGenerator<Row> {
  const rounds: Steps[][] = []
  for (let round = 0; round < ROUNDS; round++) rounds.push([await stepsOf(1), await stepsOf(2)])
  const of = (which: 'walls' | 'cpus', devices: number) => rounds.map(round => median(round[devices][which]))
  const over = (which: 'walls' | 'cpus', a: number, b: number) =>
    median(rounds.map(round => median(round[a][which]) / median(round[b][which])))
  const details = {
    backend: rounds[0][0].backend,
    stepMs: [0, 1].map(devices => median(of('walls', devices))),
    stepCpuMs: [0, 1].map(devices => median(of('cpus', devices)))
  }
  const speedup = over('walls', 0, 1)
  yield {
    name: 'speedup of two device workers over one',
    value: speedup,
    unit: 'times',
    target: { least: 1.7 },
    details
  }
  const cost = over('cpus', 1, 0)
  yield { name: 'CPU time of two workers relative to one', value: cost, unit: 'times' }
}

async function stepsOf(devices: number): Promise<Steps> {
  const child = fork(fileURLToPath(new URL('./l2l-workers-alone.js', import.meta.url)), [`${devices}`])
  const [steps] = (await once(child, 'message')) as [Steps]
  await once(child, 'exit')
  return steps
}
