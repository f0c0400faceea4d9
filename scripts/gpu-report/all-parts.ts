/** All parts of a report, in their order. Those that need a device are skipped if none was opened. */
import { fileURLToPath } from 'node:url'
import type { ExecutorOptions } from '../../src/l2l/executor/types.js'
import type { Row } from '../bench/row.js'
import { BERT_WAYS, type Plans } from './bert.js'
import { shapeOf } from './bert-model.js'
import type { Task } from './measure.js'
import type { Options } from './options.js'
import type { Outcome, Part } from './parts.js'
import { runProcess } from './process.js'
import type { OpenedDevice } from './report.js'
import { runTests } from './tests.js'
import { runTorch } from './torch.js'

/** Results of earlier parts that later parts need. */
export interface Shared {
  device: OpenedDevice | undefined
  plan: Plans | undefined
}

/** A task without the fields that all tasks share. */
type PartTask<T = Task> = T extends Task ? Omit<T, 'device' | 'size' | 'limitMs'> : never

const MEASURE = fileURLToPath(new URL('./measure.js', import.meta.url))
const DETECT = fileURLToPath(new URL('./detect.js', import.meta.url))
const SKIPPED: Outcome = { status: 'skipped', error: 'no device was opened' }

export function allParts({ device: asked, size }: Options, shared: Shared): Part[] {
  const onDevice = (
    name: string,
    share: number,
    run: (device: OpenedDevice, ...rest: RunArgs) => Promise<Outcome>
  ): Part => ({
    name,
    share,
    run: async (...args) => (shared.device === undefined ? SKIPPED : run(shared.device, ...args))
  })
  const measured = (name: string, share: number, taskOf: () => PartTask): Part =>
    onDevice(name, share, (device, limitMs, emit) =>
      measure({ ...taskOf(), device: device.name, size, limitMs } as Task, limitMs, emit)
    )
  const plan = () => shared.plan ?? fallback(shapeOf(size).batch)
  return [
    { name: 'device', share: 2, run: limitMs => detect(asked, limitMs, shared) },
    onDevice('tests', 9, ({ name }, limitMs, emit) => runTests(size, name, limitMs, emit)),
    measured('kernels', 3, () => ({ measure: 'kernels' })),
    onDevice('plan', 4, async (device, limitMs, emit) => {
      const rows: Row[] = []
      const keep = (row: Row) => {
        rows.push(row)
        emit(row)
      }
      const outcome = await measure({ measure: 'plans', device: device.name, size, limitMs }, limitMs, keep)
      if (outcome.status === 'done') shared.plan = plansOf(rows)
      return outcome
    }),
    ...BERT_WAYS.map(way => measured(`bert ${way}`, 6, () => ({ measure: 'bert', way, plan: plan() }))),
    measured('bert training', 8, () => ({ measure: 'bert-training', plan: plan() })),
    { name: 'torch', share: 9, run: (limitMs, emit) => runTorch(size, limitMs, emit) }
  ]
}

type RunArgs = Parameters<Part['run']>

async function detect(asked: string, limitMs: number, shared: Shared): Promise<Outcome> {
  const lines: string[] = []
  const { code, timedOut, error } = await runProcess(process.execPath, [DETECT, asked], {
    limitMs,
    onLine: line => lines.push(line)
  })
  if (code !== 0) return { status: timedOut ? 'stopped' : 'failed', error }
  shared.device = JSON.parse(lines.at(-1) ?? '') as OpenedDevice
  return { status: 'done' }
}

async function measure(task: Task, limitMs: number, emit: (row: Row) => void): Promise<Outcome> {
  const { code, timedOut, error } = await runProcess(process.execPath, [MEASURE, JSON.stringify(task)], {
    limitMs,
    onLine: line => {
      if (line.startsWith('{"name":')) emit(JSON.parse(line) as Row)
    }
  })
  if (code === 0) return { status: 'done' }
  return { status: timedOut ? 'stopped' : 'failed', error }
}

/** If the planner failed: a quarter of the batch, and no saved activations. */
function fallback(batch: number): Plans {
  const microbatch = Math.ceil(batch / 4)
  return { microbatch, planned: { schedule: 'l2l-p', microbatch } }
}

function plansOf([forPipeline, planned]: readonly Row[]): Plans {
  const { schedule, stash, layers } = planned.details as Pick<ExecutorOptions, 'schedule' | 'stash'> & {
    layers: string
  }
  const microbatch = planned.value === 0 ? undefined : planned.value
  return { microbatch: forPipeline.value, planned: { schedule, stash, layers: JSON.parse(layers), microbatch } }
}
