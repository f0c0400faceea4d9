/** Writes checkpoints as folders that Hugging Face's libraries read: weights in parts of a limited size, and JSON files. */
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../../base/files.js'
import type { NetworkSpec } from '../spec/network-spec.js'
import { createTokenizer } from '../tokenizers/index.js'
import { FLOAT_BYTES, type Model, ModelError, sizeOf } from '../types.js'
import { exportBlocks } from './exchange.js'
import { writeConfig } from './hugging-face.js'
import { type LayoutName, layoutFor } from './layouts.js'
import { type NamedTensor, writeSafetensors } from './safetensors.js'

/** As in Hugging Face's libraries. */
const PART_BYTES = 5e9

/**
 * Writes a network for `AutoModel.from_pretrained(folder)`: weights, `config.json` and the tokenizer.
 * @param folder does not exist, or is empty
 * @param partBytes largest size of a part
 * @returns names of the files
 * @throws ModelError if the layout is not that of the model, or the folder is not empty
 */
export function writeNetwork(
  folder: string,
  {
    spec,
    model,
    blocks
  }: { readonly spec: NetworkSpec; readonly model: Model; readonly blocks: readonly Float32Array[] },
  layout: Exclude<LayoutName, 'admb'>,
  partBytes = PART_BYTES
): readonly string[] {
  const own = layoutFor(spec.layers)
  if (own !== layout) {
    throw new ModelError(
      `layout ${layout} is for models of that name, and this one is ${spec.layers.model}: give --layout ${own}`
    )
  }
  const endOfText = spec.text?.pieces === undefined ? undefined : createTokenizer(spec.text).padding
  const config = writeConfig(spec, endOfText)
  const tensors = exportBlocks(model, blocks, layout)
  const files: Record<string, unknown> = { 'config.json': config, ...tokenizerFiles(spec) }
  createEmpty(folder)
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(folder, name), `${typeof content === 'string' ? content : JSON.stringify(content, null, 2)}\n`)
  }
  return [...Object.keys(files), ...writeParts(folder, tensors, {}, partBytes)]
}

/** A folder with the weights under the names of this project. @throws ModelError if the folder is not empty */
export function writeWeights(
  folder: string,
  tensors: readonly NamedTensor[],
  metadata: Readonly<Record<string, string>>,
  partBytes = PART_BYTES
): readonly string[] {
  createEmpty(folder)
  return writeParts(folder, tensors, metadata, partBytes)
}

function createEmpty(folder: string): void {
  makeFolder(folder)
  if (readdirSync(folder).length > 0) throw new ModelError(`${folder} is not empty: give a new folder`)
}

function tokenizerFiles({ layers, text }: NetworkSpec): Readonly<Record<string, unknown>> {
  if (text?.pieces === undefined) return {}
  const { padding, separator } = createTokenizer(text)
  const vocabulary = JSON.parse(text.pieces) as { readonly added_tokens?: readonly { id: number; content: string }[] }
  const nameOf = (id: number | undefined) => vocabulary.added_tokens?.find(token => token.id === id)?.content
  const names = ['[UNK]', '[CLS]', '[MASK]'].map(name =>
    vocabulary.added_tokens?.find(({ content }) => content === name)
  )
  const [unk_token, cls_token, mask_token] = names.map(token => token?.content)
  // Without them, the tokenizer of a loaded folder does not tell the texts of a pair apart.
  const inputs = layers.model === 'bert' && { model_input_names: ['input_ids', 'token_type_ids', 'attention_mask'] }
  const special = { pad_token: nameOf(padding), sep_token: nameOf(separator), unk_token, cls_token, mask_token }
  return {
    'tokenizer.json': text.pieces,
    'tokenizer_config.json': { tokenizer_class: 'PreTrainedTokenizerFast', ...special, ...inputs }
  }
}

function writeParts(
  folder: string,
  tensors: readonly NamedTensor[],
  metadata: Readonly<Record<string, string>>,
  partBytes: number
): string[] {
  const bytesOf = ({ shape }: NamedTensor) => FLOAT_BYTES * sizeOf(shape)
  const parts: NamedTensor[][] = []
  let room = 0
  for (const tensor of tensors) {
    const bytes = bytesOf(tensor)
    if (bytes > room) {
      parts.push([])
      room = partBytes
    }
    parts[parts.length - 1].push(tensor)
    room -= bytes
  }
  const number = (n: number) => String(n).padStart(5, '0')
  const names = parts.map((_, i) =>
    parts.length === 1 ? 'model.safetensors' : `model-${number(i + 1)}-of-${number(parts.length)}.safetensors`
  )
  for (const [i, part] of parts.entries()) writeSafetensors(join(folder, names[i]), part, metadata)
  if (parts.length === 1) return names
  const weight_map = Object.fromEntries(parts.flatMap((part, i) => part.map(({ name }) => [name, names[i]])))
  const total_size = tensors.reduce((sum, tensor) => sum + bytesOf(tensor), 0)
  const index = 'model.safetensors.index.json'
  writeFileSync(join(folder, index), `${JSON.stringify({ metadata: { total_size }, weight_map }, null, 2)}\n`)
  return [...names, index]
}
