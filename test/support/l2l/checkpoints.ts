/** The checkpoints that `scripts/reference/transformers_fixtures.py` has made, with what `transformers` computes from them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as tf from '#tfjs'
import { DenseRows } from '../../../src/l2l/dense-rows.js'
import { Executor } from '../../../src/l2l/executor/executor.js'
import { BlockStore, type FrozenWeights } from '../../../src/l2l/executor/types.js'
import type { Examples } from '../../../src/learning/index.js'
import type { NetworkSpec, Target } from '../../../src/nn/spec/network-spec.js'
import { parseTokenizer, type Tokenizer } from '../../../src/nn/tokenizers/index.js'
import type { Model } from '../../../src/nn/types.js'
import { type Checkpoint, openCheckpoint } from '../../../src/nn/weights/checkpoint.js'

export const CHECKPOINTS = fileURLToPath(new URL('../../../../test/fixtures/models/', import.meta.url))

export interface Reference {
  /** Tokens per row. */
  readonly length: number
  /** Pairs of texts, or one text. */
  readonly texts?: readonly (readonly string[])[]
  readonly text?: string
  /** Tokens. */
  readonly rows: readonly (readonly number[])[]
  readonly labels?: readonly number[]
  readonly logits: readonly unknown[]
  /** Before each of three steps, and after them. */
  readonly losses: readonly number[]
  /** Of AdamW. */
  readonly step: number
  readonly decay: number
  /** The most probable tokens after the first four of the first row. */
  readonly greedy?: readonly number[]
}

export function referenceOf(name: string): Reference & { readonly folder: string } {
  const folder = join(CHECKPOINTS, name)
  return { folder, ...JSON.parse(readFileSync(join(folder, 'reference.json'), 'utf8')) }
}

/** The network that a reference is about, with its tokenizer. */
export function networkOf(
  { folder, length }: ReturnType<typeof referenceOf>,
  target: Target
): { readonly checkpoint: Checkpoint; readonly tokenizer: Tokenizer; readonly network: NetworkSpec } {
  const checkpoint = openCheckpoint(folder)
  const { foreign, layers, layout } = checkpoint
  const tokenizer = parseTokenizer(checkpoint.tokenizer as string, folder)
  const { padding, separator } = tokenizer
  const vocabulary = foreign?.vocabulary as number
  const masked = layout === 'bert' && { padding, separator }
  return {
    checkpoint,
    tokenizer,
    network: { layers, sample: { kind: 'tokens', shape: [length], vocabulary, ...masked }, target }
  }
}

/** The rows of a reference, for the model. */
export function batchOf(model: Model, { rows, labels = [] }: Reference): { examples: Examples; batch: DenseRows } {
  const width = rows[0].length
  const examples: Examples = {
    size: rows.length,
    labels: Float32Array.from({ length: rows.length }, (_, row) => labels[row] ?? 0),
    offsets: Int32Array.from({ length: rows.length + 1 }, (_, row) => row * width),
    indices: Int32Array.from({ length: rows.length * width }, (_, i) => i % width),
    values: Float32Array.from(rows.flat())
  }
  const batch = new DenseRows(model)
  for (let row = 0; row < rows.length; row++) batch.append(examples, row)
  return { examples, batch }
}

/** Largest difference from the logits of a reference, which has those of the last position of a text. */
export function logitsOff(
  model: Model,
  blocks: readonly Float32Array[],
  batch: DenseRows,
  expected: Reference['logits'],
  frozen?: FrozenWeights
): number {
  const head = { ...model.head, predict: (x: tf.Tensor) => tf.clone(x) }
  const executor = new Executor({ ...model, head }, { microbatch: 2, frozen })
  const logits = executor.predict(new BlockStore(model, blocks, []), batch)
  executor.close()
  const numbers = expected.flat(2) as number[]
  const last = logits.length / batch.size
  const each = numbers.length / batch.size
  return Math.max(
    ...numbers.map((logit, i) => {
      const row = Math.floor(i / each)
      return Math.abs(logits[(row + 1) * last - each + (i % each)] - logit)
    })
  )
}
