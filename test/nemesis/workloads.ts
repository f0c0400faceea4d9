/** Models of the peers under test, endless seeded inputs for them, and the serial run on the same inputs. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Adversary } from '../../sim/adversaries/adversary.js'
import { type AdversaryName, adversaries } from '../../sim/adversaries/index.js'
import { Random } from '../../sim/engine/random.js'
import { SerialTrainer } from '../../src/learning/index.js'

export interface Workload {
  readonly name: string
  /** `mlp`: a network with one hidden layer, whose gradients are dense. */
  readonly model: 'logistic' | 'softmax' | 'mlp'
  readonly classes: number
  readonly dimension: number
  readonly batch: number
  /** Features that are not 0, in each input. */
  readonly features: number
  /** Inputs per second of each peer. */
  readonly rate: number
  /** Units of the hidden layer. */
  readonly hidden?: number
  /** Kind of gradient sums. @default 'lattice' */
  readonly sums?: string
  /** As --trust of peers. @default 'members' */
  readonly trust?: string
  /** As --algorithm of peers. @default 'admb' */
  readonly algorithm?: string
}

export const workloads: readonly Workload[] = [
  { name: '300', model: 'logistic', classes: 2, dimension: 300, batch: 64, features: 20, rate: 100 },
  { name: '8k', model: 'softmax', classes: 10, dimension: 784, batch: 128, features: 60, rate: 100 },
  { name: '100k', model: 'logistic', classes: 2, dimension: 100_000, batch: 256, features: 30, rate: 100 },
  { name: '1M', model: 'logistic', classes: 2, dimension: 1_000_000, batch: 512, features: 30, rate: 50 },
  { name: 'net 1M', model: 'mlp', classes: 10, dimension: 784, batch: 512, features: 60, rate: 20, hidden: 1258 },
  { name: 'net 3M', model: 'mlp', classes: 10, dimension: 784, batch: 512, features: 60, rate: 10, hidden: 3774 }
]

/** Bytes of a whole predictor: parameters, state of the rule and average, each a float32. */
export function predictorBytes({ model, classes, dimension, hidden }: Workload): number {
  if (hidden !== undefined) return 12 * (hidden * (dimension + classes + 1) + classes)
  return 12 * dimension * (model === 'softmax' ? classes : 1)
}

/** Options of `admb peer`. @param folder for files that they name */
export function peerOptions(workload: Workload, folder: string): string[] {
  const { model, classes, dimension, batch, hidden, sums = 'lattice', trust = 'members', algorithm = 'admb' } = workload
  const features = hidden === undefined ? `${dimension},constant=no` : `${dimension}`
  const shared = ['--format', 'libsvm', '--classes', `${classes}`, '--dimension', features]
  shared.push('--batch', `${batch}`, '--sums', sums, '--trust', trust, '--algorithm', algorithm)
  if (hidden === undefined) return [...shared, '--model', model]
  const file = join(folder, 'model.yaml')
  writeFileSync(file, `model: ${model}\nhidden: [${hidden}]\n`)
  return [...shared, '--model', file]
}

/** Draws inputs in LIBSVM format, and learns each of them in one process. */
export class Inputs {
  readonly #workload: Workload
  readonly #random: Random
  /** Weights by which the labels are drawn, for each class. */
  readonly #truth: readonly Float32Array[]
  readonly #serial: SerialTrainer | undefined
  readonly #label: NonNullable<Adversary['label']>

  /** @param adversary kind of the hostile peer that learns them. @default an honest peer */
  constructor(workload: Workload, seed: number, adversary?: AdversaryName) {
    const { model, classes, dimension, batch } = workload
    this.#workload = workload
    this.#random = new Random(seed, adversary ?? 'inputs')
    this.#label = (adversary && adversaries[adversary].label) ?? (label => label)
    const weights = new Random(seed, 'truth')
    this.#truth = Array.from({ length: classes }, () =>
      Float32Array.from({ length: dimension }, () => weights.normal())
    )
    if (model === 'mlp') return
    this.#serial = new SerialTrainer({ model, dimension, batch, ...(model === 'softmax' && { classes }) })
  }

  /** Mean progressive loss of the serial run so far; undefined for a network. */
  get serialLoss(): number | undefined {
    return this.#serial?.report().averageLoss
  }

  /** The next inputs, as lines of text. */
  take(count: number): string {
    const { features, dimension } = this.#workload
    const indices = new Int32Array(count * features)
    const values = new Float32Array(count * features)
    const labels = new Float32Array(count)
    let text = ''
    for (let row = 0; row < count; row++) {
      const chosen = new Set<number>()
      // Low numbers are frequent, so that also a large model learns something.
      while (chosen.size < features) chosen.add(Math.floor(dimension * this.#random.next() ** 3))
      const scores = this.#truth.map(() => this.#random.normal())
      let line = ''
      for (const [i, index] of [...chosen].sort((a, b) => a - b).entries()) {
        const value = Number(this.#random.normal().toFixed(3))
        indices[row * features + i] = index
        values[row * features + i] = value
        for (const [label, truth] of this.#truth.entries()) scores[label] += truth[index] * value
        line += ` ${index + 1}:${value}`
      }
      labels[row] = this.#label(scores.indexOf(Math.max(...scores)), scores.length)
      text += `${labels[row]}${line}\n`
    }
    const offsets = Int32Array.from({ length: count + 1 }, (_, row) => row * features)
    this.#serial?.learn({ size: count, labels, offsets, indices, values })
    return text
  }
}
