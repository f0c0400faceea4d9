/** A part of the report in a separate process: prints its rows as JSON lines. Arguments: a task as JSON. */
import { openDevice } from '../../src/device/index.js'
import type { DeviceName } from '../../src/device/types.js'
import type { Row } from '../bench/row.js'
import { type BertWay, bert, bertTraining, type Plans, plans } from './bert.js'
import { kernels } from './kernels.js'
import type { Size } from './options.js'

export type Task = { readonly device: DeviceName; readonly size: Size; readonly limitMs: number } & (
  | { readonly measure: 'kernels' | 'plans' }
  | { readonly measure: 'bert'; readonly way: BertWay; readonly plan: Plans }
  | { readonly measure: 'bert-training'; readonly plan: Plans }
)

function rowsOf(task: Task): Iterable<Row> {
  const { size, limitMs } = task
  switch (task.measure) {
    case 'kernels':
      return kernels(size)
    case 'plans':
      return plans(size)
    case 'bert':
      return bert(size, task.way, task.plan, limitMs)
    case 'bert-training':
      return bertTraining(size, task.plan, limitMs)
    default:
      return task satisfies never
  }
}

const task = JSON.parse(process.argv[2]) as Task
await openDevice(task.device)
for (const row of rowsOf(task)) process.stdout.write(`${JSON.stringify(row)}\n`)
// A device may keep the process alive.
process.exit(0)
