/** What step sizes that grow with the batch do to the loss: an MLP on MNIST, with a step chosen for batches of 32. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { publicData } from './data.js'
import { runAdmb } from './processes.js'
import type { Row } from './row.js'

interface Scored {
  readonly loss: number
  readonly accuracy: number
}

const REFERENCE = 32
const BATCHES = [8, 32, 128, 512]
const RULES = ['momentum,step=0.03', 'adam,step=0.001']
const SCALINGS = {
  none: '',
  root: `,reference=${REFERENCE},scaling=root`,
  linear: `,reference=${REFERENCE},scaling=linear`
}

export async function* bench(): AsyncGenerator<Row> {
  const train = publicData('mnist/train-images-idx3-ubyte.gz')
  const test = publicData('mnist/t10k-images-idx3-ubyte.gz')
  if (train === undefined || test === undefined) return
  const folder = mkdtempSync(join(tmpdir(), 'admb-scaled-steps-'))
  try {
    for (const rule of RULES) {
      for (const batch of BATCHES) {
        for (const [scaling, options] of Object.entries(SCALINGS)) {
          if (batch === REFERENCE && scaling !== 'none') continue
          const dir = mkdtempSync(join(folder, 'model-'))
          const task = ['--model', 'mlp', '--data', train, '--shuffle-window', '10000', '--rule', rule + options]
          await runAdmb(['train', ...task, '--batch', `${batch}`, '--predict-with', 'current', '--dir', dir])
          const { loss, accuracy } = await runAdmb<Scored>(['eval', '--dir', dir, '--data', test])
          const name = `MNIST, mlp, one pass, ${rule}, batch ${batch}, scaling ${scaling}: test loss`
          yield { name, value: loss, unit: 'nats', details: { accuracy: 100 * accuracy } }
        }
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
