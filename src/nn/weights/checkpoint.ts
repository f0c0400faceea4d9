/**
 * A trained model on disk: a Hugging Face folder (`config.json`, a tokenizer, and `model.safetensors`, possibly in parts), or a
 * safetensors file of this project. Nothing but the headers is read until the weights are needed.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import type { ModelSpec } from '../spec/model-spec.js'
import type { NetworkSpec } from '../spec/network-spec.js'
import { readTokenizer } from '../tokenizers/subwords.js'
import { type Model, ModelError } from '../types.js'
import { type Coverage, coverageOf, importBlocks } from './exchange.js'
import { type ForeignModel, readConfig } from './hugging-face.js'
import { type LayoutName, layoutFor } from './layouts.js'
import { isFloat, readMetadata, readSafetensors, type TensorFile } from './safetensors.js'

export { coverageOf } from './exchange.js'

/** What is known of the model. Shapes are checked when the weights are read. */
export interface Checkpoint {
  readonly layers: ModelSpec
  /** The network of a file of this project, or of a folder that it has written. */
  readonly network?: NetworkSpec
  /** The header's entries of such a file: its spec, and what inputs are scaled by. */
  readonly metadata?: Readonly<Record<string, string>>
  /** The model of a Hugging Face folder. */
  readonly foreign?: ForeignModel
  /** The contents of a `tokenizer.json`; undefined if there is none. */
  readonly tokenizer?: string
  readonly layout: LayoutName
  readonly tensors: TensorFile
}

const WEIGHTS = 'model.safetensors'
const INDEX = 'model.safetensors.index.json'
const indexSchema = z.looseObject({ weight_map: z.record(z.string(), z.string()) })

/** @throws ModelError if the path holds no model, or one of another architecture */
export function openCheckpoint(path: string): Checkpoint {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) throw new ModelError(`cannot read ${path}: there is no such file or folder`)
  return stats.isDirectory() ? openFolder(path) : ownCheckpoint(path, [path], readSafetensors(path))
}

function openFolder(folder: string): Checkpoint {
  if (existsSync(join(folder, 'admb.json'))) {
    throw new ModelError(`${folder} is a state directory: export it first (admb export --dir ${folder} --out FOLDER)`)
  }
  const { files, tensors } = tensorsOf(folder)
  const config = join(folder, 'config.json')
  if (!existsSync(config)) return ownCheckpoint(folder, files, tensors)
  const foreign = readConfig(readFileSync(config, 'utf8'), config)
  const { layers } = foreign
  return { layers, foreign, tokenizer: readTokenizer(folder), layout: layoutFor(layers), tensors }
}

/** @throws ModelError unless the files name a network */
function ownCheckpoint(path: string, [first]: readonly string[], tensors: TensorFile): Checkpoint {
  const metadata = readMetadata(first)
  const { spec } = metadata
  if (spec === undefined) {
    throw new ModelError(`${path} does not name its model: give a folder with config.json, or safetensors of admb`)
  }
  const { network } = JSON.parse(spec) as { readonly network?: NetworkSpec }
  if (network === undefined)
    throw new ModelError(`${path} is a linear model: --weights of train, eval and predict reads it`)
  if (network.tuning !== undefined) {
    throw new ModelError(
      `${path} holds only what was trained of a network: export the whole (admb export), and give that`
    )
  }
  return { layers: network.layers, network, metadata, tokenizer: network.text?.pieces, layout: 'admb', tensors }
}

/** The tensors of all parts. */
function tensorsOf(folder: string): { readonly files: readonly string[]; readonly tensors: TensorFile } {
  const [file, index] = [WEIGHTS, INDEX].map(name => join(folder, name))
  if (existsSync(file)) return { files: [file], tensors: readSafetensors(file) }
  if (!existsSync(index)) {
    throw new ModelError(
      `${folder} has no ${WEIGHTS}: convert other formats with save_pretrained(FOLDER, safe_serialization=True)`
    )
  }
  const parsed = indexSchema.safeParse(jsonOf(index))
  if (!parsed.success) throw new ModelError(`${index} is not an index of safetensors files`)
  const { weight_map } = parsed.data
  const files = [...new Set(Object.values(weight_map))]
  const parts = new Map(files.map(part => [part, readSafetensors(join(folder, part))]))
  const tensors = Object.entries(weight_map).map(([name, part]) => {
    const tensor = parts.get(part)?.get(name)
    if (tensor === undefined) throw new ModelError(`${join(folder, part)} has no tensor ${name}, which ${INDEX} names`)
    return [name, tensor] as const
  })
  return { files: files.map(part => join(folder, part)), tensors: new Map(tensors) }
}

function jsonOf(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new ModelError(`${file} is not valid JSON: ${(error as Error).message}`)
  }
}

/** Equal for equal weights, whatever the files they are in. Reads all of them. */
export function weightsDigest({ tensors }: Checkpoint): string {
  const hash = createHash('sha256')
  for (const [name, { dtype, shape, bytes }] of [...tensors].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (isFloat(dtype)) hash.update(JSON.stringify([name, dtype, shape])).update(bytes())
  }
  return hash.digest('hex').slice(0, 32)
}

/** The blocks of a network that starts from a checkpoint, read one at a time. */
export interface InitialWeights extends Coverage {
  /** @param wants the indices of the blocks that are read @default all */
  blocks(wants?: (block: number) => boolean): Iterable<Float32Array>
}

/**
 * @param seed of weights that the checkpoint lacks
 * @throws ModelError naming a tensor that is missing or has another shape, when the blocks are read
 */
export function initialWeights(model: Model, { tensors, layout }: Checkpoint, seed: number): InitialWeights {
  return {
    ...coverageOf(model, tensors, layout),
    blocks: wants => importBlocks(model, tensors, { layout, seed, wants })
  }
}
