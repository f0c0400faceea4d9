/**
 * Progressive accuracy and speed on public streams beside River and scikit-learn, in one run. `PYTHON` is an interpreter that
 * imports both. Speed is CPU time: that of the learner alone in Python, and here of reading and learning, without the start of
 * the command, which a run on 100 rows measures.
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { publicData } from './data.js'
import { runAdmb } from './processes.js'
import type { Row } from './row.js'

const SCRIPT = fileURLToPath(new URL('../../../scripts/reference/streams.py', import.meta.url))
const LEARNERS = ['river-logistic', 'river-tree', 'sklearn-sgd'] as const
const STREAMS = [
  { name: 'elec2', file: 'elec2.csv.gz', label: 'class' },
  { name: 'a9a', file: 'a9a.libsvm.gz', label: undefined },
  { name: 'agaricus', file: 'agaricus.train.libsvm.gz', label: undefined }
] as const

/** @param python an interpreter that imports river and sklearn */
export async function* bench(python: string): AsyncGenerator<Row> {
  for (const { name, file, label } of STREAMS) {
    const data = publicData(file)
    if (data === undefined) continue
    const args = [
      'train',
      '--data',
      data,
      ...(label ? ['--label', label] : ['--format', 'libsvm', '--model', 'logistic'])
    ]
    const start = await runAdmb([...args, '--limit', '100'])
    const { inputs, accuracy, cpu } = await runAdmb<{ inputs: number; accuracy: number }>(args)
    yield row(`${name}: admb train`, inputs, accuracy, cpu - start.cpu)
    for (const learner of LEARNERS) {
      // A tree of River splits by the values of keys that are present, so it has no use for rows that lack most of them.
      if (learner === 'river-tree' && label === undefined) continue
      const { stdout } = await promisify(execFile)(python, [SCRIPT, data, learner, ...(label ? [label] : [])])
      const { rows, accuracy, seconds } = JSON.parse(stdout.trim().split('\n').at(-1) as string)
      yield row(`${name}: ${learner}`, rows, accuracy, seconds)
    }
  }
}

function row(name: string, rows: number, accuracy: number, seconds: number): Row {
  return { name, value: 100 * accuracy, unit: '% correct', details: { 'rows/s of CPU time': rows / seconds, rows } }
}
